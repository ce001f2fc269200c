"""One compilation of a model in a fresh process, for compile_time: JSON with the seconds of stages.

    python -m benchmarks.compile_time.worker MODEL.onnx

Everything is imported before the clock starts.  A stage is the time inside the functions that do
it; "code generation" is what waits for LLVM after lowering, which goes on beside it.
"""

import importlib
import json
import sys
import time

seconds = dict.fromkeys(
    ("import", "passes", "lowering", "code generation", "memory plan", "loading", "parameters"), 0.0
)


def import_everything():
    """Import what a compilation needs, and start what is started once in a process."""
    started = time.perf_counter()
    from slipway.backends import strategy as registry
    from slipway.compiler import relay_build
    from slipway.frontends.onnx import importer
    from slipway.relay import op_registry
    from slipway.runtime.graph import graph_executor
    from slipway.runtime.libraries import native_library
    from slipway.target import Target

    for name in ("slipway.codegen.llvm.backend", "slipway.relay.frontend", "onnx"):
        importlib.import_module(name)
    importer.load_converters()  # they are modules
    op_registry.get("nn.conv2d")
    registry.strategies("nn.conv2d", Target("llvm"))
    native_library.native_runtime()
    _ = Target("llvm").features, relay_build, graph_executor
    return time.perf_counter() - started


def measure(owner, name, stage, without=()):
    """Add the time inside a function to a stage, less what it adds to the stages `without`."""
    function = getattr(owner, name)

    def timed(*args, **kwargs):
        inner = sum(seconds[s] for s in without)
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent = time.perf_counter() - start
            seconds[stage] += spent - (sum(seconds[s] for s in without) - inner)

    setattr(owner, name, timed)


def main():
    imports = import_everything()
    import slipway
    from slipway import relay
    from slipway.compiler import kernels, operator_module, relay_build
    from slipway.contrib import graph_executor
    from slipway.runtime.graph import graph_factory

    measure(relay_build, "optimize", "passes")
    measure(relay_build, "build_graph", "passes")
    measure(relay_build, "compile_kernels", "code generation", without=["lowering"])
    measure(kernels, "lower_kernel", "lowering")
    measure(relay_build, "plan_storage", "memory plan")
    measure(operator_module.OperatorModule, "loaded", "loading")
    measure(graph_factory, "create_native", "loading", without=["loading"])
    measure(relay_build.ModelFactory, "_shared_params", "parameters")
    start = time.perf_counter()
    mod, params = relay.frontend.from_onnx(sys.argv[1])
    seconds["import"] = time.perf_counter() - start
    with slipway.transform.PassContext(opt_level=3):
        library = relay.build(mod, target="llvm", params=params)
    module = graph_executor.GraphModule(library["default"](slipway.cpu(0)))
    total = time.perf_counter() - start
    module.run()
    first = time.perf_counter() - start - total
    report = {**seconds, "together": total, "first run": first, "imports of Python": imports}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
