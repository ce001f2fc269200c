"""``slipway targets``: what can be compiled for."""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer

from slipway.cli import console


def targets(
    pattern: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help="Show only what contains this text.", show_default=False
        ),
    ] = "",
    cpus: Annotated[
        str | None,
        typer.Option(metavar="ARCH", help="List the CPUs (-mcpu) of x86, aarch64, arm, riscv ..."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the kinds of target and the tags that stand for a whole board: what each compiles to.

    This machine's processors and caches are shown too.

    For example:

        slipway targets

        slipway targets raspberry

        slipway targets --cpus aarch64
    """
    if cpus is not None:
        from slipway.target.cpus import known_cpus

        names = [name for name in known_cpus(cpus) if pattern in name]
        print(json.dumps(names) if as_json else "\n".join(names))
        return
    from slipway.target import Target
    from slipway.target.cores import host_options
    from slipway.target.outcome import MEANINGS, outcome_of

    rows = [
        (name, outcome_of(Target(name)), str(Target(name)))
        for names in (Target.list_kinds(), sorted(Target.list_tags()))
        for name in names
        if pattern in name
    ]
    if as_json:
        keys = ("name", "compiles_to", "target")
        print(json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=1))
        return
    if not rows:
        console.out.print(f"No kind and no tag contains {pattern!r}.")
        return
    console.table(("kind or tag", "compiles to", "target"), rows, text_columns=3)
    for outcome in dict.fromkeys(row[1] for row in rows):
        console.out.print(f"{outcome}: {MEANINGS[outcome]}")
    if not pattern:
        host = f"llvm -num-cores={os.cpu_count() or 1} {host_options()}".rstrip()
        console.out.print(f"This machine, with its processors and the sizes of its caches: {host}")
