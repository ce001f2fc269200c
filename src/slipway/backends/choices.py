"""What a user wants an operator to be computed by: the options "schedules.force" and ".records".

::

    {"nn.dense": "dense_pack.tile"}                                     a strategy
    {"nn.contrib_dense_pack": {"strategy": "dense_pack.tile", "rows": 4}}     and knobs of it

A record is the same for one problem alone, a line of JSON::

    {"op": "nn.dense", "inputs": ["float32[4, 64]", "float32[10, 64]"], "target": "llvm ...",
     "strategy": "dense.tile", "knobs": {"rows": 4, "vectors": 2}}

"layout:nn.conv2d" in place of an operator is about the layout pass (`cpu.lowering.layout_wish`),
"written:qnn.conv2d_nhwc" about kernels in C (`micro.kernels.wish`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway.backends.strategy import (
    Choice,
    Forced,
    Problem,
    Strategy,
    present_name,
    registered,
    strategies,
)
from slipway.errors import FileError, ScheduleError, did_you_mean, reason_of
from slipway.relay import op_registry
from slipway.relay.dims import described
from slipway.relay.types import flatten
from slipway.transform.context import PassContext

if TYPE_CHECKING:
    from slipway.target import Target
    from slipway.te.tensor import Tensor

FORCE, RECORDS = "schedules.force", "schedules.records"
# Before an operator's name: not how its kernel is computed, but what the layout pass makes of it.
LAYOUT = "layout:"
# Likewise: which kernel in hand-written C computes it, if any.
WRITTEN = "written:"
# What every record of a file has.
FIELDS = ("op", "attrs", "inputs", "target", "strategy")
KnownKnobs = Mapping[str, tuple[str, ...] | None]
# What can be wanted with each prefix, with its knobs.
PREFIXED: Mapping[str, KnownKnobs] = {
    LAYOUT: {
        "plain": (),
        "blocked": ("read", "written"),
        "panels": ("units",),
        "winograd": ("tile", "read", "written"),
    },
    WRITTEN: dict.fromkeys(
        (
            "addition",
            "dsp",
            "dsp_folded",
            "dsp_pairs",
            "dsp_wide",
            "grouped",
            "halfwords_dsp",
            "halfwords_mve",
            "halfwords_scalar",
            "joining",
            "loops",
            "mve",
            "product",
            "scalar",
        ),
        (),
    ),
}


class RecordsError(ScheduleError, FileError):
    """A file of records that cannot be read, or holds something else."""


def forced_for(problem: Problem) -> Forced | None:
    """Return what the current PassContext wants for a problem, or None.

    A wish for the operator comes before a record.
    """
    context = PassContext.current()
    wishes = context.option(FORCE) or {}
    for name, wish in wishes.items():
        if name.removeprefix(LAYOUT).removeprefix(WRITTEN) not in op_registry.load_ops():
            raise ScheduleError(
                f"the option {FORCE!r} names {name!r}, which is no operator."
                f"{did_you_mean(name, op_registry.OPS)}"
            )
        if name != problem.op:  # of this one it is said what does not apply
            _check_names(name, _wish(name, wish), problem.target)
    if problem.op in wishes:
        return _wish(problem.op, wishes[problem.op])
    path = records_path()
    if not path:
        return None
    found = records(path).get(key_of(problem))
    if found is None:
        return None
    return Forced(present_name(found["strategy"]), found.get("knobs") or {})


_USED: ContextVar[str] = ContextVar("records in use", default="")


@contextmanager
def using_records(path: str) -> Iterator[None]:
    """Use a file of records in the block, wherever the PassContext names no other."""
    token = _USED.set(path)
    try:
        yield
    finally:
        _USED.reset(token)


def records_path() -> str:
    """Return the file of records that counts now, "" for none."""
    context = PassContext.current()
    if context.option(RECORDS):
        return str(context.option(RECORDS))
    return _USED.get() if context.option("relay.backend.use_meta_schedule", True) else ""


def _wish(op: str, value: Tensor) -> Forced:
    if isinstance(value, str):
        return Forced(value)
    if isinstance(value, Mapping):
        return Forced(
            str(value.get("strategy", "")), {k: v for k, v in value.items() if k != "strategy"}
        )
    raise ScheduleError(
        f"the option {FORCE!r} gives {value!r} for {op}: it takes a strategy's name, or a dict of "
        '"strategy" and knobs'
    )


def _check_names(op: str, wish: Forced, target: Target) -> None:
    """Raise ScheduleError for a strategy or a knob that no backend has for an operator.

    Whether it applies shows where the operator is met: one dict may serve several models and
    targets.
    """
    known = _known_knobs(op, strategies(op, target) if op in op_registry.OPS else ())
    if wish.strategy not in known or not _has_knobs(known, wish):
        known = _known_knobs(op, registered(op) if op in op_registry.OPS else ())
    if wish.strategy and wish.strategy not in known:
        raise ScheduleError(
            f"the option {FORCE!r} wants {wish.strategy!r} for {op}, which no backend has."
            f"{did_you_mean(wish.strategy, known)} There are: {', '.join(known) or 'none'}"
        )
    if not _has_knobs(known, wish):
        names = sorted({k for s in _wished(known, wish) for k in known[s] or ()})
        strange = next(k for k in wish.knobs if k not in names)
        raise ScheduleError(
            f"the option {FORCE!r} gives {op} the knob {strange!r}, which "
            f"{wish.strategy or 'none of its strategies'} "
            f"{'has not' if wish.strategy else 'has'}.{did_you_mean(strange, names)} There are: "
            f"{', '.join(names) or 'none'}"
        )


def _wished(known: KnownKnobs, wish: Forced) -> list[str]:
    return [wish.strategy] if wish.strategy else list(known)


def _has_knobs(known: KnownKnobs, wish: Forced) -> bool:
    """Return whether a strategy that the wish is about has all of its knobs, or does not tell."""
    told = [known.get(name) for name in _wished(known, wish)]
    return not wish.knobs or any(names is None or set(wish.knobs) <= set(names) for names in told)


def _known_knobs(op: str, entries: Sequence[Strategy]) -> KnownKnobs:
    """Return the knobs of each strategy; None for one that does not tell them."""
    prefix = next((p for p in (LAYOUT, WRITTEN) if op.startswith(p)), "")
    if prefix:
        return PREFIXED[prefix]
    found: dict[str, tuple[str, ...] | None] = {}
    for entry in entries:
        names, known = entry.knob_names, found.get(entry.name, ())
        found[entry.name] = None if names is None or known is None else (*known, *names)
    return found


def key_of(problem: Problem) -> tuple[str, ...]:
    """Return what a record is found by: the operator, its attributes and types, the target."""
    return (problem.op, str(problem.attrs), *_input_texts(problem), str(problem.target))


def _input_texts(problem: Problem) -> list[str]:
    """Return the types of the inputs as text, those of open sizes with the ranges."""
    found = []
    for type_ in problem.in_types:
        ranges = described([d for t in flatten(type_) for d in t.shape])
        found.append(f"{type_} with {ranges}" if ranges else str(type_))
    return found


def record_of(choice: Choice) -> dict[str, Any]:
    """Return a choice as a record, which ``schedules.records`` reads."""
    problem = choice.problem
    return {
        "op": problem.op,
        "attrs": str(problem.attrs),
        "inputs": _input_texts(problem),
        "target": str(problem.target),
        "strategy": choice.strategy.name,
        "knobs": {k: getattr(choice.knobs, k) for k in choice.knobs.__dataclass_fields__},
    }


def records(path: str) -> Mapping[tuple[str, ...], Mapping[str, Any]]:
    """Return the records of a file by their keys; the last one of a key counts.

    Of a tuner's log, whose lines are trials, the best that was verified counts.
    Raises RecordsError for a file that cannot be read, with the line at fault.
    """
    return _records(path, records_digest(path))


def records_digest(path: str) -> str:
    """Return what stands for a file's content."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise RecordsError(
            f"the option {RECORDS!r} names {path}, which cannot be read: {error.strerror}"
        ) from error


