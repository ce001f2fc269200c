"""The steps of a schedule as lists of numbers, as classic TVM's logs have them, and their replay.

``["SP", 2, 0, 1024, [2, 1, 4], 1]`` splits loop 0 of stage 2.  Stages are numbered in the order of
the graph; cache reads, cache writes and rfactor put new ones between them.  A step is plain JSON
and never changes, so that states share them; `Replay` carries them out on a `te.Schedule`.  A
length of a split that is None is yet to be chosen, as in a sketch that a rule makes; until then it
counts as one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from slipway import te
from slipway.errors import ArgumentValueError, TuningError
from slipway.ir.expr import IterVar
from slipway.te.operation import Operation
from slipway.te.stage import Stage

Step = list[Any]
MARKS = (
    "none", "unroll", "vectorize", "parallel", "vthread", "blockIdx.x", "threadIdx.x",
    "blockIdx.y", "threadIdx.y", "blockIdx.z", "threadIdx.z", "tensorize",
)  # fmt: skip
UNROLL = "auto_unroll_max_step"
INNER_TO_OUTER = 1  # the lengths of a split are those of its inner loops; 0: of its outer ones


class Replay:
    """A schedule that steps are carried out on, one after the other.

    `stages` are in the numbering of the steps, `axes` the loops of each; `code` says in Python what
    was done.
    """

    def __init__(self, ops: Sequence[Operation], outputs: Sequence[Operation]) -> None:
        self.schedule = te.create_schedule(list(outputs))
        self.stages: list[Stage] = [self.schedule[op] for op in ops]
        self.axes: list[list[IterVar]] = [_axes(stage) for stage in self.stages]
        self.steps: list[Step] = []
        self.code: list[str] = []
        self.unchosen: set[IterVar] = set()  # loops whose length is yet to be chosen
        self._words: dict[int, str] = {}
        self._used: set[str] = set()
        for number in range(len(self.stages)):
            self._name_stage(number)

    def do(self, step: Step) -> Any:
        """Carry out one step.  Raises TuningError for one that does not fit the graph."""
        try:
            act = _ACTS[step[0]]
            stage = _index(step[1], self.stages, "stage")
            result = act(self, stage, *step[2:])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise TuningError(
                f"the step {step} of a schedule does not fit its graph of {len(self.stages)} "
                f"stages ({error!r})"
            ) from None
        self.steps.append(step)
        return result

    # Names in the Python text.

    def _name_stage(self, number: int, made: str = "") -> None:
        """Say what a stage and its loops are called; `made` is the call that returns a new one."""
        stage = self.stages[number]
        if made or id(stage) not in self._words:
            self._words[id(stage)] = self._fresh(stage.op.name)
        name = self._words[id(stage)]
        if made:
            self.code.append(f"{name} = {made}")
        axes = self.axes[number]
        for axis in axes:
            self._words.setdefault(id(axis), self._fresh(f"{name}_{axis.name}"))
        if axes:
            left = ", ".join(self._words[id(a)] for a in axes)
            self.code.append(
                f"{left}{',' if len(axes) == 1 else ''} = "
                f"tuple({name}.op.axis) + tuple({name}.op.reduce_axis)"
            )

    def _fresh(self, name: str) -> str:
        plain = "".join(c if c.isalnum() else "_" for c in name)
        found, number = plain, 1
        while found in self._used:
            found, number = f"{plain}_{number}", number + 1
        self._used.add(found)
        return found

    def _word(self, of: Any) -> str:
        return self._words.setdefault(id(of), self._fresh(of.name))

    def _say(self, stage: int, call: str) -> None:
        self.code.append(f"s[{self._word(self.stages[stage])}].{call}")

    # The steps.

    def _annotate(self, stage: int, loop: int, mark: int) -> None:
        axis = _at(self.axes[stage], loop)
        word = MARKS[mark]
        if word == "none":
            return
        if word in ("unroll", "vectorize", "parallel"):
            getattr(self.stages[stage], word)(axis)
            self._say(stage, f"{word}({self._word(axis)})")
        elif word == "tensorize":
            raise TuningError("a step tensorizes a loop, and does not say by what")
        else:
            self.stages[stage].bind(axis, te.thread_axis(word))
            self._say(stage, f'bind({self._word(axis)}, te.thread_axis("{word}"))')

    def _fuse(self, stage: int, loops: list[int]) -> IterVar:
        axes = [_at(self.axes[stage], i) for i in loops]
        if not loops or list(loops) != list(range(loops[0], loops[0] + len(loops))):
            raise ArgumentValueError("fused loops follow each other")
        fused = self.stages[stage].fuse(*axes)
        self.axes[stage][loops[0] : loops[-1] + 1] = [fused]
        shown = ", ".join(map(self._word, axes))
        self.code.append(f"{self._word(fused)} = s[{self._word(self.stages[stage])}].fuse({shown})")
        return fused

    def _pragma(self, stage: int, loop: int, text: str) -> None:
        name, _, value = text.partition("$")
        axis = _at(self.axes[stage], loop)
        number = int(value) if value else None
        self.stages[stage].pragma(axis, name, number)
        self._say(stage, f'pragma({self._word(axis)}, "{name}", {number})')
        if name == UNROLL:
            self.stages[stage].pragma(axis, "unroll_explicit", True)
            self._say(stage, f'pragma({self._word(axis)}, "unroll_explicit", True)')

    def _reorder(self, stage: int, order: list[int]) -> None:
        old = self.axes[stage]
        if sorted(order) != list(range(len(old))):
            raise ArgumentValueError("a reorder names every loop once")
        self.axes[stage] = [old[i] for i in order]
        self.stages[stage].reorder(*self.axes[stage])
        self._say(stage, f"reorder({', '.join(map(self._word, self.axes[stage]))})")

    def _split(
        self, stage: int, loop: int, extent: Any, lengths: list[int], inner: int = INNER_TO_OUTER
    ) -> list[IterVar]:
        del extent  # the graph knows it
        return self._cut(stage, loop, lengths, bool(inner))

    def _cut(
        self, stage: int, loop: int, lengths: Sequence[int | None], inner: bool
    ) -> list[IterVar]:
        axis, found = _at(self.axes[stage], loop), []
        at, said = self.stages[stage], f"s[{self._word(self.stages[stage])}]"
        for given in reversed(lengths) if inner else lengths:
            kind, length = "factor" if inner else "nparts", 1 if given is None else int(given)
            if inner:
                outer, within = at.split(axis, factor=length)
            else:
                outer, within = at.split(axis, nparts=length)
            if given is None or axis in self.unchosen:
                self.unchosen |= {outer, within} if given is None else {outer if inner else within}
            self.code.append(
                f"{self._word(outer)}, {self._word(within)} = "
                f"{said}.split({self._word(axis)}, {kind}={length})"
            )
            kept, axis = (within, outer) if inner else (outer, within)
            found.append(kept)
        parts = [axis, *reversed(found)] if inner else [*found, axis]
        self.axes[stage][loop : loop + 1] = parts
        return parts

    def lengths_of(self, source: int) -> list[int | None]:
        """Return the inner lengths of the split that is step number `source`."""
        step = self.steps[source]
        if step[0] != "SP":
            raise ArgumentValueError(f"step {source} is no split")
        return [None if n is None else int(n) for n in step[4]]

    def _follow_split(self, stage: int, loop: int, source: int, parts: int) -> list[IterVar]:
        known = self.lengths_of(source)
        lengths = [*known[: parts - 1], _product(known[parts - 1 :])]
        return self._cut(stage, loop, lengths, bool(self.steps[source][5]))

    def _follow_fused_split(
        self, stage: int, loop: int, sources: list[int], level: int, by_factor: int
    ) -> list[IterVar]:
        length = _product([self.lengths_of(source)[level] for source in sources])
        return self._cut(stage, loop, [length], bool(by_factor))

    def _storage_align(self, stage: int, loop: int, factor: int, offset: int) -> None:
        axis = _at(self.axes[stage], loop)
        self.stages[stage].storage_align(axis, factor, offset)
        self._say(stage, f"storage_align({self._word(axis)}, {factor}, {offset})")

    def _compute_at(self, stage: int, target: int, loop: int) -> None:
        parent = self.stages[_index(target, self.stages, "stage")]
        axis = _at(self.axes[target], loop)
        self.stages[stage].compute_at(parent, axis)
        self._say(stage, f"compute_at(s[{self._word(parent)}], {self._word(axis)})")

    def _compute_inline(self, stage: int) -> None:
        self.stages[stage].compute_inline()
        self._say(stage, "compute_inline()")

    def _compute_root(self, stage: int) -> None:
        self.stages[stage].compute_root()
        self._say(stage, "compute_root()")

    def _cache_read(self, stage: int, scope: str, readers: list[int]) -> Operation:
        tensor = self.stages[stage].origin_op.output(0)
        ops = [self.stages[_index(r, self.stages, "stage")].op for r in readers]
        cache = self.schedule.cache_read(tensor, scope, ops)
        new = self.schedule[cache]
        self._insert(stage + 1, new)
        for reader in readers:  # a reader is another operation now, with loops of its own
            self._refresh(reader + (1 if reader > stage else 0))
        shown = ", ".join(self._word(self.stages[r + (r > stage)]) for r in readers)
        self._name_stage(
            stage + 1, f's.cache_read({self._word(self.stages[stage])}, "{scope}", [{shown}])'
        )
        return new.op

    def _cache_write(self, stage: int, scope: str) -> Operation:
        written = self.stages[stage]
        outputs = list(written.op.outputs)
        cache = self.schedule.cache_write(outputs if len(outputs) > 1 else outputs[0], scope)
        new = self.schedule[cache[0] if isinstance(cache, list) else cache]
        self._insert(stage, new)
        self._refresh(stage + 1)
        self._name_stage(stage, f's.cache_write({self._word(written)}, "{scope}")')
        return new.op

    def _rfactor(self, stage: int, loop: int, position: int) -> Operation:
        written = self.stages[stage]
        axis = _at(self.axes[stage], loop)
        partial = self.schedule.rfactor(written.op.output(0), axis, position)
        new = self.schedule[partial[0] if isinstance(partial, list) else partial]
        made = f"s.rfactor({self._word(written)}, {self._word(axis)}, {position})"
        self._insert(stage, new)
        self._refresh(stage + 1)
        self._name_stage(stage, made)
        self._name_stage(stage + 1)
        return new.op

    def _insert(self, number: int, stage: Stage) -> None:
        self.stages.insert(number, stage)
        self.axes.insert(number, _axes(stage))

    def _refresh(self, number: int) -> None:
        """Take the loops of a stage whose operation was replaced, where they are new ones."""
        stage = self.stages[number]
        if any(a not in stage.leaf_iter_vars for a in self.axes[number]):
            self.axes[number] = _axes(stage)


_ACTS: dict[str, Callable[..., Any]] = {
    "AN": Replay._annotate, "FU": Replay._fuse, "PR": Replay._pragma, "RE": Replay._reorder,
    "SP": Replay._split, "FSP": Replay._follow_split, "FFSP": Replay._follow_fused_split,
    "SA": Replay._storage_align, "CA": Replay._compute_at, "CI": Replay._compute_inline,
    "CR": Replay._compute_root, "CHR": Replay._cache_read, "CHW": Replay._cache_write,
    "RF": Replay._rfactor,
}  # fmt: skip


def _product(lengths: Sequence[int | None]) -> int | None:
    """Return the product of lengths, None where one of them is yet to be chosen."""
    chosen = [n for n in lengths if n is not None]
    return math.prod(chosen) if len(chosen) == len(lengths) else None


def _axes(stage: Stage) -> list[IterVar]:
    return list(stage.op.root_iter_vars)


def _at(axes: Sequence[IterVar], loop: int) -> IterVar:
    return axes[_index(loop, axes, "loop")]


def _index(number: Any, of: Sequence[Any], what: str) -> int:
    if not isinstance(number, int) or not 0 <= number < len(of):
        raise ArgumentValueError(f"there is no {what} {number!r}")
    return number
