# SPDX-License-Identifier: Apache-2.0
"""Compiles one package: compile_package.py SPEC.json TWIN.py PACKAGE.pt2

What goes wrong ends as a last line "reason: ..." on stderr, in the words of whoever refused.
"""

import importlib.util
import json
import sys
import traceback


def load(path):
    spec = importlib.util.spec_from_file_location("twin", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options(spec):
    return {
        "max_autotune": spec["compile_mode"] == "max-autotune",
        "max_autotune_gemm_backends": spec["gemm_backends"],
        "cpp.threads": spec["intra_op_threads"],
        "aot_inductor.package_constants_in_so": False,  # the weights are eager's own
        "compile_threads": 1,  # one package is one unit; no pool of processes to outlive us
    }


def compile_package(spec, twin, package):
    import torch

    if torch.__version__.split("+")[0] != spec["torch"]:
        raise RuntimeError(f"{sys.executable} has torch {torch.__version__}, the worker {spec['torch']}; "
                           "set PLATEAU_PYTHON to a python with the worker's")
    model, inputs = load(twin).make(spec)
    dtype, device = getattr(torch, spec["dtype"]), spec["device"]
    model = model.eval().to(device, dtype)
    inputs = tuple(x.to(device, dtype) for x in inputs)
    with torch.no_grad():
        exported = torch.export.export(model, inputs)
        torch._inductor.aoti_compile_and_package(exported, package_path=package, inductor_configs=options(spec))


def reason(error):
    """One line: a C++ compiler's first error, else the first line of the exception that began it all."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line]
    return (errors or lines or [type(error).__name__])[0]


def main():
    spec_file, twin, package = sys.argv[1:]
    with open(spec_file) as file:
        spec = json.load(file)
    try:
        compile_package(spec, twin, package)
    except Exception as error:
        traceback.print_exc()
        print("reason: " + reason(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
