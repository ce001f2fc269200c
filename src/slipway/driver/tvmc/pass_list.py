"""``tvmc.pass_list``: names of passes in a command line."""

import argparse

from slipway.errors import LoweringError
from slipway.transform.names import NAMES, check_names


def parse_pass_list_str(input_string: str) -> list[str]:
    """Return the names in ``FuseOps,tir.UnrollLoop``; raises ArgumentTypeError for unknown ones."""
    names = input_string.split(",")
    unknown = [name for name in names if name and not _is_known(name)]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"no passes have the names {', '.join(unknown)}. There are: {', '.join(sorted(NAMES))}"
        )
    return names


def _is_known(name: str) -> bool:
    try:
        check_names([name], "disabled_pass")
    except LoweringError:
        return False
    return True
