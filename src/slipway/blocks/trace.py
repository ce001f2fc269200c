"""The trace of a `tir.Schedule`: its steps in order, to be read, stored and repeated.

::

    sch.trace.insts                       # steps: kind, inputs, attrs, outputs
    print(sch.trace.as_python())          # a Python function that takes the same steps
    sch.trace.apply_to_schedule(other)    # take them on another schedule

What a step takes from steps before it (blocks, loops, sampled numbers) is known by identity, as is
what it returns.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slipway.errors import ScheduleError, did_you_mean
from slipway.ir.expr import Var

# A method of Schedule: (its inputs, its attributes); a star: a list of inputs of any length.
_METHODS: dict[str, tuple[str, str]] = {
    "get_block": ("", "name func_name"),
    "get_loops": ("block", ""),
    "get_child_blocks": ("block_or_loop", ""),
    "get_producers": ("block", ""),
    "get_consumers": ("block", ""),
    "get_output_blocks": ("scope_block", ""),
    "sample_perfect_tile": ("loop", "n max_innermost_factor"),
    "sample_categorical": ("", "candidates probs"),
    "sample_compute_location": ("block", ""),
    "split": ("loop *factors", "preserve_unit_iters"),
    "fuse": ("*fused", "preserve_unit_iters"),
    "reorder": ("*ordered_loops", ""),
    "add_unit_loop": ("block_or_loop", ""),
    "parallel": ("loop", ""),
    "vectorize": ("loop", ""),
    "unroll": ("loop", ""),
    "bind": ("loop", "thread_axis"),
    "annotate": ("block_or_loop ann_val", "ann_key"),
    "unannotate": ("block_or_loop", "ann_key"),
    "compute_inline": ("block", ""),
    "reverse_compute_inline": ("block", ""),
    "compute_at": ("block loop", "preserve_unit_loops index"),
    "reverse_compute_at": ("block loop", "preserve_unit_loops index"),
    "decompose_reduction": ("block loop", ""),
    "decompose_padding": ("block loop", ""),
    "pad_einsum": ("block", "padding"),
    "cache_read": ("block", "read_buffer_index storage_scope"),
    "cache_write": ("block", "write_buffer_index storage_scope"),
    "cache_inplace": ("block", "read_buffer_index storage_scope"),
    "cache_index": ("block", "storage_scope cse_thresh"),
    "rfactor": ("loop", "factor_axis"),
    "blockize": ("target", "preserve_unit_iters"),
    "tensorize": ("block_or_loop", "tensor_intrin preserve_unit_iters"),
    "set_scope": ("block", "buffer_index storage_scope"),
    "set_axis_separator": ("block", "buffer axis_separators"),
    "unsafe_set_dtype": ("block", "buffer_index dtype"),
    "storage_align": ("block", "buffer_index axis factor offset"),
    "transform_layout": ("block", "buffer index_map"),
    "transform_block_layout": ("block", "index_map"),
    "reindex": ("block", "buffer"),
    "enter_postproc": ("", ""),
}
_SAMPLING = ("sample_perfect_tile", "sample_categorical", "sample_compute_location")
# Steps that find something and change nothing.
_FINDING = ("get_block", "get_loops", "get_child_blocks", "get_producers", "get_consumers")


class SampledInt(int):
    """A number that a schedule chose: a trace knows it from others of its value."""


@dataclass(frozen=True)
class InstructionKind:
    """What a step does, by classic TVM's name: ``InstructionKind.get("ComputeAt")``."""

    name: str
    method: str

    @staticmethod
    def get(name: str) -> InstructionKind:
        """Return the kind of a name.  Raises ScheduleError for one that is not known."""
        for method in _METHODS:
            if _kind_name(method) == name:
                return InstructionKind(name, method)
        known = [_kind_name(method) for method in _METHODS]
        raise ScheduleError(f"there is no step of kind {name!r}.{did_you_mean(name, known)}")

    @property
    def is_postproc(self) -> bool:
        """Whether what follows is postprocessing."""
        return self.method == "enter_postproc"


