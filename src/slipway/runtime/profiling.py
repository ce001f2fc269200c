"""What profiling a model gives (classic ``runtime.profiling``): a call for each kernel, as a table.

A `Report` is also the list of (layer, function, seconds) that `GraphModule.profile` returns.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from slipway.classic.names import missing
from slipway.errors import ArgumentValueError

Row = tuple[str, str, float]
DEVICE = "Device"


@dataclass(frozen=True)
class Duration:
    """A time, in microseconds."""

    microseconds: float

    def __str__(self) -> str:
        return f"{self.microseconds:.2f}"


@dataclass(frozen=True)
class Count:
    """How often something happened."""

    count: int

    def __str__(self) -> str:
        return f"{self.count}"


@dataclass(frozen=True)
class Percent:
    """A share of the whole, 100 for all of it."""

    percent: float

    def __str__(self) -> str:
        return f"{self.percent:.2f}"


@dataclass(frozen=True)
class Ratio:
    """A quotient of two measures."""

    ratio: float

    def __str__(self) -> str:
        return f"{self.ratio:.2f}"


_MEASURES: dict[str, type[Any]] = {
    fields(kind)[0].name: kind for kind in (Duration, Count, Percent, Ratio)
}


class Report(list[Row]):
    """Measures of each call in order (`calls`), of each device, and how they were taken."""

    def __init__(
        self,
        calls: Sequence[Mapping[str, Any]],
        device_metrics: Mapping[str, Mapping[str, Any]],
        configuration: Mapping[str, Any],
        rows: Iterable[Row] = (),
    ) -> None:
        super().__init__(rows)
        self.calls = [dict(call) for call in calls]
        self.device_metrics = {device: dict(of) for device, of in device_metrics.items()}
        self.configuration = dict(configuration)

    @classmethod
    def of_rows(cls, rows: Sequence[Row], device: str, executor: str) -> Report:
        """Return the report of measured kernels on one device."""
        total = sum(seconds for _, _, seconds in rows)

        def measures(seconds: float) -> dict[str, Any]:
            share = 100 * seconds / total if total else 0.0
            return {"Duration (us)": Duration(seconds * 1e6), "Percent": Percent(share)}

        calls = [
            {"Name": function, "Layer": layer, "Count": Count(1), DEVICE: device}
            | measures(seconds)
            for layer, function, seconds in rows
        ]
        whole = {device: {"Count": Count(1)} | measures(total)}
        return cls(calls, whole, {"Executor": executor}, rows)

    def table(self, sort: bool = True, aggregate: bool = True, col_sums: bool = True) -> str:
        """Return a table of the calls: `aggregate` joins those of one name, the longest first."""
        rows = self._joined() if aggregate else list(self.calls)
        if sort and aggregate:
            rows.sort(key=lambda row: -getattr(row.get("Duration (us)"), "microseconds", 0.0))
        if col_sums:
            rows += [{"Name": "----------"}, {"Name": "Sum"} | _sums(self.calls)]
            rows += [
                {"Name": "Total", DEVICE: device} | of for device, of in self.device_metrics.items()
            ]
        columns = _columns(rows)
        lines = [columns, *([str(row.get(c, "")) for c in columns] for row in rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
        texts = [
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        how = [f"{key}: {value}" for key, value in self.configuration.items()]
        return "\n".join([*texts, "", "Configuration", "-------------", *how, ""])

    def _joined(self) -> list[dict[str, Any]]:
        groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for call in self.calls:
            groups.setdefault((str(call.get("Name")), str(call.get(DEVICE))), []).append(call)
        return [dict(calls[0]) | _sums(calls) for calls in groups.values()]

    def csv(self) -> str:
        """Return the calls as CSV, in order, a line of names first."""
        out = io.StringIO()
        writer = csv.DictWriter(out, _columns(self.calls), restval="")
        writer.writeheader()
        writer.writerows(
            {name: next(iter(asdict(v).values())) if type(v) in _KINDS else v
             for name, v in call.items()}
            for call in self.calls
        )  # fmt: skip
        return out.getvalue()

    def json(self) -> str:
        """Return calls, metrics of devices and the configuration as JSON."""
        return json.dumps(
            {
                "calls": [_stored(call) for call in self.calls],
                "device_metrics": {d: _stored(of) for d, of in self.device_metrics.items()},
                "configuration": _stored(self.configuration),
            }
        )

    @classmethod
    def from_json(cls, s: str) -> Report:
        """Return the report that `json` wrote.  Raises ArgumentValueError for what is none."""
        try:
            read = json.loads(s)
            return cls(
                [_restored(call) for call in read["calls"]],
                {device: _restored(of) for device, of in read["device_metrics"].items()},
                _restored(read.get("configuration", {})),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ArgumentValueError(f"this is no report's JSON: {error!r}") from None

    def __str__(self) -> str:
        return self.table()


_KINDS = tuple(_MEASURES.values())


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(["Name", *(name for row in rows for name in row)]))


def _sums(calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums of what can be added: times, counts and shares."""
    sums: dict[str, Any] = {}
    for name, value in (pair for call in calls for pair in call.items()):
        if isinstance(value, Duration | Count | Percent):
            field = fields(value)[0].name
            before = getattr(sums.get(name), field, 0)
            sums[name] = type(value)(before + getattr(value, field))
    return sums


def _stored(measures: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: asdict(v) if type(v) in _KINDS else {"string": v} if isinstance(v, str) else v
        for name, v in measures.items()
    }


def _restored(measures: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in measures.items():
        if isinstance(value, Mapping):
            ((field, number),) = value.items()
            value = str(number) if field == "string" else _MEASURES[field](number)
        found[name] = value
    return found


def __getattr__(name: str) -> Any:
    raise AttributeError(missing(__name__, name, list(globals())))
