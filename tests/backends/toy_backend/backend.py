"""The toy backend: C for this machine."""

from slipway.backends.backend import Backend
from slipway.backends.c_code import emit_c
from slipway.target import Target
from slipway.target.kinds import TargetKind, cpu_options
from slipway.transform.graph.pipeline import GENERAL, graph_pass
from slipway.transform.loop.pipeline import PIPELINE, loop_pass

KIND = TargetKind("toy", 1, ("cpu", "toy"), cpu_options())


class ToyBackend(Backend):
    name = "toy"
    strategies = ("toy_backend.schedules",)

    def __init__(self):
        self.used = []
        self.steps = set()

    def serves(self, target):
        return target.kind.name == "toy"

    def graph_passes(self, target):
        marked = graph_pass("ToyGraph", lambda f: self.steps.add("graph") or f, opt_level=0)
        return (*GENERAL, marked)

    def loop_passes(self, target):
        def toy_loops(func):
            self.steps.add("loops")
            return func

        return (*PIPELINE, loop_pass(toy_loops))

    def emit(self, functions, target, entry, compiler):
        plain = Target("c")
        ready = {n: f.with_attr("target", plain) for n, f in functions.items()}
        return emit_c(ready, plain, entry, f"{compiler}, toy")


BACKEND = ToyBackend()
