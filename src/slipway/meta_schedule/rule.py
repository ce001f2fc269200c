"""What a schedule rule is (classic): something that is done to a block of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from slipway.blocks.schedule import BlockRV, Schedule
from slipway.errors import NotAvailableError
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
