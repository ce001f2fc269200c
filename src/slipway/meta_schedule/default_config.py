"""What a search takes where a script says nothing (TVM 0.9 and 0.10's `default_config`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from slipway.backends.backend import compile_target
from slipway.classic.placeholders import SCHEDULES, placeholder_of
from slipway.errors import TuningError
from slipway.ir.function import IRModule, PrimFunc
from slipway.meta_schedule.builder import Builder
from slipway.meta_schedule.cost_model import CostModel
from slipway.meta_schedule.database import Database, JSONDatabase
from slipway.meta_schedule.measure_callback import MeasureCallback
from slipway.meta_schedule.mutator import Mutator
from slipway.meta_schedule.postproc import (
    DisallowDynamicLoop,
    Postproc,
    RewriteCooperativeFetch,
    RewriteLayout,
    RewriteParallelVectorizeUnroll,
    RewriteReductionBlock,
    RewriteUnboundBlock,
    VerifyGPUCode,
)
from slipway.meta_schedule.runner import create as create_runner
from slipway.meta_schedule.schedule_rule import ScheduleRule
from slipway.meta_schedule.space_generator import SpaceGenerator
from slipway.meta_schedule.tune_context import normalized
from slipway.target import Target

Rules = Callable[[], list[ScheduleRule]] | None
Postprocs = Callable[[], list[Postproc]] | None
Probabilities = Callable[[], dict[Mutator, float]] | None


def mod(mod: IRModule | PrimFunc) -> IRModule:
    """Return a module whose one function is "main"."""
    return normalized(mod)


def target(target: Target | str) -> Target:
    """Return a target."""
    return compile_target(target)


def builder(builder: Builder | None) -> Builder:
    """Return a builder: that of this machine where none is given."""
    return Builder.create("local" if builder is None else builder)


def runner(runner: Any) -> Any:
    """Return a runner: that of this machine where none is given."""
    return create_runner("local" if runner is None else runner)


def database(database: Database | None, path: str) -> Database:
    """Return a database: one in the folder `path` where none is given."""
    return JSONDatabase(work_dir=path) if database is None else database


def callbacks(measure_callbacks: Sequence[MeasureCallback] | None) -> list[MeasureCallback]:
    """Return callbacks: the usual ones where none are given."""
    if measure_callbacks is None:
        return list(MeasureCallback.create("default"))
    return list(measure_callbacks)


def cost_model(cost_model: CostModel | None) -> CostModel:
    """Return a cost model: the engine's where none is given."""
    return CostModel.create("xgb") if cost_model is None else cost_model


def space_generator(space_generator: Callable[[], SpaceGenerator] | None) -> SpaceGenerator:
    """Return a space generator: the rules here where no function that makes one is given."""
    made = space_generator() if callable(space_generator) else space_generator
    return SpaceGenerator.create("post-order-apply" if made is None else made)


def schedule_rules(sch_rules: Rules, target: Target | str) -> list[ScheduleRule]:
    """Return the rules for a target, or those that a function makes."""
    _expect_function(sch_rules, "sch_rules")
    return sch_rules() if sch_rules else ScheduleRule.of_target(compile_target(target))


def postproc(postproc: Postprocs, target: Target | str) -> list[Postproc]:
    """Return what is done to each candidate for a target, or what a function makes."""
    _expect_function(postproc, "postproc")
    return postproc() if postproc else _of(target).postprocs()


def mutator_probs(mutator_probs: Probabilities, target: Target | str) -> dict[Mutator, float]:
    """Return the mutators for a target with their probabilities, or those that a function makes."""
    _expect_function(mutator_probs, "mutator_probs")
    return mutator_probs() if mutator_probs else _of(target).mutator_probs()


def _expect_function(given: object, name: str) -> None:
    if given is not None and not callable(given):
        raise TuningError(f"{name} is None or a function that makes them, not {given!r}")


class _Default:
    """What is done for a kind of target."""

    KIND = "llvm"

    @classmethod
    def schedule_rules(cls) -> list[ScheduleRule]:
        """Return the rules."""
        return ScheduleRule.create(cls.KIND)

    @staticmethod
    def postprocs() -> list[Postproc]:
        """Return what is done to each candidate."""
        return [
            DisallowDynamicLoop(), RewriteParallelVectorizeUnroll(), RewriteReductionBlock(),
            RewriteLayout(),
        ]  # fmt: skip

    @classmethod
    def mutator_probs(cls) -> dict[Mutator, float]:
        """Return the mutators with their probabilities."""
        return Mutator.create(cls.KIND)


class _DefaultLLVM(_Default):
    """Those of processors."""


class _DefaultCUDA(_Default):
    """Those of GPUs."""

    KIND = "cuda"

    @staticmethod
    def postprocs() -> list[Postproc]:
        """Return what is done to each candidate."""
        return [
            DisallowDynamicLoop(), RewriteCooperativeFetch(), RewriteUnboundBlock(),
            RewriteParallelVectorizeUnroll(), RewriteReductionBlock(), VerifyGPUCode(),
        ]  # fmt: skip


def _of(target: Target | str) -> type[_Default]:
    return _DefaultLLVM if compile_target(target).kind.is_cpu else _DefaultCUDA


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, SCHEDULES)
