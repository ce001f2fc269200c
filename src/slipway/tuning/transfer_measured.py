"""What a search on one machine says about another, where a device of the other kind is there.

Each choice that is foretold meets the default on the device, as a challenger of a search does: it
is kept when it wins its duels and computes the right thing, and the whole model is not slower.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.ir.function import IRModule
from slipway.target import Target
from slipway.toolchain.tempdir import tempdir
from slipway.tuning.builders import Builder
from slipway.tuning.database import Database, KeptTask
from slipway.tuning.layout_search import LayoutSearch
from slipway.tuning.layouts import LayoutTask, extract_layouts
from slipway.tuning.measure import kernel_bench
from slipway.tuning.model_bench import ModelBench, is_timed_whole
from slipway.tuning.runner import Runner, at_work
from slipway.tuning.search import TaskSearch, kernel_errors
from slipway.tuning.task import extract_tasks
from slipway.tuning.transfer import Elsewhere, Foretold, all_foretold
from slipway.tuning.whole_model import WholeModel, check_model

MOST = 3  # choices of one task that are tried


@dataclass(frozen=True)
class Transferred:
    """What was tried, and what the model gained by what is kept; `whole` is None without any."""

    tried: tuple[Foretold, ...]
    whole: WholeModel | None


def transfer_measured(
    module: IRModule,
    target: Target,
    params: Mapping[str, Any] | None,
    database: Database,
    into: Database,
    runner: Runner,
    builder: Builder | None = None,
) -> Transferred:
    """Try what trials of other targets foretell for a model; what is faster here is in `into`.

    Raises TuningError when the device fails.
    """
    layouts = extract_layouts(module, target, params) if is_timed_whole(module) else []
    with tempdir() as folder:
        path = Path(folder.path)
        with at_work("trying another machine's choices"):
            with ModelBench(module, target, params or {}, runner, path) as bench:
                elsewhere = Elsewhere(module, params, database)
                tried = _try_layouts(layouts, elsewhere, into, bench)
            with into:
                kernels = extract_tasks(module, target, params)
            for task in kernels:
                choices = all_foretold(task, database)[:MOST]
                if choices:
                    kernel = kernel_bench(task, runner, path, builder=builder)
                    with kernel, kernel_errors(task):
                        TaskSearch(task, into, kernel).attempt([c.candidate for c in choices])
                    tried += choices
            every: list[KeptTask] = [*layouts, *kernels]
            whole = check_model(module, target, params, runner, into, every)
    return Transferred(tuple(tried), whole)


def _try_layouts(
    layouts: list[LayoutTask], elsewhere: Elsewhere, into: Database, bench: ModelBench
) -> list[Foretold]:
    search, tried = LayoutSearch(layouts, into, bench), []
    for task in sorted(layouts, key=lambda task: -task.weight):
        choices = elsewhere.foretold(task)[:MOST]
        with kernel_errors(task):
            search.attempt(task, [c.candidate for c in choices])
        tried += choices
    return tried
