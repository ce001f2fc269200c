"""A script run step by step in Python, under ``torch.export``: for branches that depend on data.

TorchScript's own interpreter can take one branch alone.  Here a branch or a loop whose condition is
a tensor becomes torch's ``cond`` or ``while_loop``, which have both; one whose condition is known
becomes the steps that it takes.  What depends on constants alone is computed at once, as numbers
that a trace writes as tensors are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from slipway.errors import ModelError
from slipway.frontends.torch.traced.builtins import (
    ALWAYS,
    NUMBERS,
    OF_SIZES,
    PRIMITIVES,
    is_number,
    is_open,
)

ENDLESS = 2**63 - 1  # the trip count of a `while`
_RANDOM = ("rand", "normal", "bernoulli", "dropout", "multinomial", "poisson", "empty")


def callable_of(torch: Any, script: Any) -> Any:
    """Return a script as TorchScript runs it: not the module, which tracers see through."""
    function = isinstance(script, torch.jit.ScriptFunction)
    return script if function else script._c._get_method("forward")


class Walk:
    """Runs the graph of a script; `torch` is the package."""

    def __init__(self, torch: Any, script: Any) -> None:
        self.torch = torch
        self.script = script
        self.graph = script.inlined_graph

    def __call__(self, *inputs: Any) -> Any:
        """Return what the script makes of its inputs."""
        given = list(self.graph.inputs())
        own = [] if isinstance(self.script, self.torch.jit.ScriptFunction) else [self.script]
        env: dict[str, Any] = {}
        for value, held in zip(given, self._arguments([*own, *inputs]), strict=True):
            env[value.debugName()] = held
        made = self._block(self.graph, env)
        return made[0] if len(made) == 1 else tuple(made)

    def _arguments(self, given: list[Any]) -> list[Any]:
        """Return what is given, with the defaults of what is not."""
        rest = callable_of(self.torch, self.script).schema.arguments[len(given) :]
        return [*given, *(argument.default_value for argument in rest)]

    def _block(self, block: Any, env: dict[str, Any]) -> list[Any]:
        """Run a block's steps, which add their values to `env`; return its outputs."""
        for node in block.nodes():
            names = [value.debugName() for value in node.outputs()]
            if node.kind() == "prim::GetAttr" and names[0] in env:
                continue  # taken before the branch
            made = self._step(node, env)
            env.update(zip(names, made if len(names) != 1 else (made,), strict=True))
        return [env[value.debugName()] for value in block.outputs()]

    def _step(self, node: Any, env: dict[str, Any]) -> Any:
        """Return the value of a step, or several where it has several."""
        kind = node.kind()
        given = [env[value.debugName()] for value in node.inputs()]
        match kind:
            case "prim::Constant":
                value = node.output().toIValue()
                held = isinstance(value, self.torch.Tensor)
                return self._at_once(lambda v: v.detach().clone(), [value]) if held else value
            case "prim::GetAttr":
                return getattr(given[0], node.s("name"))
            case "prim::SetAttr":
                setattr(given[0], node.s("name"), given[1])
                return ()
            case "prim::NumToTensor":  # an open size stays what it is
                return given[0] if is_open(given[0]) else self._at_once(self.torch.tensor, given)
            case "prim::If":
                made = self._branch(node, given[0], env)
                return made[0] if len(made) == 1 else made
            case "prim::Loop":
                made = self._loop(node, given, env)
                return made[0] if len(made) == 1 else made
            case "prim::RaiseException":
                raise ModelError(f"the script raises {given[0]} for inputs of these shapes")
        space, _, name = kind.partition("::")
        if space == "prim" and name in PRIMITIVES:
            return PRIMITIVES[name](*given)
        if space == "aten" and name in NUMBERS and _is_plain(node, name, given):
            return NUMBERS[name](*given)
        if space == "prim":
            raise ModelError(f"the script has the step {kind}, which Slipway cannot import")
        return self._operator(node, name, given)

    # -- operators -------------------------------------------------------------------------------

    def _operator(self, node: Any, name: str, given: list[Any]) -> Any:
        """Call an operator of torch as its schema wants its arguments."""
        if name in ("Bool", "Int", "Float", "item", "ScalarImplicit", "IntImplicit",
                    "FloatImplicit"):  # fmt: skip
            return given[0].item() if self._is_real(given[0]) else given[0]
        if name == "size":  # torch's own gives sizes that stay
            return list(given[0].shape) if len(given) == 1 else given[0].shape[given[1]]
        if name == "numel":
            return given[0].numel()
        if any(map(is_open, given)) and all(map(self._is_number, given)) and name in OF_SIZES:
            return OF_SIZES[name](*(v.item() if self._is_real(v) else v for v in given))
        if name == "tensor" and isinstance(given[0], self.torch.Tensor):
            return given[0].to(given[1]) if given[1] is not None else given[0].clone()
        if name == "narrow" and self._is_real(given[2]):
            return given[0].narrow(*(int(number) for number in given[1:]))
        qualified = node.schema().partition("(")[0]
        space, _, rest = qualified.partition("::")
        base, _, overload = rest.partition(".")
        call = getattr(getattr(getattr(self.torch.ops, space), base), overload or "default")
        plain, keyed = [], {}
        for argument, value in zip(call._schema.arguments, given, strict=False):
            fitted = self._fitted(str(argument.type), value)
            if argument.kwarg_only:
                keyed[argument.name] = fitted
            else:
                plain.append(fitted)
        values = [*plain, *keyed.values()]
        if name.startswith(_RANDOM) or not all(map(self._is_known, _flat(values))):
            return call(*plain, **keyed)
        made = self._at_once(lambda *_: call(*plain, **keyed), values)
        # Numbers alone: a constant of several may be written to, which torch has no constants for.
        several = isinstance(made, self.torch.Tensor) and made.numel() > 1
        return call(*plain, **keyed) if several else made

    def _fitted(self, wanted: str, value: Any) -> Any:
        """Return a number as a tensor where one is wanted, and the other way round."""
        tensor = isinstance(value, self.torch.Tensor)
        if wanted in ("Tensor", "Optional[Tensor]") and is_number(value) and value is not None:
            return self._at_once(self.torch.tensor, [value])
        if wanted in ("int", "float", "number", "bool", "Optional[int]", "SymInt") and tensor:
            return value.item()
        if wanted in ("List[int]", "List[SymInt]", "Optional[List[int]]") and isinstance(
            value, list
        ):
            return [v.item() if isinstance(v, self.torch.Tensor) else v for v in value]
        return value

    def _at_once(self, compute: Callable[..., Any], given: Sequence[Any]) -> Any:
        """Compute what is known now, outside the export."""
        if not all(map(self._is_known, _flat(given))):
            return compute(*given)
        from torch.utils._python_dispatch import _disable_current_modes

        with _disable_current_modes(), self.torch._C.DisableTorchFunction():
            return compute(*given)

    def _is_real(self, value: Any) -> bool:
        """Return whether a tensor has its numbers, rather than standing for an input or weight."""
        return type(value) is self.torch.Tensor and not self.torch._is_functional_tensor(value)

    def _is_number(self, value: Any) -> bool:
        return is_number(value) or (self._is_real(value) and value.numel() == 1)

    def _is_known(self, value: Any) -> bool:
        if isinstance(value, self.torch.Tensor):
            return self._is_real(value)
        return value is None or isinstance(
            value, int | float | str | self.torch.dtype | self.torch.device | self.torch.layout
            | self.torch.memory_format
        )  # fmt: skip

    # -- control flow ----------------------------------------------------------------------------

    def _branch(self, node: Any, condition: Any, env: dict[str, Any]) -> list[Any]:
        blocks = list(node.blocks())
        if not isinstance(condition, self.torch.Tensor) or self._is_real(condition):
            return self._block(blocks[0 if condition else 1], dict(env))
        captured = self._captured(node, blocks, env)

        def part(block: Any) -> Callable[..., Any]:
            def run(*tensors: Any) -> Any:
                made = self._block(block, {**env, **captured.inside(tensors)})
                return tuple(self._own(value) for value in made)

            return run

        tensors = captured.tensors()
        chosen = self.torch.ops.higher_order.cond(
            condition.reshape(()).to(self.torch.bool), part(blocks[0]), part(blocks[1]), tensors
        )
        return list(chosen)

    def _loop(self, node: Any, given: list[Any], env: dict[str, Any]) -> list[Any]:
        limit, condition, *carried = given
        (body,) = node.blocks()
        index, *states = [value.debugName() for value in body.inputs()]
        done = 0
        while not isinstance(condition, self.torch.Tensor) or self._is_real(condition):
            if not condition or done >= limit:
                return carried
            inner = {**env, index: done, **dict(zip(states, carried, strict=True))}
            condition, *carried = self._block(body, inner)
            done += 1
        return self._while(node, body, (done, limit, condition, carried), env)

    def _while(
        self, node: Any, body: Any, state: tuple[Any, ...], env: dict[str, Any]
    ) -> list[Any]:
        """A loop that goes on as long as data says."""
        torch = self.torch
        done, limit, condition, carried = state
        index, *states = [value.debugName() for value in body.inputs()]
        captured = self._captured(node, [body], env)

        def goes_on(count: Any, going: Any, *_: Any) -> Any:
            return going.clone() if limit >= ENDLESS else torch.logical_and(going, count < limit)

        def step(count: Any, _: Any, *values: Any) -> Any:
            own = [v.clone() for v in values[: len(states)]]
            inner = {**env, index: count, **captured.inside(values[len(states) :])}
            inner.update(zip(states, own, strict=True))
            going, *made = self._block(body, inner)
            return (count + 1, self._own(going).reshape(()), *map(self._own, made))

        first = (torch.full((), done, dtype=torch.int64), condition.reshape(()))
        made = torch.ops.higher_order.while_loop(
            goes_on, step, (*first, *map(self._own, carried)), captured.tensors()
        )
        return list(made[2:])

    def _own(self, value: Any) -> Any:
        """Return a result of a branch: a tensor of its own."""
        if isinstance(value, self.torch.Tensor):
            return value.clone()
        if isinstance(value, bool | int | float):
            kind = {bool: "bool", int: "int64", float: "float32"}[type(value)]
            return self.torch.full((), value, dtype=getattr(self.torch, kind))
        raise ModelError(
            f"a branch or a loop of the script, which depends on data, gives a "
            f"{type(value).__name__}: tensors and numbers are imported"
        )

    def _captured(self, node: Any, blocks: list[Any], env: dict[str, Any]) -> _Captured:
        """Return what blocks take from outside.

        Raises ModelError where a block writes to a tensor that is read behind the node.
        """
        known, captured = dict(env), _Captured()
        for inner in (n for block in blocks for n in nodes_of(block)):
            if inner.kind() == "prim::GetAttr" and inner.input().debugName() in known:
                held = getattr(known[inner.input().debugName()], inner.s("name"))
                known[inner.output().debugName()] = captured.held[inner.output().debugName()] = held
            for position, value in enumerate(inner.inputs()):
                captured.held.setdefault(value.debugName(), known.get(value.debugName()))
                if position or not in_place(inner.kind()) or value.debugName() not in known:
                    continue
                captured.written.add(value.debugName())
                if any(use.user.isAfter(node) for use in value.uses()):
                    raise ModelError(
                        f"a branch of the script writes in place ({inner.kind()}) to a tensor that "
                        "is read after it: write to a copy"
                    )
        for value in (value for block in blocks for value in block.outputs()):
            captured.held.setdefault(value.debugName(), known.get(value.debugName()))
        captured.held = {n: v for n, v in captured.held.items() if v is not None}
        return captured