def _kind_name(method: str) -> str:
    return "".join(part.capitalize() for part in method.split("_"))


@dataclass(frozen=True, eq=False)
class Instruction:
    """A step: its kind, what it takes, its attributes and what it returned."""

    kind: InstructionKind
    inputs: Sequence[Any]
    attrs: Sequence[Any]
    outputs: Sequence[Any]

    def same_as(self, other: object) -> bool:
        """Return whether `other` is this very step."""
        return self is other

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """Return the step's positional arguments and those by name, as its method takes them."""
        of_inputs, of_attrs = (part.split() for part in _METHODS[self.kind.method])
        if len(self.attrs) != len(of_attrs):
            raise ScheduleError(
                f"a step {self.kind.name} has {len(of_attrs)} attributes "
                f"({', '.join(of_attrs) or 'none'}), not {len(self.attrs)}"
            )
        positional: list[Any] = []
        named: dict[str, Any] = {}
        left = list(self.inputs)
        for name in of_inputs:
            if name == "*factors":
                named["factors"], left = left, []
            elif name.startswith("*"):
                positional, left = left, []
            elif left:
                named[name] = left.pop(0)
        if left or len(named) < len([n for n in of_inputs if n == "*factors" or n[0] != "*"]):
            raise ScheduleError(
                f"a step {self.kind.name} takes {' '.join(of_inputs) or 'no inputs'}, not "
                f"{len(self.inputs)} inputs"
            )
        return positional, named | dict(zip(of_attrs, self.attrs, strict=True))


