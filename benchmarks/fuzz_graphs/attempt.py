"""One graph on one target: compiled, run in every way, and held against the oracle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.fuzz_graphs import guarded
from benchmarks.fuzz_graphs.graph import Graph, relay_function, results
from benchmarks.fuzz_graphs.values import differs

HOST_TARGETS = {
    "host": "llvm",
    "avx512": "llvm -mcpu=x86-64-v4",
    "avx2": "llvm -mcpu=x86-64-v3",
    "sse": "llvm -mcpu=x86-64-v2",
    "sse2": "llvm -mcpu=x86-64",
    "c": "c",
}
DEVICE_TARGETS = {
    "aarch64": "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -mattr=+neon",
    "armv7": "llvm -mtriple=armv7l-none-linux-gnueabihf -mcpu=cortex-a53 -mattr=+neon",
    "riscv64": "llvm -mtriple=riscv64-unknown-linux-gnu",
}
TARGETS = HOST_TARGETS | DEVICE_TARGETS
THREADS = (1, 2, 3, 5)
GROUP = 8  # graphs with the same options; on some targets they make one program


@dataclass(frozen=True)
class Options:
    """How a graph is compiled."""

    target: str
    opt_level: int = 3
    strict: bool = False

    @property
    def target_text(self) -> str:
        return TARGETS[self.target] + (" -strict=1" if self.strict else "")


def options_of(seed: int, target: str) -> Options:
    """Mostly opt_level 3; one group in eight below, and one in eight without liberties."""
    rng = np.random.default_rng([seed // GROUP, 7])
    level = int(rng.integers(0, 3)) if rng.random() < 0.125 else 3
    return Options(target, level, bool(rng.random() < 0.125))


def compiled(graph: Graph, options: Options):
    """Return ``relay.build``'s result."""
    return built(relay_function(graph), options)


def built(function, options: Options, **more):
    """Return what ``relay.build`` makes of a function, `more` being its other arguments."""
    import slipway as tvm
    from slipway import relay

    module = relay.transform.InferType()(tvm.IRModule.from_expr(function))
    with tvm.transform.PassContext(opt_level=options.opt_level):
        return relay.build(module, target=options.target_text, **more)


def feeds(graph: Graph) -> dict[str, np.ndarray]:
    """The arrays of the graph's inputs by name."""
    return {f"x{n}": graph.nodes[n].array for n in graph.inputs}


def attempt(graph: Graph, options: Options) -> str:
    """Return what is wrong, or an empty text.  May end the process."""
    wanted = results(graph)
    try:
        factory = compiled(graph, options)
    except Exception as error:  # whatever it raises is found
        return f"build: {type(error).__name__}: {error}"
    if options.target in DEVICE_TARGETS:
        from benchmarks.fuzz_graphs import devices

        runs = devices.run(factory, feeds(graph), options.target, THREADS)
    else:
        runs = _runs(factory, feeds(graph))
    first = None
    for how, outputs in runs:
        if first is None:
            first = outputs
            for number, (got, want) in enumerate(zip(outputs, wanted, strict=True)):
                problem = differs(got, want)
                if problem:
                    op = graph.nodes[graph.outputs[number]].op
                    return f"output {number} ({op}), {how}: {problem}"
            continue
        for number, (got, want) in enumerate(zip(outputs, first, strict=True)):
            if got.tobytes() != want.tobytes():
                return f"output {number}, {how}: other bits than on 1 thread"
    return ""


def _runs(factory, inputs):
    """Yield (how, outputs) of the model's own executor and of guarded memory."""
    from slipway.runtime import cpu, set_num_threads
    from slipway.runtime.graph import graph_executor

    module = graph_executor.GraphModule(factory["default"](cpu(0)))
    for threads in THREADS:
        set_num_threads(threads)
        module.set_input(**inputs)
        module.run()
        count = module.get_num_outputs()
        yield f"{threads} threads", [module.get_output(i).numpy() for i in range(count)]
    for at_end in (True, False):
        side = "behind" if at_end else "before"
        try:
            yield f"guard pages {side} tensors", guarded.run(factory, inputs, at_end)
        except AssertionError as error:
            raise Misbehaviour(f"guard pages {side} tensors: {error}") from error


class Misbehaviour(Exception):
    """A kernel wrote where nothing of its is."""
