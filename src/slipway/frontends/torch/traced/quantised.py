"""Models of torch.ao's quantisation, eager and FX, as modules that torch.export can read.

Such a model computes with tensors that know their scale, and keeps its weights packed in objects of
the engine; torch.export reads neither.  So the model is traced, and the trace is run step by step
by a module that holds plain integers: see `quantised_steps` for what each step becomes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from slipway.errors import ModelError
from slipway.frontends.torch.traced.quantised_steps import OF_ONE, Packed, QView, TraceSteps

BRANCH = "prim::If"  # of a scripted module: on sizes and modes, which are known


def is_quantised(torch: ModuleType, model: Any) -> bool:
    """Return whether a module, eager or traced, computes with quantised tensors."""
    if isinstance(model, torch.jit.ScriptModule):
        kinds = (node.kind() for node in model.inlined_graph.nodes())
        return any(k.startswith(("quantized::", "aten::quantize_per_")) for k in kinds)
    if not isinstance(model, torch.nn.Module):
        return False
    return any(
        isinstance(value, torch.ScriptObject) or type(module).__module__.startswith(
            ("torch.ao.nn.quantized", "torch.ao.nn.intrinsic.quantized"))
        for module in model.modules() for value in vars(module).values()
    )  # fmt: skip


def with_integers(torch: ModuleType, model: Any, examples: tuple[Any, ...]) -> Any:
    """Return a module that computes what a quantised one does, with plain tensors.

    Raises ModelError with the steps that are not known, all at once.
    """
    traced = model
    if not isinstance(model, torch.jit.ScriptModule):
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                traced = torch.jit.trace(model.eval(), examples, check_trace=False)
        except Exception as error:
            raise ModelError(
                f"the quantised {type(model).__name__} cannot be traced "
                f"({type(error).__name__}: {str(error).strip().splitlines()[0][:200]}): give it "
                "the engine it was quantised for, torch.backends.quantized.engine"
            ) from error
    return _module(torch, _Program(torch, traced))


class _Program:
    """A trace: what is known before it runs, and the steps."""

    def __init__(self, torch: ModuleType, traced: Any) -> None:
        self.torch = torch
        graph = traced.inlined_graph
        self.known: dict[str, Any] = {}
        given = list(graph.inputs())
        self.known[given[0].debugName()] = traced
        self.inputs = [value.debugName() for value in given[1:]]
        self.nodes = list(graph.nodes())
        steps = TraceSteps(torch)
        unknown = [n.kind() for n in self._read(self.nodes) if not steps.knows(n.kind())]
        if unknown:
            raise ModelError(
                f"the quantised model has steps that Slipway cannot import: "
                f"{', '.join(dict.fromkeys(unknown))}. Trace it, so that no control flow is left, "
                "or leave these parts in float"
            )
        self.outputs = [value.debugName() for value in graph.outputs()]

    def _read(self, nodes: list[Any]) -> list[Any]:
        """Keep what steps say that is known; return those of `nodes` that have to run."""
        others = []
        for node in nodes:
            kind = node.kind()
            if kind == "prim::Constant":
                self._put(node, node.output().toIValue())
            elif kind == "prim::GetAttr":
                owner = self.known[node.input().debugName()]
                self._put(node, getattr(owner, node.s("name")))
            elif kind in OF_ONE and self._is_known(node.input()):
                self._put(node, self._number(node.input().debugName()))
            elif kind == BRANCH:
                for block in node.blocks():
                    self._read(list(block.nodes()))
            else:
                if kind == "aten::quantize_per_tensor":
                    for value in list(node.inputs())[1:3]:  # a scale may be a buffer
                        if self._is_known(value):
                            self.known[value.debugName()] = self._number(value.debugName())
                others.append(node)
        return others

    def _is_known(self, value: Any) -> bool:
        return value.debugName() in self.known

    def _number(self, name: str) -> Any:
        found = self.known[name]
        return found.item() if isinstance(found, self.torch.Tensor) else found

    def _put(self, node: Any, value: Any) -> None:
        self.known[node.output().debugName()] = value


def _module(torch: Any, program: _Program) -> Any:
    class Integers(torch.nn.Module):  # type: ignore[misc]
        """Runs a trace; its buffers are the weights."""

        def __init__(self) -> None:
            super().__init__()
            self.steps = TraceSteps(torch)
            self.held: dict[str, Any] = {}
            for name, value in program.known.items():
                if isinstance(value, torch.ScriptObject):
                    self.held[name] = self._packed(name, value)
                elif isinstance(value, torch.Tensor):
                    self.held[name] = self._tensor(name, value)
                elif not isinstance(value, torch.nn.Module):
                    self.held[name] = value

        def _tensor(self, name: str, value: Any) -> _Held:
            if not value.is_quantized:
                return _Held(self._buffer(name, value.detach()))
            view = QView.of(torch, value)
            return _Held(self._buffer(name, view.ints), view)

        def _packed(self, name: str, value: Any) -> _Held:
            found = self.steps.unpacked(value)
            return _Held(self._buffer(f"{name}_weight", found.weight.ints), found)

        def _buffer(self, name: str, value: Any) -> str:
            plain = "".join(c if c.isalnum() else "_" for c in name).strip("_") or "weight"
            number, made = 0, plain
            while hasattr(self, made):
                number += 1
                made = f"{plain}_{number}"
            self.register_buffer(made, value)
            return made

        def value(self, env: dict[str, Any], name: str) -> Any:
            """Return a value of the trace; a weight as the buffer that it is now."""
            found = env[name]
            if not isinstance(found, _Held):
                return found
            held = getattr(self, found.buffer)
            return held if found.around is None else found.around.with_ints(held)

        def forward(self, *inputs: Any) -> Any:
            env = dict(self.held)
            env.update(zip(program.inputs, inputs, strict=True))
            self.run(program.nodes, env)
            (output,) = (self.value(env, name) for name in program.outputs)
            return _plain(output)

        def run(self, nodes: list[Any], env: dict[str, Any]) -> None:
            """Run steps; `env` gets their values.  What is known before it runs is there."""
            for node in nodes:
                names = [v.debugName() for v in node.outputs()]
                if names and all(name in program.known for name in names):
                    continue
                given = [self.value(env, v.debugName()) for v in node.inputs()]
                if node.kind() == BRANCH:
                    block = list(node.blocks())[0 if given[0] else 1]
                    self.run(list(block.nodes()), env)
                    made = [self.value(env, v.debugName()) for v in block.outputs()]
                    env.update(zip(names, made, strict=True))
                    continue
                made = self.steps.run(node, given)
                env.update(zip(names, made if len(names) != 1 else (made,), strict=True))

    return Integers().eval()


@dataclass(frozen=True)
class _Held:
    """The name of a buffer with a value's numbers, and what is around them."""

    buffer: str
    around: QView | Packed | None = None


def _plain(value: Any) -> Any:
    if isinstance(value, QView):
        return value.ints
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(v) for v in value)
    return value