class Trace:
    """Steps in order, and by step what was chosen where one chooses."""

    def __init__(
        self,
        insts: Iterable[Instruction] = (),
        decisions: Mapping[Instruction, Any] | None = None,
    ) -> None:
        self.insts: list[Instruction] = list(insts)
        self.decisions: dict[Instruction, Any] = dict(decisions or {})

    def copy(self) -> Trace:
        """Return a trace of its own with the same steps."""
        return Trace(self.insts, self.decisions)

    def get_decision(self, inst: Instruction) -> Any:
        """Return what a step chose, None where it does not choose."""
        return self.decisions.get(inst)

    def append(self, inst: Instruction, decision: Any = None) -> None:
        """Add a step at the end."""
        self.insts.append(inst)
        if decision is not None:
            self.decisions[inst] = decision

    def pop(self) -> Instruction | None:
        """Take the last step off and return it, None where there is none."""
        if not self.insts:
            return None
        last = self.insts.pop()
        self.decisions.pop(last, None)
        return last

    def with_decision(self, inst: Instruction, decision: Any, remove_postproc: bool) -> Trace:
        """Return a trace in which a step chooses `decision`."""
        kept = self._until_postproc() if remove_postproc else self.insts
        return Trace(kept, {k: v for k, v in self.decisions.items() if k in kept}
                     | {inst: decision})  # fmt: skip

    def with_step(self, inst: Instruction, other: Instruction) -> Trace:
        """Return a trace, up to its postprocessing, with another step in the place of one."""
        kept = self._until_postproc()
        return Trace([other if one is inst else one for one in kept],
                     {k: v for k, v in self.decisions.items() if k in kept})  # fmt: skip

    def simplified(self, remove_postproc: bool) -> Trace:
        """Return a trace without steps that only find what nothing uses."""
        used: set[int] = set()
        kept: list[Instruction] = []
        for inst in reversed(self._until_postproc() if remove_postproc else self.insts):
            if inst.kind.method in _FINDING and not any(id(out) in used for out in inst.outputs):
                continue
            used.update(id(value) for value in inst.inputs)
            kept.append(inst)
        return Trace(kept[::-1], {k: v for k, v in self.decisions.items() if k in kept})

    def _until_postproc(self) -> list[Instruction]:
        for number, inst in enumerate(self.insts):
            if inst.kind.is_postproc:
                return self.insts[:number]
        return self.insts

    def apply_to_schedule(
        self,
        sch: Any,
        remove_postproc: bool = False,
        decision_provider: Callable[[Instruction, list[Any], list[Any], Any], Any] | None = None,
    ) -> None:
        """Take the steps on another schedule, with the same choices or the provider's."""
        made: dict[int, Any] = {}
        for inst in self._until_postproc() if remove_postproc else self.insts:
            inputs = [made.get(id(value), value) for value in inst.inputs]
            positional, named = Instruction(inst.kind, inputs, inst.attrs, ()).arguments()
            if inst.kind.method in _SAMPLING:
                decision = self.get_decision(inst)
                if decision_provider is not None:
                    decision = decision_provider(inst, inputs, list(inst.attrs), decision)
                named["decision"] = decision
            found = getattr(sch, inst.kind.method)(*positional, **named)
            results = _as_list(found)
            if len(results) != len(inst.outputs):
                raise ScheduleError(
                    f"{inst.kind.method} returned {len(results)} values on this schedule and "
                    f"{len(inst.outputs)} where the trace was made: the function is another one"
                )
            made.update(zip(map(id, inst.outputs), results, strict=True))

    # -- text ------------------------------------------------------------------------------------

    def _names(self) -> dict[int, str]:
        names: dict[int, str] = {}
        for inst in self.insts:
            for out in inst.outputs:
                letter = {"BlockRV": "b", "LoopRV": "l"}.get(type(out).__name__, "v")
                letter = out.letter if isinstance(out, _Output) else letter
                names[id(out)] = f"{letter}{len(names)}"
        return names

    def as_python(self, remove_postproc: bool = False) -> list[str]:
        """Return the lines of Python that take the steps on a schedule called sch."""
        names, lines = self._names(), []
        for inst in self._until_postproc() if remove_postproc else self.insts:
            positional, named = inst.arguments()
            if (decision := self.get_decision(inst)) is not None:
                named["decision"] = decision
            given = [_text(value, names) for value in positional]
            given += [f"{name}={_text(value, names)}" for name, value in named.items()]
            results = [names[id(out)] for out in inst.outputs]
            left = ", ".join(results) + ("," if len(results) == 1 and _is_list(inst) else "")
            call = f"sch.{inst.kind.method}({', '.join(given)})"
            lines.append(f"{left} = {call}" if left else call)
        return lines

    def __str__(self) -> str:
        head = ["# from tvm import tir", "def apply_trace(sch: tir.Schedule) -> None:"]
        return "\n".join([*head, *(f"  {line}" for line in self.as_python() or ["pass"])])

    def show(self, *_: Any) -> None:
        """Print the trace as a Python function."""
        print(self)

    # -- JSON ------------------------------------------------------------------------------------

    def as_json(self, remove_postproc: bool = False) -> list[Any]:
        """Return the steps and choices as lists of text and numbers, for JSON."""
        names = self._names()
        insts = self._until_postproc() if remove_postproc else self.insts
        for inst in insts:
            for value in inst.attrs:
                if callable(value):
                    raise ScheduleError(
                        f"the map of indices of {inst.kind.method} is a Python function, which "
                        "JSON does not hold: keep as_python()"
                    )
        steps = [
            [inst.kind.name, [_stored(value, names) for value in inst.inputs], list(inst.attrs),
             [names[id(out)] for out in inst.outputs]]
            for inst in insts
        ]  # fmt: skip
        chosen = [[n, self.decisions[i]] for n, i in enumerate(insts) if i in self.decisions]
        return [steps, chosen]

    @staticmethod
    def apply_json_to_schedule(json_obj: Any, sch: Any) -> None:
        """Take the steps of `as_json` on a schedule."""
        Trace.from_json(json_obj).apply_to_schedule(sch)

    @staticmethod
    def from_json(json_obj: Any) -> Trace:
        """Return the steps of `as_json`.  Raises ScheduleError for what is none."""
        try:
            steps, chosen = json_obj
            decisions = {int(number): decision for number, decision in chosen}
            read = [(str(k), list(i), list(a), [str(o) for o in outs]) for k, i, a, outs in steps]
        except (TypeError, ValueError) as error:
            raise ScheduleError(f"this is no trace as as_json() writes one: {error}") from None
        values: dict[str, Any] = {}
        trace = Trace()
        for number, (kind, inputs, attrs, outputs) in enumerate(read):
            taken = [_restored(value, values) for value in inputs]
            values.update((name, _Output(name)) for name in outputs)
            made = Instruction(
                InstructionKind.get(kind), taken, attrs, [values[name] for name in outputs]
            )
            trace.append(made, decisions.get(number))
        return trace


