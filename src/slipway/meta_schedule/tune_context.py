"""What a search of a function is about (classic): the function, the target, how it is searched."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from slipway.backends.backend import compile_target
from slipway.blocks.schedule import Schedule
from slipway.errors import ArgumentTypeError, ArgumentValueError, TuningError
from slipway.ir.function import IRModule, PrimFunc
from slipway.meta_schedule.arg_info import ArgInfo, TensorInfo
from slipway.meta_schedule.mutator import own_mutators
from slipway.meta_schedule.postproc import Postproc, VerifyGPUCode, finished
from slipway.meta_schedule.search_strategy import MeasureCandidate, SearchStrategy
from slipway.meta_schedule.space_generator import SpaceGenerator
from slipway.meta_schedule.utils import cpu_count
from slipway.target import Target
from slipway.tuning.schedules.block_schedules import BlockTask, DesignSpace, legal_default

# Parts that a TuneContext of TVM 0.9 was given itself, and a space generator has since.
FROM_TARGET = ("default", "from-target")
_OF_GENERATOR = ("sch_rules", "postprocs", "mutator_probs")


class TuneContext:
    """A function of loops with a target, a space generator and a search strategy.

    Generators and strategies are given by themselves or by their names; `num_threads` and `logger`
    are classic TVM's, kept for scripts that give them.
    """

    def __init__(
        self,
        mod: IRModule | PrimFunc | None = None,
        *,
        target: Target | str | None = None,
        space_generator: object = None,
        search_strategy: object = None,
        task_name: str = "main",
        rand_state: int = -1,
        num_threads: int | str = "physical",
        logger: object = None,
        **parts: Any,
    ) -> None:
        for name in parts:
            if name not in _OF_GENERATOR:
                raise ArgumentTypeError(f"TuneContext takes no {name!r}")
        for name in [name for name, value in parts.items() if isinstance(value, str)]:
            if parts[name] not in FROM_TARGET:
                raise TuningError(
                    f"TuneContext: {name}={parts[name]!r} is none of {', '.join(FROM_TARGET)}, "
                    "which stand for those of the target; or give a list"
                )
            del parts[name]
        self.mod = None if mod is None else normalized(mod)
        self.target = None if target is None else compile_target(target)
        self.task_name, self.logger = task_name, logger
        if isinstance(num_threads, str):
            if num_threads not in ("physical", "logical"):
                raise ArgumentValueError(
                    f"num_threads {num_threads!r}: a number, 'physical' or 'logical'"
                )
            num_threads = cpu_count(logical=num_threads == "logical")
        self.num_threads = num_threads
        self.rand_state = random.randrange(1, 2**31) if rand_state in (-1, None) else rand_state
        self.space_generator = (
            None if space_generator is None else SpaceGenerator.create(space_generator)
        )
        self.search_strategy = (
            None if search_strategy is None else SearchStrategy.create(search_strategy)
        )
        self.sch_rules = list(parts.get("sch_rules") or ())
        self.postprocs = list(parts.get("postprocs") or ())
        self.mutator_probs = dict(parts.get("mutator_probs") or {})
        if self.space_generator is not None and parts.get("sch_rules") is not None:
            self.space_generator.sch_rules = self.sch_rules
        if self.space_generator is not None and parts.get("postprocs") is not None:
            self.space_generator.postprocs = self.postprocs
        if self.space_generator is not None and parts.get("mutator_probs") is not None:
            self.space_generator.mutator_probs = self.mutator_probs
        self.initialize()

    def initialize(self) -> None:
        """Tell the generator and the strategy what they are for."""
        for part in (*self.sch_rules, *self.postprocs, *self.mutator_probs):
            part._initialize_with_tune_context(self)
        if self.space_generator is not None:
            self.space_generator._initialize_with_tune_context(self)
        if self.search_strategy is not None:
            self.search_strategy._initialize_with_tune_context(self)

    @property
    def func(self) -> PrimFunc:
        """The function."""
        if self.mod is None:
            raise TuningError("the TuneContext has no function: give it mod=")
        return Schedule(self.mod).func

    def generate_design_space(self) -> list[Schedule]:
        """Return the schedules that the generator makes of the function."""
        return self._generator().generate_design_space(self._module())

    def space(
        self, is_fresh: bool = False, designs: Sequence[Schedule] | None = None
    ) -> DesignSpace:
        """Return the candidates of the designs; `is_fresh`: each calls the generator anew."""
        generator, module = self._generator(), self._module()
        limits = VerifyGPUCode()
        limits._initialize_with_tune_context(self)

        def finish(sch: Schedule) -> bool:
            return all(one.apply(finished(sch)) for one in [*generator.postprocs, limits])

        own = [one for one in generator.postprocs if type(one).__module__ != Postproc.__module__]
        return DesignSpace(
            self.func, list(designs or generator.generate_design_space(module)), finish,
            (lambda seed: generator.designs(module, seed)) if is_fresh else None,
            has_own_end=bool(own),
            changes=[m.apply for m in own_mutators(generator.mutator_probs)],
        )  # fmt: skip

    def task(self, weight: float = 1.0) -> BlockTask:
        """Return the function as a task of the engine.  Raises the first error of illegal designs.

        What the search begins with is the same each time.
        """
        if self.target is None:
            raise TuningError(f"the TuneContext of {self.task_name!r} has no target: give target=")
        is_fresh = self.search_strategy is not None and self.search_strategy.IS_FRESH
        space = self.space(is_fresh)
        legal_default(self.task_name, space)
        return BlockTask(self.task_name, self.func, self.target, space, weight)

    def args_info(self) -> list[TensorInfo]:
        """Return the dtype and shape of each argument."""
        return ArgInfo.from_prim_func(self.func)

    def _generator(self) -> SpaceGenerator:
        if self.space_generator is None:
            raise TuningError("the TuneContext has no space generator: give it space_generator=")
        return self.space_generator

    def _module(self) -> IRModule:
        if self.mod is None:
            raise TuningError("the TuneContext has no function: give it mod=")
        return self.mod

    def _strategy(self) -> SearchStrategy:
        if self.search_strategy is None:
            raise TuningError("the TuneContext has no search strategy: give it search_strategy=")
        return self.search_strategy

    # The strategy's, by the context.

    def pre_tuning(
        self, max_trials: int, num_trials_per_iter: int = 64,
        design_spaces: Sequence[Schedule] | None = None, database: object = None,
        cost_model: object = None,
    ) -> None:  # fmt: skip
        """Begin a search of so many trials."""
        self._strategy().pre_tuning(
            max_trials, num_trials_per_iter, design_spaces, database, cost_model
        )

    def post_tuning(self) -> None:
        """End a search."""
        self._strategy().post_tuning()

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """Return the next candidates, None at the end."""
        return self._strategy().generate_measure_candidates()

    def notify_runner_results(
        self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[object]
    ) -> None:
        """Take what was measured."""
        self._strategy().notify_runner_results(measure_candidates, results)

    def clone(self) -> TuneContext:
        """Return a context of its own with the same parts."""
        strategy = None if self.search_strategy is None else self.search_strategy.clone()
        return TuneContext(
            self.mod, target=self.target, space_generator=self.space_generator,
            search_strategy=strategy, task_name=self.task_name, rand_state=self.rand_state,
            num_threads=self.num_threads, logger=self.logger,
        )  # fmt: skip


def normalized(mod: IRModule | PrimFunc) -> IRModule:
    """Return a module of one function, "main".  Raises TuningError for several."""
    if isinstance(mod, PrimFunc):
        return IRModule.from_functions({"main": mod.with_attr("global_symbol", "main")})
    if not isinstance(mod, IRModule):
        raise TuningError(f"a search is of a function of loops or a module, not {mod!r:.200}")
    functions = {str(name): func for name, func in mod.items() if isinstance(func, PrimFunc)}
    if len(functions) != 1:
        raise TuningError(
            f"a TuneContext has one function, and the module has {len(functions)} "
            f"({', '.join(functions) or 'none'} of loops): tune_tir takes them all"
        )
    (func,) = functions.values()
    return IRModule.from_functions({"main": func})
