"""What a tuner calls after each batch, with (tuner, inputs, results)."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from slipway.autotvm.measure import MeasureInput, MeasureResult
from slipway.autotvm.record import append, encode
from slipway.errors import ArgumentValueError

if TYPE_CHECKING:
    from slipway.autotvm.tuner import Tuner

Callback = Callable[["Tuner", Sequence[MeasureInput], Sequence[MeasureResult]], None]


def log_to_file(file_out: str | Path | TextIO, protocol: str = "json") -> Callback:
    """Return a callback that adds the trials to a log, a line each."""
    if protocol != "json":
        raise ArgumentValueError(f"log_to_file: the protocol {protocol!r} is not 'json'")

    def log(_: Tuner, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        text = "".join(encode(i, r) + "\n" for i, r in zip(inputs, results, strict=True))
        if not isinstance(file_out, str | Path):
            file_out.write(text)
            return
        append(file_out, text)

    return log


def progress_bar(total: int, prefix: str = "", si_prefix: str = "G") -> Callback:
    """Return a callback that shows the last and the best speed, and how many trials there were.

    The last one is the fastest of its batch by its median, and the best was verified.
    """
    scale = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    if si_prefix not in scale:
        raise ArgumentValueError(
            f"progress_bar: si_prefix {si_prefix!r} is not one of {list(scale)}"
        )
    done = 0

    def show(
        tuner: Tuner, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]
    ) -> None:
        nonlocal done
        done += len(inputs)
        speeds = [tuner.task.flop / statistics.median(r.costs) for r in results if r.error_no == 0]
        unit = scale[si_prefix]
        end = "\n" if done >= total else ""
        print(
            f"\r{prefix} Current/Best: {max(speeds, default=0.0) / unit:7.2f}/"
            f"{tuner.best_flops / unit:7.2f} {si_prefix}FLOPS | Progress: ({done}/{total})",
            end=end, file=sys.stderr, flush=True,
        )  # fmt: skip

    return show
