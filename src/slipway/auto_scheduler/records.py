"""Logs of schedules: a line of JSON each, as classic TVM writes and reads them.

``{"i": [[workload key, target, ...], [[], steps]], "r": [costs, error, seconds, time], "v": ...}``.
Ours say besides what the score was, whether the results were held against the reference, and which
candidate of the sketches it is.  A line that says nothing about that counts as verified.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from slipway.auto_scheduler.compute_dag import ComputeDAG
from slipway.auto_scheduler.measure import MeasureInput, MeasureResult
from slipway.autotvm import measure as engine
from slipway.autotvm import record
from slipway.errors import ArgumentTypeError, TuningError, reason_of
from slipway.target import Target
from slipway.tuning.records import RunSeconds
from slipway.tuning.space import Candidate, candidate_of

VERSION = "v0.6"


@dataclass(frozen=True)
class LoggedTask:
    """The task of a line: its key and target, and the computation when it is asked for."""

    workload_key: str
    target: Target
    layout_rewrite_option: int = 0
    task_input_names: tuple[str, ...] = ()
    hardware_params: tuple[Any, ...] = ()
    kernel: None = None  # a line of a model's kernel is no line of a schedule

    @cached_property
    def compute_dag(self) -> ComputeDAG:
        """What the workload of its key computes.  Raises TuningError where none is registered."""
        return ComputeDAG(self.workload_key)


@dataclass(frozen=True)
class LoggedState:
    """The schedule of a line."""

    transform_steps: list[Any]
    candidate: Candidate | None = None


Trial = tuple[MeasureInput, MeasureResult]


def dump_record_to_string(inp: MeasureInput, res: MeasureResult) -> str:
    """Return a trial as a line."""
    task = inp.task
    if task.kernel is not None:  # of a model: its choice is a strategy with knobs
        error = () if res.error_no == 0 else (res.error_msg,)
        config = inp.state.candidate
        result = engine.MeasureResult(
            tuple(res.costs) or error, int(res.error_no), res.all_cost, res.timestamp, res.score,
            res.verified,
        )  # fmt: skip
        return record.encode(engine.MeasureInput(task.target, task.kernel, config), result)
    good = res.error_no == 0
    candidate = getattr(inp.state, "candidate", None)
    line: dict[str, Any] = {
        "i": [task_record(task), [[], inp.state.transform_steps]],
        "r": [list(res.costs), int(res.error_no), res.all_cost, res.timestamp],
        "v": VERSION,
    }
    if good and res.score < float("inf"):
        line["score"] = res.score
    if not res.verified or candidate is not None:
        line["verified"] = bool(res.verified)
    if candidate is not None:
        line["candidate"] = [candidate.strategy, dict(candidate.knobs)]
    if not good:
        line["error"] = res.error_msg
    return json.dumps(line)


def task_record(task: Any) -> list[Any]:
    """Return a task as a line has it."""
    host = getattr(task.target, "host", None)
    return [
        task.workload_key, str(task.target), list(task.hardware_params), str(host or ""),
        int(task.layout_rewrite_option), list(task.task_input_names),
    ]  # fmt: skip


def load_record_from_string(line: str) -> Trial:
    """Return the trial of a line.  Raises TuningError for what is none."""
    try:
        row = json.loads(line)
        head, (_, steps) = row["i"]
        costs, error_no, all_cost, timestamp = row["r"]
        target = Target(head[1])
        task = LoggedTask(
            str(head[0]), target, int(head[4]) if len(head) > 4 else 0,
            tuple(head[5]) if len(head) > 5 else (),
            tuple(head[2]) if len(head) > 2 else (),
        )  # fmt: skip
        known = row.get("candidate")
        candidate = None if known is None else candidate_of(known[0], known[1])
        result = MeasureResult(
            [RunSeconds(c) for c in costs], int(error_no), str(row.get("error", "")),
            float(all_cost), float(timestamp), float(row.get("score", "inf")),
            bool(row.get("verified", True)) and int(error_no) == 0,
        )  # fmt: skip
        if not isinstance(steps, list):
            raise ArgumentTypeError("steps")
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        RecursionError,
        OverflowError,
    ) as error:
        raise TuningError(f"this is no line of a schedule's log ({error!r}): {line[:80]}") from None
    inp = MeasureInput.__new__(MeasureInput)
    inp.task, inp.state = task, LoggedState(steps, candidate)  # type: ignore[assignment]
    return inp, result


def load_records(filename: str | Path) -> Iterator[Trial]:
    """Yield the trials of te computations of a log.  Raises TuningError with the line that is none.

    Lines of models' kernels are left out; `ApplyHistoryBest` takes both.
    """
    for number, line in enumerate(lines_of(filename), 1):
        if line.strip() and not line.startswith("#") and not is_of_kernel(line):
            try:
                trial = load_record_from_string(line)
            except TuningError as error:
                raise TuningError(f"{filename}, line {number}: {error}") from None
            yield trial


def lines_of(filename: str | Path) -> list[str]:
    """Return the lines of a log, empty ones for those that were cut.

    Raises TuningError for a file that cannot be read.
    """
    try:
        lines = Path(filename).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TuningError(f"the log {filename} cannot be read: {reason_of(error)}") from error
    for number, line in enumerate(lines, 1):
        if record.is_cut(line):
            record.tell_cut(filename, number)
            lines[number - 1] = ""
    return lines


def is_of_kernel(line: str) -> bool:
    """Return whether a line is of a model's kernel, as autotvm's logs have it."""
    return line.startswith('{"op"')


def save_records(
    filename: str | Path, inputs: Iterable[MeasureInput], results: Iterable[MeasureResult]
) -> None:
    """Add trials to a log."""
    text = "".join(dump_record_to_string(i, r) + "\n" for i, r in zip(inputs, results, strict=True))
    record.append(filename, text)


def load_best_record(
    filename: str | Path,
    workload_key: str | None = None,
    target: Target | str | None = None,
    include_compatible: bool = False,
) -> tuple[MeasureInput | None, MeasureResult | None]:
    """Return the best trial of a log, of one computation and kind of target where these are given.

    (None, None) where there is none.  Keys are compared as they stand: `include_compatible`, which
    takes a schedule for another batch, is refused.
    """
    check_compatible(include_compatible)
    best = best_of(load_records(filename), workload_key, target)
    return best if best is not None else (None, None)


def check_compatible(include_compatible: bool) -> None:
    """Refuse to take schedules of similar computations."""
    if include_compatible:
        raise TuningError(
            "include_compatible=True is not there: a schedule found for one shape is not taken for "
            "another; tune the other one too"
        )


def best_of(
    trials: Iterable[Trial], workload_key: str | None = None, target: Target | str | None = None
) -> Trial | None:
    """Return the best of some trials; those of one search are compared by their scores."""
    kind = None if target is None else Target(target).kind
    known = [
        trial for trial in trials
        if trial[1].error_no == 0 and trial[1].verified
        and workload_key in (None, trial[0].task.workload_key)
        and kind in (None, trial[0].task.target.kind)
    ]  # fmt: skip
    if not known:
        return None
    scored = all(result.score < float("inf") for _, result in known)
    return min(known, key=lambda t: t[1].score if scored else sum(t[1].costs) / len(t[1].costs))


class RecordToFile:
    """A callback of a search that adds its trials to a log."""

    def __init__(self, filename: str = "auto_scheduler_tuning.json") -> None:
        self.filename = str(filename)
        try:
            Path(self.filename).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TuningError(
                f"the folder of the log {self.filename} cannot be made: {reason_of(error)}"
            ) from error

    def callback(
        self, policy: Any, inputs: list[MeasureInput], results: list[MeasureResult]
    ) -> None:
        """Add a batch."""
        del policy
        save_records(self.filename, inputs, results)


class RecordReader:
    """Reads a log."""

    def __init__(self, filename: str = "auto_scheduler_tuning.json") -> None:
        self.filename = filename

    def read_lines(
        self, max_lines: int | None = None, skip_lines: int = 0
    ) -> tuple[list[MeasureInput], list[MeasureResult]]:
        """Return the inputs and the results of some lines."""
        trials = list(load_records(self.filename))[skip_lines:]
        trials = trials if max_lines is None or max_lines < 0 else trials[:max_lines]
        return [t[0] for t in trials], [t[1] for t in trials]

    def __iter__(self) -> Iterator[Trial]:
        return load_records(self.filename)


def distill_record_file(in_file: str | Path, out_file: str | Path) -> None:
    """Write the best line of each computation and kernel of a log to another file."""
    lines: dict[int, str] = {}
    by_task: dict[tuple[str, str], list[Trial]] = {}
    kernels: list[str] = []
    for line in lines_of(in_file):
        if not line.strip() or line.startswith("#"):
            continue
        if is_of_kernel(line):
            kernels.append(line)
            continue
        trial = load_record_from_string(line)
        lines[id(trial[0])] = line
        key = (trial[0].task.workload_key, str(trial[0].task.target))
        by_task.setdefault(key, []).append(trial)
    found = [best_of(trials) for trials in by_task.values()]
    chosen = [lines[id(best[0])] for best in found if best is not None]
    pairs = [(record.decode(line), line) for line in kernels]
    best_kernels = {id(inp) for inp, _ in record.best_of([p[0] for p in pairs]).values()}
    chosen += [line for (inp, _), line in pairs if id(inp) in best_kernels]
    record.write_whole(Path(out_file), chosen)
