"""Tuners of whole graphs (classic): the choice of each kernel, made for a model at once.

In classic TVM a record of a kernel says the layout of its tensors as well, and a dynamic program
weighs the copies between kernels against what each layout gains.  Here the layout is chosen for
the whole model before kernels are (`backends/cpu/lowering`), and a record says how a kernel is
computed in it: nothing is copied in between, and the optimum is the best record of each kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway import te, topi
from slipway.autotvm.measure import MeasureInput, MeasureResult
from slipway.autotvm.record import best_of, encode, load_from_file, write_whole
from slipway.autotvm.task.dispatcher import ApplyHistoryBest, apply_history_best
from slipway.autotvm.task.kernel import plain_name
from slipway.autotvm.task.template import get_config, template
from slipway.backends.backend import compile_target
from slipway.classic.placeholders import TUNING, placeholder_of
from slipway.errors import TuningError
from slipway.ir.function import IRModule
from slipway.relay.expr import Function
from slipway.target import Target

__all__ = ["DPTuner", "PBQPTuner", "apply_graph_best", "layout_transform"]


def _copied(
    data: te.Tensor, src_layout: str, dst_layout: str
) -> tuple[te.Schedule, list[te.Tensor]]:
    """Copy a tensor into another layout: the task whose time classic graph tuners weighed."""
    get_config().add_flop(-1)  # it computes nothing: it is judged by its time
    out = topi.layout_transform(data, src_layout, dst_layout)
    current = Target.current(allow_none=True)
    in_threads = current is not None and not current.kind.is_cpu
    way = topi.cuda if in_threads else topi.generic
    return way.schedule_injective([out]), [data, out]


layout_transform: Any = template("layout_transform")(_copied)


class DPTuner:
    """The best records of a log for the operators `target_ops` of a graph.

    `input_shapes` are by name, `records` the log of the kernels' tuners (or its trials).  Raises
    TuningError when the log has none that was measured and verified for them.
    """

    def __init__(
        self,
        graph: Function | IRModule,
        input_shapes: Mapping[str, Sequence[int]],
        records: str | Path | Iterable[tuple[MeasureInput, MeasureResult]],
        target_ops: Iterable[Any],
        target: Target | str,
        **_: Any,
    ) -> None:
        main = graph["main"] if isinstance(graph, IRModule) else graph
        if not isinstance(main, Function):
            raise TuningError("a graph tuner takes a relay function, or a module of one")
        known = {param.name_hint for param in main.params}
        missing = [name for name in input_shapes if name not in known]
        if missing:
            raise TuningError(f"the graph has no input {missing[0]!r}; its inputs: {sorted(known)}")
        self._target = compile_target(Target(target))
        self._ops = {str(getattr(op, "name", op)) for op in target_ops}
        self._records = records
        self._chosen: list[tuple[MeasureInput, MeasureResult]] = []

    def benchmark_layout_transform(self, **_: Any) -> None:
        """Return at once: kernels of one model have one layout, so there is no copy to measure."""

    def run(self, **_: Any) -> None:
        """Choose the best record of each kernel."""
        given = self._records
        trials = load_from_file(given) if isinstance(given, str | Path) else given
        fitting = [
            (inp, result)
            for inp, result in trials
            if plain_name(inp.task.name) in self._ops
            and str(compile_target(inp.task.target)) == str(self._target)
        ]
        self._chosen = list(best_of(fitting).values())
        if not self._chosen:
            raise TuningError(
                f"there is no good record of {', '.join(sorted(self._ops))} for {self._target} in "
                f"{given if isinstance(given, str | Path) else 'the records given'}; tune the "
                "tasks of autotvm.task.extract_from_program first"
            )

    def get_optimal_records(self) -> list[tuple[MeasureInput, MeasureResult]]:
        """Return what `run` chose."""
        return list(self._chosen)

    def write_opt_sch2record_file(self, record_file: str | Path = "graph_opt_schedule.log") -> None:
        """Write what `run` chose, for `apply_graph_best`."""
        if not self._chosen:
            raise TuningError("there is nothing to write yet: call run() first")
        write_whole(Path(record_file), (encode(*trial) for trial in self._chosen))


class PBQPTuner(DPTuner):
    """The same: where nothing is copied in between, both programs have one optimum."""


def apply_graph_best(records: str | Path) -> ApplyHistoryBest:
    """Return the context in which `relay.build` uses what a graph tuner wrote."""
    return apply_history_best(records)


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, TUNING)