class _Output:
    """Stands for what a step of a stored trace returns; `letter` says whether a block or a loop."""

    def __init__(self, name: str) -> None:
        self.letter = name[:1] if name[:1] in ("b", "l") else "v"


def _is_list(inst: Instruction) -> bool:
    """Return whether a step returns a list, which one output does not tell."""
    return inst.kind.method in (
        "get_loops", "get_child_blocks", "get_producers", "get_consumers", "split",
        "sample_perfect_tile",
    )  # fmt: skip


def _as_list(found: Any) -> list[Any]:
    if found is None:
        return []
    return list(found) if isinstance(found, list | tuple) else [found]


def _text(value: Any, names: Mapping[int, str]) -> str:
    if id(value) in names and not isinstance(value, str):
        return names[id(value)]
    if isinstance(value, list):
        return f"[{', '.join(_text(v, names) for v in value)}]"
    if isinstance(value, tuple):
        return f"({', '.join(_text(v, names) for v in value)}{',' * (len(value) == 1)})"
    if isinstance(value, SampledInt):
        return str(int(value))
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if callable(value):
        return _map_text(value)
    return repr(value)


def _map_text(index_map: Callable[..., Any]) -> str:
    parameters = inspect.signature(index_map).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        raise ScheduleError(
            "a map of any number of indices cannot be written as text: name its indices"
        )
    names = [p.name for p in parameters]
    made = index_map(*(Var(name) for name in names))
    return f"lambda {', '.join(names)}: ({', '.join(str(i) for i in _as_list(made))},)"


def _stored(value: Any, names: Mapping[int, str]) -> Any:
    """Return a handle's name, and text in quotes of its own, by which the two are told apart."""
    if isinstance(value, str):
        return f'"{value}"'
    return names.get(id(value), int(value) if isinstance(value, SampledInt) else value)


def _restored(value: Any, values: Mapping[str, Any]) -> Any:
    if not isinstance(value, str):
        return value
    if value.startswith('"'):
        return value[1:-1]
    if value not in values:
        raise ScheduleError(f"a step takes {value!r}, which none before it returns")
    return values[value]


def recorded(cls: type[Any]) -> type[Any]:
    """Let the methods of a class of schedules write their steps to its trace."""
    for name in _METHODS:
        setattr(cls, name, _recording(name, getattr(cls, name)))
    return cls


def _recording(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)
    of_inputs, of_attrs = (part.split() for part in _METHODS[name])
    kind = InstructionKind(_kind_name(name), name)

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = method(self, *args, **kwargs)
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        if name == "get_block":
            given["func_name"] = self.func_working_on
        inputs: list[Any] = []
        for each in of_inputs:
            inputs += given[each[1:]] if each.startswith("*") else [given[each]]
        decision: Any = None
        if name == "sample_categorical":
            decision = given["decision"]
            if decision is None:
                decision = list(given["candidates"]).index(found)
        elif name == "sample_perfect_tile":
            decision = [int(factor) for factor in found]
        elif name == "sample_compute_location":
            decision = found.position
        attrs = [given[each] for each in of_attrs]
        self.trace.append(Instruction(kind, inputs, attrs, _as_list(found)), decision)
        return found

    return run
