"""Tables of a model's operators: where its time goes, and how far that is from the limit."""

from __future__ import annotations

from slipway.cli import console
from slipway.inspect.profile import ModelProfile, operators_text
from slipway.inspect.units import time_text


def profile_rows(report: ModelProfile, limit: int | None = None) -> list[tuple[str, str, str]]:
    """Return (name, time, share of the whole) of each operator, slowest first.

    With `limit`, the operators after the first `limit` are summed up in one last row.
    """
    whole = report.seconds or 1.0
    order = sorted(report.operators, key=lambda o: -o.seconds)
    shown = order if limit is None else order[:limit]
    rows = [
        (console.layer(o.name), time_text(o.seconds), f"{o.seconds / whole:.1%}") for o in shown
    ]
    rest = order[len(shown) :]
    if rest:
        seconds = sum(o.seconds for o in rest)
        rows.append((f"{len(rest)} others", time_text(seconds), f"{seconds / whole:.1%}"))
    return rows


def print_profile(report: ModelProfile, top: int | None, title: str) -> None:
    """Print the whole table, and what it comes to."""
    whole = report.seconds or 1.0
    order = sorted(report.operators, key=lambda o: -o.seconds)
    rows = []
    for o in order[:top]:
        cells = [
            console.layer(o.name), console.plain(operators_text(o.kernel)), time_text(o.seconds),
            f"{o.seconds / whole:.1%}", _giga(o.flops_per_second), _giga(o.bytes_per_second),
        ]  # fmt: skip
        if report.limits is not None:
            mark = " [red]◀[/]" if report.is_far(o) else ""
            cells += [f"{o.of_limit:.0%}{mark}" if o.bounds else "-", o.binding or "-"]
        rows.append(tuple(cells))
    columns = ["node", "operators", "time", "share", "GFLOP/s", "GB/s"]
    if report.limits is not None:
        columns += ["of limit", "bound by"]
    console.table(columns, rows, title=title, text_columns=2)
    if len(order) > len(rows):
        console.out.print(f"and {len(order) - len(rows)} operators more")
    console.out.print(f"All {len(order)} operators: {time_text(report.seconds)}")
    if report.missing:
        console.out.print(report.missing)
    if report.limits is None:
        return
    from slipway.inspect.limits import SIZES

    rates = [limits.flops / 1e9 for limits in report.measured]
    far = sum(o.seconds for o in order if report.is_far(o))
    console.out.print(
        f"Limits, measured between the runs: {min(rates):.3g} to {max(rates):.3g} GFLOP/s of "
        "float32 multiply-adds (FMA)"
    )
    for size, level in zip(SIZES, report.limits.levels, strict=False):
        read, copied = level.read / 1e9, level.copy / 1e9
        what = f"  data of {console.size_text(size)} ({level.name})"
        console.out.print(f"{what}: {read:.3g} GB/s read, {copied:.3g} GB/s copied")
    bound: dict[str, float] = {}
    for o in order:
        bound[o.binding] = bound.get(o.binding, 0.0) + o.seconds
    parts = sorted(bound.items(), key=lambda pair: -pair[1])
    console.out.print(
        "Time by what binds: " + ", ".join(f"{name} {s / whole:.0%}" for name, s in parts)
    )
    console.out.print(
        f"All together at {report.of_limits():.0%} of their limits; "
        f"{report.share_at_limit():.0%} of the time in operators above 80% of their limit; "
        f"{far / whole:.0%} in those marked [red]◀[/], below half of it"
    )


def _giga(rate: float | None) -> str:
    return "-" if rate is None else f"{rate / 1e9:.3g}"
