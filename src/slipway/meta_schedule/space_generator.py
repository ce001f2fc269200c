"""Space generators (classic): what makes the schedules of a function that a search begins with.

A generator returns designs, schedules with sampled numbers (`tir.Schedule`); the search tries other
numbers.  ``ScheduleFn(f)`` calls a function of the script's, ``PostOrderApply()`` applies rules to
the blocks, ``SpaceGeneratorUnion([...])`` has the designs of several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slipway.blocks import tree
from slipway.blocks.schedule import BlockRV, Schedule
from slipway.classic.placeholders import SCHEDULES, placeholder_of
from slipway.errors import ArgumentValueError, NotAvailableError, TuningError
from slipway.ir.function import IRModule, PrimFunc
from slipway.ir.stmt import Block
from slipway.meta_schedule.mutator import own_mutators
from slipway.meta_schedule.postproc import Postproc
from slipway.meta_schedule.schedule_rule import ScheduleRule

if TYPE_CHECKING:
    from slipway.meta_schedule.tune_context import TuneContext

Rules = Sequence[ScheduleRule] | str | None
Postprocs = Sequence[Postproc] | str | None
Made = Schedule | Sequence[Schedule] | None
SEED = 1  # of what a design samples first: the same each time


class SpaceGenerator:
    """What makes the designs of a function.

    `sch_rules` and `postprocs` are lists, "from-target" or the name of a kind of target.  Of
    `mutator_probs` those of a script's own are applied, whatever their probability.
    """

    def __init__(
        self,
        sch_rules: Rules = "from-target",
        postprocs: Postprocs = "from-target",
        mutator_probs: Mapping[Any, float] | str | None = "from-target",
    ) -> None:
        self.mutator_probs = mutator_probs if isinstance(mutator_probs, Mapping) else {}
        self.sch_rules = None if isinstance(sch_rules, str) or sch_rules is None else [*sch_rules]
        self.postprocs = [] if isinstance(postprocs, str) or postprocs is None else [*postprocs]

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        parts = (*(self.sch_rules or ()), *self.postprocs, *own_mutators(self.mutator_probs))
        for part in parts:
            part._initialize_with_tune_context(context)

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Tell the generator, its rules and postprocessors what they are for."""
        self._initialize_with_tune_context(context)

    def generate_design_space(self, mod: IRModule | PrimFunc) -> list[Schedule]:
        """Return the designs of a function."""
        return self.designs(mod, SEED)

    def designs(self, mod: IRModule | PrimFunc, seed: int) -> list[Schedule]:
        """Return the designs, with what is sampled by a seed."""
        raise NotImplementedError(f"{type(self).__name__} makes no designs")

    def clone(self) -> SpaceGenerator:
        """Return the generator: it keeps nothing of a search."""
        return self

    @staticmethod
    def create(kind: object = "post-order-apply", *args: Any, **kwargs: Any) -> SpaceGenerator:
        """Return a generator: itself, by its name, or of a function of schedules."""
        if isinstance(kind, SpaceGenerator):
            return kind
        if callable(kind):
            return ScheduleFn(kind, *args, **kwargs)
        if kind == "post-order-apply":
            return PostOrderApply(*args, **kwargs)
        if kind == "union":
            return SpaceGeneratorUnion(*args, **kwargs)
        raise ArgumentValueError(
            f"space {kind!r}: it is 'post-order-apply', 'union', a function of a schedule, or a "
            "SpaceGenerator"
        )


create = SpaceGenerator.create


class PySpaceGenerator(SpaceGenerator):
    """A generator of a script's own: it has `generate_design_space`."""

    def designs(self, mod: IRModule | PrimFunc, seed: int) -> list[Schedule]:
        """Return what the script's method makes, which samples as it likes."""
        if type(self).generate_design_space is SpaceGenerator.generate_design_space:
            raise NotAvailableError(
                f"{type(self).__name__} has no generate_design_space, which returns schedules"
            )
        return list(self.generate_design_space(mod))


