"""What a schedule rule is (classic), what rules ask about a block, and how they try steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from slipway.blocks import tree
from slipway.blocks.schedule import BlockRV, LoopRV, Schedule
from slipway.errors import NotAvailableError, ScheduleError
from slipway.ir import ops
from slipway.ir.expr import BufferLoad, IterVar, Var
from slipway.ir.stmt import Block
from slipway.ir.visit import walk
from slipway.target import Target

if TYPE_CHECKING:
    from slipway.meta_schedule.tune_context import TuneContext

# The rules of each kind of target, which `schedule_rule` enters.
RULES: dict[str, Callable[[], list[ScheduleRule]]] = {}


class ScheduleRule:
    """What is done to one block."""

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        """Be told what the search is for."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """Return the schedule, or copies of it with steps for the block."""
        raise NotImplementedError(f"{type(self).__name__} has no apply(sch, block)")

    def clone(self) -> ScheduleRule:
        """Return the rule: it keeps nothing of a search."""
        return self

    @staticmethod
    def create(kind: str) -> list[ScheduleRule]:
        """Return the rules of a kind of target."""
        if kind not in RULES:
            raise NotAvailableError(
                f"there are no schedule rules for {kind!r}: those here are for "
                f"{', '.join(RULES)}; give PostOrderApply(sch_rules=[...]) your own, or a "
                "ScheduleFn"
            )
        return RULES[kind]()

    @staticmethod
    def of_target(target: Target) -> list[ScheduleRule]:
        """Return the rules for a target."""
        return ScheduleRule.create("llvm" if target.kind.is_cpu else target.kind.name)


LONG = 64  # a sum of so many steps is worth cutting


def leaf_of(sch: Schedule, block: BlockRV) -> Block | None:
    """Return a block that computes; None for one that holds others, as the root does."""
    found: Block = sch.get(block)
    return found if found.name != tree.ROOT and len(tree.blocks_of(found)) == 1 else None


def is_spatial(block: Block) -> bool:
    """Return whether all axes of a block are of data."""
    return all(axis.kind == "data" for axis in block.axes)


def is_plain(sch: Schedule, block: BlockRV) -> bool:
    """Return whether each loop of a block counts one of its axes, as before any step."""
    loops = [loop.loop_var for loop in tree.own_loops(sch.func.body, sch.get(block))]
    return bool(loops) and loops == list(sch.get(block).bindings)


def kinds_of(sch: Schedule, block: BlockRV) -> list[str]:
    """Return what each loop of a block counts, "data" or "reduce"; "" is nothing of the block's."""
    kinds, found = dict(counted_by(sch.get(block))), tree.own_loops(sch.func.body, sch.get(block))
    return [kinds.get(loop.loop_var, "") for loop in found]


def nest_of(sch: Schedule, block: BlockRV) -> list[tuple[LoopRV, str]]:
    """Return the loops of a block with what each counts."""
    return list(zip(sch.get_loops(block), kinds_of(sch, block), strict=True))


def counted_by(block: Block) -> list[tuple[Var, str]]:
    """Return the loop variables of a block's bindings, "reduce" where one counts a reduction."""
    found: dict[Var, str] = {}
    for axis, value in zip(block.axes, block.bindings, strict=True):
        for node in walk(value):
            if isinstance(node, Var):
                kind = "data" if axis.kind == "data" else "reduce"
                found[node] = "reduce" if found.get(node) == "reduce" else kind
    return list(found.items())


def lengths_of(block: Block, kind: str) -> list[int]:
    """Return the lengths of a block's axes of a kind."""
    return [length_of(axis) for axis in block.axes if axis.kind == kind]


def length_of(axis: IterVar) -> int:
    """Return the length of an axis, 1 where it is not known."""
    return 1 if axis.dom is None else ops.as_int(axis.dom.extent) or 1


def reuses(block: Block) -> bool:
    """Return whether a reduction reads something that does not depend on an axis of data."""
    if is_spatial(block):
        return False
    mine = {a.var for a in block.axes if a.kind == "data" and length_of(a) != 1}
    stored = set(tree.written(block))
    loads = [n for n in walk(block.body) if isinstance(n, BufferLoad) and n.buffer not in stored]
    return any(mine - {v for i in load.indices for v in walk(i) if isinstance(v, Var)}
               for load in loads)  # fmt: skip


def reduces(sch: Schedule, block: BlockRV) -> bool:
    """Return whether a block has an axis that is no data, or holds others."""
    found = leaf_of(sch, block)
    return found is None or not is_spatial(found)


def follows(sch: Schedule, block: BlockRV, reader: BlockRV) -> bool:
    """Return whether a block reads each element of another's result once, at its own place."""
    found = leaf_of(sch, reader)
    if found is None or not is_spatial(found):
        return False
    (made, *more), axes = tree.written(sch.get(block)), [axis.var for axis in found.axes]
    loads = [n for n in walk(found.body) if isinstance(n, BufferLoad) and n.buffer is made]
    return not more and bool(loads) and all(list(load.indices) == axes for load in loads)


def tried(sch: Schedule, act: Callable[[Schedule], Any]) -> Schedule | None:
    """Return a copy of a schedule with steps, None where they cannot be taken."""
    copy = sch.copy()
    try:
        act(copy)
    except ScheduleError:
        return None
    return copy
