# SPDX-License-Identifier: Apache-2.0
"""make_driver.py CUDA_H > driver.c: driver_head.c, and a stub that succeeds for every other entry point in cuda.h."""

import pathlib
import re
import sys

head = (pathlib.Path(__file__).parent / "driver_head.c").read_text()
header = pathlib.Path(sys.argv[1]).read_text(errors="replace")
declared = set(re.findall(r"CUDAAPI\s+(cu\w+)", header)) | set(re.findall(r"\b(cu[A-Z]\w*_v\d)\b", header))
answered = set(re.findall(r"^result (cu\w+)\(", head, re.MULTILINE))

print(head)
for name in sorted(declared - answered):
    print(f"result {name}(void) {{ return 0; }}")
