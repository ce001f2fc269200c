"""``tvmc.registry``: executors and runtimes, with their options, in a command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from slipway.driver.tvmc.model import TVMCException
from slipway.errors import did_you_mean

_VALUES = {"1": True, "0": False, "true": True, "false": False}


def generate_registry_args(
    parser: argparse.ArgumentParser, registry: Any, default: str | None = None
) -> None:
    """Add ``--executor``, and ``--executor-aot-interface-api`` and so on, or those of a Runtime."""
    option = _option(registry)
    parser.add_argument(f"--{option}", default=default, help=" or ".join(registry.OPTIONS))
    for kind, name in _names(registry):
        parser.add_argument(f"--{option}-{kind}-{name}", help=f"of the {option} {kind}")


def reconstruct_registry_entity(args: argparse.Namespace, registry: Any) -> Any:
    """Return what a line asks for, and None where it asks for none.

    Raises TVMCException for one that is not there, and for options of another.
    """
    option = _option(registry)
    kind = getattr(args, option)
    if kind is None:
        return None
    if kind not in registry.OPTIONS:
        raise TVMCException(
            f'{registry.__name__} "{kind}" is not defined: there are '
            f"{', '.join(registry.OPTIONS)}.{did_you_mean(kind, registry.OPTIONS)}"
        )
    given = {}
    for other, name in _names(registry):
        value = getattr(args, f"{option}_{other}_{name}".replace("-", "_"))
        if value is None:
            continue
        if other != kind:
            raise TVMCException(
                f"Passed --{option}-{other}-{name} but did not specify {other} {option}: "
                f"--{option} is {kind}"
            )
        given[name] = _VALUES.get(value.lower(), int(value) if value.isdigit() else value)
    return registry(kind, given)


def _option(registry: Any) -> str:
    return str(registry.__name__).lower()


def _names(registry: Any) -> Iterator[tuple[str, str]]:
    for kind, options in registry.OPTIONS.items():
        yield from ((kind, name) for name in options)
