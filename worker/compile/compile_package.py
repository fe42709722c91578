# SPDX-License-Identifier: Apache-2.0
"""Compiles one package: compile_package.py SPEC.json TWIN.py PACKAGE.pt2

What goes wrong ends as a last line "reason: ..." on stderr, in the words of whoever refused.
"""

import importlib.util
import json
import os
import pathlib
import sys
import sysconfig
import traceback


def load(path):
    spec = importlib.util.spec_from_file_location("twin", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options(spec):
    of_the_host = {"cpp.simdlen": 1} if spec["device"] == "cuda" else {}  # see run_on_any_host
    return {
        **of_the_host,
        "max_autotune": spec["compile_mode"] == "max-autotune",
        "max_autotune_gemm_backends": spec["gemm_backends"],
        "cpp.threads": spec["intra_op_threads"],
        "aot_inductor.package_constants_in_so": False,  # the weights are eager's own
        "compile_threads": 1,  # one package is one unit; no pool of processes to outlive us
    }


def use_what_comes_with_torch(spec):
    """CUDA packages need the CUDA headers and -lcuda: those of torch's own wheel, and the driver that is loaded here.
    A CUDA_HOME that is set is left alone. Call before torch is imported."""
    if spec["device"] != "cuda":
        return
    beside_torch = pathlib.Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13"
    if beside_torch.is_dir():
        os.environ.setdefault("CUDA_HOME", str(beside_torch))
    found_at_run_time = [os.environ[name] for name in ("LIBRARY_PATH", "LD_LIBRARY_PATH") if os.environ.get(name)]
    os.environ["LIBRARY_PATH"] = ":".join(found_at_run_time)


def run_on_any_host(spec):
    """A CUDA package may be compiled on another machine than it runs on, and its host code only launches kernels: it is
    not to use what only this machine's CPU has, as Inductor has it do. There is no option for that."""
    from torch._inductor import cpp_builder

    chosen = getattr(cpp_builder, "_get_optimization_cflags", None)
    if spec["device"] != "cuda" or chosen is None:
        return

    def portable(*arguments, **named):
        compiler_flags, linker_flags = chosen(*arguments, **named)
        return [flag for flag in compiler_flags if flag != "march=native"], linker_flags

    cpp_builder._get_optimization_cflags = portable


def compile_package(spec, twin, package):
    use_what_comes_with_torch(spec)
    import torch

    run_on_any_host(spec)

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
