"""Logs of trials: a line of JSON each, of kernels as "schedules.records" has them.

The line of a template's trial is classic TVM's, so that its logs can be read; of the trials of one
task the best is the one of the smallest score that was verified.  A line that says nothing about
that, as those of classic TVM, counts as verified.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.arguments import COMMON, explain_all
from slipway.autotvm.measure import MeasureInput, MeasureResult
from slipway.autotvm.space import ConfigEntity
from slipway.errors import TuningError, reason_of
from slipway.target import Target
from slipway.toolchain.link import write_file
from slipway.tuning.space import Candidate, candidate_of
from slipway.version import VERSION

_log = logging.getLogger("slipway.autotvm")


@dataclass(frozen=True)
class LoggedTask:
    """The task of a line."""

    key: str
    name: str
    args: tuple[Any, ...]
    target: Target
    head: dict[str, Any]

    @property
    def workload(self) -> tuple[Any, ...]:
        """The name and the arguments, which can be the key of a dictionary."""
        return (self.name, *(hashable(arg) for arg in self.args))


def hashable(value: object) -> Any:
    """Return lists, at any depth, as tuples, which can be the key of a dictionary."""
    return tuple(map(hashable, value)) if isinstance(value, list | tuple) else value


def key_of_template(name: str, args: object, target: Target) -> str:
    """Return what the trials of a template with arguments are found by."""
    return _hash(json.dumps([name, args, str(target)]))


def measure_str_key(inp: MeasureInput, include_config: bool = True) -> str:
    """Return the text that stands for an input, with its configuration or without."""
    config = str(inp.config) if include_config else ""
    return "".join([str(inp.target), inp.task.name, str(inp.task.workload[1:]), config])


def encode(inp: MeasureInput, result: MeasureResult, protocol: str = "json") -> str:
    """Return a trial as a line of JSON, which is the one protocol there is."""
    _as_json(protocol)
    line = dict(inp.task.head)
    good = result.error_no == 0
    if isinstance(inp.config, Candidate):
        line |= {"strategy": inp.config.strategy, "knobs": dict(inp.config.knobs)}
    else:
        line |= {"config": inp.config.to_json_dict()}
    line |= {
        "result": [
            list(result.costs) if good else [str(c) for c in result.costs], int(result.error_no),
            result.all_cost, result.timestamp,
        ],
        "score": result.score if good and result.score < float("inf") else None,
        "verified": result.verified,
        "version": 0.2,
        "tvm_version": VERSION,
    }  # fmt: skip
    return json.dumps(line)


def _as_json(protocol: str) -> None:
    if protocol != "json":
        raise TuningError(
            f"a log's lines are JSON, not {protocol!r}: a pickle runs what its writer put into it"
        )


def decode(line: str, protocol: str = "json") -> tuple[MeasureInput, MeasureResult]:
    """Return the trial of a line.  Raises TuningError for what is none."""
    _as_json(protocol)
    try:
        row = _present(json.loads(line))
        costs, error_no, all_cost, timestamp = row["result"]
        config: Candidate | ConfigEntity
        if "op" in row:
            target = Target(row["target"])
            head = {name: row[name] for name in ("op", "attrs", "inputs", "target")}
            key = _hash("\n".join((row["op"], row["attrs"], *row["inputs"], row["target"])))[:24]
            task = LoggedTask(key, row["op"], tuple(row["inputs"]), target, head)
            config = candidate_of(row["strategy"], row["knobs"])
        else:
            text, name, args, _ = row["input"]
            head = {"input": row["input"]}
            target = Target(text)
            task = LoggedTask(key_of_template(name, args, target), name, tuple(args), target, head)
            config = ConfigEntity.from_json_dict(row["config"])
        score, verified = row.get("score"), bool(row.get("verified", True))
        good = int(error_no) == 0  # otherwise they are texts
        result = MeasureResult(
            tuple(map(float, costs) if good else costs),
            int(error_no), float(all_cost), float(timestamp),
            float("inf") if score is None else float(score), verified and error_no == 0,
        )  # fmt: skip
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        raise TuningError(f"this is no trial of a tuner's log ({error!r}): {line[:80]}") from None
    return MeasureInput(target, task, config), result


def _present(row: dict[str, Any]) -> dict[str, Any]:
    """Return a line as they are written today: of TVM 0.6, or a choice without its trial."""
    if "result" not in row and "op" in row:
        return {**row, "result": [[row["score"]], 0, 0.0, 0.0]}
    if "i" not in row:
        return row
    target, name, args, kwargs, _, config = row["i"]
    entity = {"index": config["i"], "code_hash": config.get("c"), "entity": config["e"]}
    return {"input": [target, name, args, kwargs], "config": entity, "result": row["r"]}


def load_from_file(filename: str | Path) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """Yield the trials of a log.  Raises TuningError with the line that is none."""
    return trials_of(_lines(filename), str(filename))


def trials_of(
    lines: Iterable[str], filename: str, first: int = 1
) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """Yield the trials of lines; `filename` is where they are from in errors, from `first` on."""
    for number, line in enumerate(lines, first):
        if line.strip() and not line.startswith("#"):
            try:
                trial = decode(line)
            except TuningError as error:
                if is_cut(line):
                    tell_cut(filename, number)
                    continue
                raise TuningError(f"{filename}, line {number}: {error}") from None
            yield trial


def best_of(
    trials: Iterable[tuple[MeasureInput, MeasureResult]],
) -> dict[str, tuple[MeasureInput, MeasureResult]]:
    """Return the best trial of each task by its key."""
    by_task: dict[str, list[tuple[MeasureInput, MeasureResult]]] = {}
    for inp, result in trials:
        if result.error_no == 0 and result.verified:
            by_task.setdefault(inp.task.key, []).append((inp, result))
    found = {}
    for key, known in by_task.items():
        scored = all(result.score < float("inf") for _, result in known)
        found[key] = min(known, key=lambda t: t[1].score if scored else _mean(t[1].costs))
    return found


def is_cut(line: str) -> bool:
    """Return whether a line of JSON ends too early: its writer was killed, or its disk was full."""
    if not line.startswith("{"):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False


def tell_cut(filename: str | Path, number: int) -> None:
    """Say that a line is left out."""
    _log.warning(
        "%s, line %d ends too early and is left out: its writer was ended, or its disk was full",
        filename, number,
    )  # fmt: skip


def append(file: str | Path, text: str) -> None:
    """Add lines to a log, after the end of one that was cut.  Raises TuningError."""
    try:
        with Path(file).open("ab+") as log:
            if log.tell():
                log.seek(-1, 2)
                text = text if log.read(1) == b"\n" else f"\n{text}"
            log.write(text.encode())
    except OSError as error:
        raise TuningError(f"a trial cannot be written to {file}: {reason_of(error)}") from error


def pick_best(in_file: str | Path, out_file: str | Path) -> None:
    """Write the best line of each task of a log to another file, whole or not at all."""
    lines = _lines(in_file)
    known: dict[int, str] = {}
    trials = []
    for number, line in enumerate(lines, 1):
        for trial in trials_of([line], str(in_file), number):
            known[id(trial[0])] = line
            trials.append(trial)
    chosen = [known[id(inp)] for inp, _ in best_of(trials).values()]
    write_whole(Path(out_file), chosen)


def write_whole(file: Path, lines: Iterable[str]) -> None:
    """Write lines to a file, or leave it as it is."""
    write_file(file, "".join(line + "\n" for line in lines).encode())


def _lines(filename: str | Path) -> list[str]:
    try:
        return Path(filename).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TuningError(f"the log {filename} cannot be read: {reason_of(error)}") from error


def _mean(costs: tuple[Any, ...]) -> float:
    return sum(costs) / len(costs) if costs else float("inf")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


explain_all(globals(), ["pick_best"], COMMON)