@dataclass
class _Captured:
    """What the blocks of a branch take from outside, by name; those that they write to."""

    held: dict[str, Any] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)

    def tensors(self) -> tuple[Any, ...]:
        """Return the tensors, each once, which torch wants as operands."""
        return tuple(self._own().values())

    def inside(self, operands: Sequence[Any]) -> dict[str, Any]:
        """Return all of it as it is inside, where `operands` stand for the tensors."""
        standing = dict(zip(self._own(), operands, strict=True))
        inner = {name: standing.get(id(value), value) for name, value in self.held.items()}
        return {**inner, **{name: inner[name].clone() for name in self.written}}

    def _own(self) -> dict[int, Any]:
        return {id(v): v for v in self.held.values() if hasattr(v, "untyped_storage")}


def in_place(kind: str) -> bool:
    """Return whether steps of a kind write to their first input."""
    return kind.endswith("_") and not kind.endswith("__")


def _is_plain(node: Any, name: str, given: list[Any]) -> bool:
    """Return whether a step is one of numbers or of containers, of tensors too."""
    if name in ALWAYS or (given and isinstance(given[0], list | tuple | dict)):
        return True
    wanted = node.schema().partition("(")[2].partition(") ->")[0]
    return all(map(is_number, _flat(given))) or "Tensor" not in wanted


def nodes_of(block: Any) -> list[Any]:
    """Return the nodes of a block and of the blocks in it."""
    found = []
    for node in block.nodes():
        found.append(node)
        for inner in node.blocks():
            found += nodes_of(inner)
    return found


def _flat(values: Sequence[Any]) -> list[Any]:
    flat: list[Any] = []
    for value in values:
        flat += _flat(value) if isinstance(value, list | tuple) else [value]
    return flat
