"""``slipway targets``: what can be compiled for."""

from __future__ import annotations

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
) -> None:
    """List the kinds of target, the tags that stand for a whole board, and this machine's caches.

    For example:

        slipway targets

        slipway targets raspberry
    """
    from slipway.target import Target
    from slipway.target.cores import host_words

    kinds = [name for name in Target.list_kinds() if pattern in name]
    tags = {name: str(Target(name)) for name in sorted(Target.list_tags()) if pattern in name}
    if not kinds and not tags:
        console.out.print(f"No kind and no tag contains {pattern!r}.")
        return
    if kinds:
        console.out.print(f"Kinds: {', '.join(kinds)}")
    if tags:
        console.table(("tag", "target"), tags.items(), text_columns=2)
    if not pattern and (words := host_words()):
        console.out.print(f"This machine, with the sizes of its caches: llvm {words}")
