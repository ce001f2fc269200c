"""What a search looks like while it runs: a table that moves in a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE
from rich.live import Live
from rich.table import Table

from slipway.cli import console

if TYPE_CHECKING:
    from slipway.tuning.layout_search import LayoutProgress
    from slipway.tuning.task import TuningTask
    from slipway.tuning.tune import Progress

SHOWN = 24  # rows at most: the tasks whose batches were the last


class TuneView:
    """Shows the progress of a search; a context while it runs.

    Of each task: its best as a part of the default's time, how fast that is, trials, errors by
    class.  `seconds`, where not 0, is what the search may take.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self.rows: dict[int, Progress[TuningTask]] = {}
        self.layouts: dict[int, LayoutProgress] = {}
        self.tasks = 0
        self._end = time.monotonic() + seconds if seconds else 0.0
        self._live = Live(console=console.err, transient=True, auto_refresh=False)
        self._moves = console.err.is_terminal

    def __enter__(self) -> TuneView:
        if self._moves:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def begin(self, tasks: list[Any]) -> None:
        """Say how many kernels there are."""
        self.tasks = len(tasks)

    def layout(self, progress: LayoutProgress) -> None:
        """Show where the search over layouts is."""
        self.layouts[progress.number] = progress
        self._tell(
            f"{progress.task}: {progress.trials} trials, the model takes {progress.score:.2f} of "
            "its time at first"
        )

    def kernel(self, progress: Progress[TuningTask]) -> None:
        """Show where the search of a kernel is."""
        self.rows.pop(progress.number, None)
        self.rows[progress.number] = progress
        self._tell(
            f"{progress.task.op} {progress.number + 1}/{self.tasks}: {progress.trials} trials, "
            f"{progress.score:.2f} of the default's time"
        )

    def _tell(self, line: str) -> None:
        if self._moves:
            self._live.update(self.table(), refresh=True)
        else:
            console.err.print(line)

    def table(self) -> Table:
        """Return the table of the tasks that were searched last."""
        view = Table(header_style="", box=SIMPLE, caption=self._caption(), caption_justify="left")
        for name in ("kernel", "best"):
            view.add_column(name, overflow="ellipsis", no_wrap=True, ratio=1)
        for name in ("of default", "GFLOP/s", "trials"):
            view.add_column(name, justify="right", no_wrap=True)
        view.add_column("errors", no_wrap=True)
        for progress in list(self.rows.values())[-SHOWN:]:
            view.add_row(*row_of(progress))
        return view

    def _caption(self) -> str:
        parts = []
        if self.layouts:
            last = list(self.layouts.values())[-1]
            parts.append(f"layouts: {len(self.layouts)} searched, model at {last.score:.2f}")
        if self.tasks:
            parts.append(f"kernels: {len(self.rows)} of {self.tasks} begun")
        if self._end:
            left = max(0.0, self._end - time.monotonic())
            parts.append(f"{console.age_text(left)} left")
        return "; ".join(parts)


def row_of(progress: Progress[TuningTask]) -> tuple[str, ...]:
    """Return the cells of a task."""
    seconds, task = progress.default_seconds * progress.score, progress.task
    rate = f"{task.flops / seconds / 1e9:.3g}" if seconds > 0 else "-"
    name = task.layers[0] if task.layers else task.name
    return (
        name, progress.best, f"{progress.score:.2f}", rate, str(progress.trials),
        errors_text(progress.errors),
    )  # fmt: skip


def errors_text(errors: Mapping[str, int]) -> str:
    """Return failures by class: "2 build, 1 wrong"."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(errors.items()) if count)