@lru_cache(maxsize=8)
def _records(path: str, digest: str) -> Mapping[tuple[str, ...], Mapping[str, Any]]:
    found: dict[tuple[str, ...], Mapping[str, Any]] = {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RecordsError(
            f"the option {RECORDS!r} names {path}, which cannot be read: {reason_of(error)}"
        ) from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if not isinstance(record, Mapping):
                raise TypeError("it is no object")
            if missing := [name for name in FIELDS if name not in record]:
                raise TypeError(_other_format(record) or f"it has no {missing[0]!r}")
            key = (record["op"], record["attrs"], *record["inputs"], record["target"])
            record["strategy"].strip()
            if not all(isinstance(text, str) for text in key):
                raise TypeError("operator, attributes, types and target are texts")
            if not isinstance(record.get("knobs") or {}, Mapping):
                raise TypeError("knobs is no object")
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise RecordsError(
                f"{path}, line {number}: this is no record of a strategy ({reason_of(error)}); "
                "`slipway tune` writes such, `slipway check MODEL --explain` shows what one says"
            ) from None
        if "result" not in record or _is_better(record, found.get(key)):
            found[key] = record
    return found


def _is_better(trial: Mapping[str, Any], known: Mapping[str, Any] | None) -> bool:
    """Return whether a trial of a log won, and against what is known of its kernel."""
    score = trial.get("score")
    if trial.get("verified") is False or not isinstance(score, int | float):
        return False
    return known is None or "result" not in known or score < known["score"]


def _other_format(record: Mapping[str, Any]) -> str:
    """Return what a record of another tuner is, and who reads it; nothing for any other object."""
    if {"input", "config", "result"} <= record.keys():
        return "it is one of autotvm, which autotvm.apply_history_best reads"
    if {"i", "r"} <= record.keys():
        return "it is one of auto_scheduler, which auto_scheduler.ApplyHistoryBest reads"
    return ""