class ScheduleFn(SpaceGenerator):
    """Calls a function with a schedule, which it edits, or returns others of: one, or a list."""

    def __init__(
        self,
        sch_fn: Callable[[Schedule], Made],
        sch_rules: Rules = "from-target",
        postprocs: Postprocs = "from-target",
        mutator_probs: Mapping[Any, float] | str | None = "from-target",
    ) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.sch_fn = sch_fn

    def designs(self, mod: IRModule | PrimFunc, seed: int) -> list[Schedule]:
        """Return what the function makes of a schedule of `mod`."""
        sch = Schedule(mod, seed=seed)
        made = self.sch_fn(sch)
        if made is None:
            return [sch]
        found = [made] if isinstance(made, Schedule) else made
        if not isinstance(found, list | tuple) or not all(isinstance(s, Schedule) for s in found):
            raise TuningError(
                f"the function of ScheduleFn returned {made!r}: it edits the schedule that it is "
                "given and returns nothing, or returns a schedule or a list of them"
            )
        return list(found)


class SpaceGeneratorUnion(SpaceGenerator):
    """The designs of several generators."""

    def __init__(
        self,
        space_generators: Sequence[SpaceGenerator],
        sch_rules: Rules = "from-target",
        postprocs: Postprocs = "from-target",
        mutator_probs: Mapping[Any, float] | str | None = "from-target",
    ) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.space_generators = list(space_generators)

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        super()._initialize_with_tune_context(context)
        for one in self.space_generators:
            one._initialize_with_tune_context(context)

    def designs(self, mod: IRModule | PrimFunc, seed: int) -> list[Schedule]:
        """Return those of all generators."""
        return [design for one in self.space_generators for design in one.designs(mod, seed)]


class PostOrderApply(SpaceGenerator):
    """Applies rules to the blocks of a function, the last block first; each may make several.

    Without rules given they are those of the target's kind.  ``f_block_filter(block)`` says which
    blocks they are for.
    """

    def __init__(
        self,
        f_block_filter: Callable[[Block], bool] | None = None,
        sch_rules: Rules = "from-target",
        postprocs: Postprocs = "from-target",
        mutator_probs: Mapping[Any, float] | str | None = "from-target",
    ) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.f_block_filter = f_block_filter
        self._of_target: list[ScheduleRule] | None = None
        if isinstance(sch_rules, str) and sch_rules != "from-target":
            self._of_target = ScheduleRule.create(sch_rules)

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        super()._initialize_with_tune_context(context)
        if self.sch_rules is None and self._of_target is None and context.target is not None:
            self._of_target = ScheduleRule.of_target(context.target)
        for rule in self._of_target or ():
            rule._initialize_with_tune_context(context)

    def designs(self, mod: IRModule | PrimFunc, seed: int) -> list[Schedule]:
        """Return the schedules that the rules make of `mod`.  Raises TuningError for equal names.

        (Blocks are known by their names.)
        """
        rules = self.sch_rules if self.sch_rules is not None else self._of_target
        if rules is None:
            raise TuningError(
                "PostOrderApply has no rules: give it sch_rules, or a TuneContext with a target"
            )
        begun = Schedule(mod, seed=seed)
        blocks = self._blocks(begun)
        found = [begun]
        for rule in rules:
            waiting = [(sch, blocks) for sch in reversed(found)]
            found = []
            while waiting:
                sch, left = waiting.pop()
                if not left:
                    found.append(sch)
                    continue
                block, left = left[-1], left[:-1]
                known = {b.name for b in tree.blocks_of(sch.func.body)} | {tree.ROOT}
                made = rule.apply(sch, block) if block.name in known else [sch]
                if not made or not all(isinstance(one, Schedule) for one in made):
                    raise TuningError(
                        f"the rule {type(rule).__name__} returned {made!r} for the block "
                        f"{block.name!r}: it returns a list of schedules, the given one at least"
                    )
                waiting += [(one, left) for one in reversed(made)]
        return found

    def _blocks(self, sch: Schedule) -> list[BlockRV]:
        names = [block.name for block in tree.blocks_of(sch.func.body)]
        for name in names:
            if names.count(name) > 1:
                raise TuningError(
                    f"two blocks of the function are called {name!r}: rules know blocks by their "
                    "names; give each its own"
                )
        blocks = tree.blocks_of(sch.func.body)
        if self.f_block_filter is not None:
            blocks = [block for block in blocks if self.f_block_filter(block)]
        found = [sch.get_block(block.name) for block in blocks]
        return found if tree.ROOT in names else [sch.get_block(tree.ROOT), *found]


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, SCHEDULES)
