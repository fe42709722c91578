# SPDX-License-Identifier: Apache-2.0
"""What one would write in Python instead: threads that share plateau's own model, each with an input of its own.

python_threads.py HIDDEN BATCH SEQ_LEN THREADS REQUESTS: prints the requests per second of all threads.
"""
import pathlib
import sys
import threading
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "worker" / "programs"))
from encoder_block import EncoderBlock


def serve(model, x, requests, gate, latencies):
    with torch.inference_mode():
        for _ in range(30):
            model(x)
        gate.wait()  # warm
        gate.wait()  # the clock has started
        for _ in range(requests):
            start = time.perf_counter()
            model(x)
            latencies.append(time.perf_counter() - start)


def main(hidden, batch, seq_len, threads, requests):
    torch.set_num_threads(1)
    model = EncoderBlock(hidden, inplace_residual=False).eval()
    gate = threading.Barrier(threads + 1)
    workers = [threading.Thread(target=serve, args=(model, torch.randn(batch, seq_len, hidden), requests, gate, []))
               for _ in range(threads)]
    for worker in workers:
        worker.start()
    gate.wait()
    start = time.perf_counter()
    gate.wait()
    for worker in workers:
        worker.join()
    print(threads * requests / (time.perf_counter() - start))


main(*map(int, sys.argv[1:6]))
