# SPDX-License-Identifier: Apache-2.0
"""What one would write in Python to time eager on a GPU: the same model, one stream, each request waited for.

python_loop.py HIDDEN BATCH SEQ_LEN REQUESTS: prints the median milliseconds of a request, by the clock and by CUDA events.
"""
import json
import pathlib
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "worker" / "programs"))
from encoder_block import EncoderBlock


def main(hidden, batch, seq_len, requests):
    model = EncoderBlock(hidden, inplace_residual=False).eval().to("cuda", torch.float16)
    x = torch.randn(batch, seq_len, hidden, device="cuda", dtype=torch.float16)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    by_clock, by_events = [], []
    with torch.inference_mode():
        for i in range(100 + requests):
            start = time.perf_counter()
            begin.record()
            model(x)
            end.record()
            torch.cuda.current_stream().synchronize()
            if i >= 100:
                by_clock.append(1e3 * (time.perf_counter() - start))
                by_events.append(begin.elapsed_time(end))
    print(json.dumps({"clock_ms": statistics.median(by_clock), "events_ms": statistics.median(by_events)}))


main(*map(int, sys.argv[1:5]))
