"""``tvmc.pass_list``: the passes that ``--disabled-pass`` names."""

from __future__ import annotations

import argparse

from slipway.driver.tvmc.model import TVMCException
from slipway.errors import did_you_mean
from slipway.relay import transform

__all__ = ["parse_pass_list_str"]


class PassListError(TVMCException, argparse.ArgumentTypeError):
    """A list with a pass that is not there."""


def parse_pass_list_str(input_string: str) -> list[str]:
    """Return the names of a text, "FoldScaleAxis,FuseOps"; raises for one that is no pass."""
    names = [name.strip() for name in input_string.split(",")]
    known = [name for name in dir(transform) if name[:1].isupper()]
    missing = [name for name in names if name and name not in known]
    if missing:
        raise PassListError(
            f"Following passes are not there: {', '.join(missing)}."
            f"{did_you_mean(missing[0], known)} Available: {', '.join(sorted(known))}."
        )
    return names
