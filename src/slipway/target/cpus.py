"""Which CPUs exist, which features each has, and which features imply others.

The table, data/cpus.json, is generated from LLVM by tools/generate_target_tables.py and uses
LLVM's names.  Reading it needs no LLVM: a target string is checked where no compiler is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from typing import Any

from slipway.errors import TargetError, did_you_mean


@lru_cache(maxsize=1)
def _tables() -> dict[str, Any]:
    path = resources.files("slipway.target").joinpath("data/cpus.json")
    return json.loads(path.read_text())  # type: ignore[no-any-return]


def features_of(table: str) -> list[str]:
    """Return the names of all features of one table."""
    return sorted(_tables()[table]["features"])


def table_of_cpu(cpu: str, prefer: str) -> str | None:
    """Return the table that has `cpu`, `prefer` first; None when no table has it."""
    names = [prefer, *(name for name in _tables() if name not in (prefer, "llvm"))]
    return next((name for name in names if cpu in _tables()[name]["cpus"]), None)


def known_cpus(table: str) -> list[str]:
    """Return the CPUs of an architecture that LLVM knows.  TargetError lists the architectures."""
    tables = _tables()
    if table not in tables:
        raise TargetError(
            f"no architecture is called {table!r}.{did_you_mean(table, tables)} There are "
            f"{', '.join(sorted(tables))}"
        )
    return sorted(tables[table]["cpus"])


def check_cpu(table: str, cpu: str) -> None:
    """Raise TargetError when the architecture has no such CPU."""
    known = _tables()[table]["cpus"]
    if cpu in known:
        return
    other = table_of_cpu(cpu, table)
    hint = f" It is a CPU of {other}: add -mtriple=<{other} triple>." if other else ""
    every = {one for name in _tables() if name != "llvm" for one in _tables()[name]["cpus"]}
    alike = "" if other else did_you_mean(cpu, every)
    raise TargetError(
        f"unknown CPU '-mcpu={cpu}' for {table}.{alike}{hint} "
        f"`slipway targets --cpus {table}` lists them."
    )


def check_features(table: str, features: Iterable[str]) -> None:
    """Raise TargetError when one of "+name" / "-name" is unknown or has no sign."""
    known = _tables()[table]["features"]
    for feature in features:
        if feature[:1] not in ("+", "-"):
            raise TargetError(
                f"feature {feature!r} in -mattr needs a sign: "
                f"'+{feature}' turns it on, '-{feature}' off"
            )
        if feature[1:] not in known:
            raise TargetError(
                f"unknown feature {feature[1:]!r} in -mattr for {table}."
                f"{did_you_mean(feature[1:], known)}"
            )


@lru_cache(maxsize=256)
def resolve_features(table: str, cpu: str, changes: tuple[str, ...]) -> frozenset[str]:
    """Return all features of `cpu`, closed under implication, after "+x" / "-x" changes."""
    entry = _tables()[table]
    implied: dict[str, list[str]] = entry["features"]
    have = _closure(entry["cpus"].get(cpu, ()), implied)
    for change in changes:
        name = change[1:]
        if change[0] == "+":
            have |= _closure([name], implied)
        elif name in have:  # what needs the feature goes with it
            have = {f for f in have if name not in _closure([f], implied)}
    return frozenset(have)


def _closure(start: Iterable[str], implied: dict[str, list[str]]) -> set[str]:
    done: set[str] = set()
    todo = list(start)
    while todo:
        name = todo.pop()
        if name not in done:
            done.add(name)
            todo.extend(implied.get(name, ()))
    return done
