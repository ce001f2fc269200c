"""``tvmc.registry``: options of executors and runtimes as arguments of a command line."""

from __future__ import annotations

import argparse
from typing import Any

from slipway.driver.tvmc.model import TVMCException
from slipway.relay.backend import Executor, Runtime

__all__ = ["generate_registry_args", "reconstruct_registry_entity"]

_TYPES = {"IntImm": int, "runtime.String": str}
Registry = type[Executor] | type[Runtime]


def generate_registry_args(
    parser: argparse.ArgumentParser, registry: Registry, default: str | None = None
) -> None:
    """Add ``--executor`` and ``--executor-aot-interface-api`` and so on, or those of runtimes."""
    what = registry.__name__
    flag = what.lower()
    parser.add_argument(f"--{flag}", default=default, help=f"{what} to compile the model with")
    for kind in registry.list_registered():
        for option, type_ in registry.list_registered_options(kind).items():
            parser.add_argument(
                f"--{flag}-{kind}-{option}", type=_TYPES[type_], help=f"{what} {kind} {option}"
            )


def reconstruct_registry_entity(args: argparse.Namespace, registry: Registry) -> Any:
    """Return the Executor or Runtime that a line asks for, None where it names none."""
    what = registry.__name__
    flag = what.lower()
    name = getattr(args, flag)
    if name is None:
        return None
    if name not in registry.list_registered():
        raise TVMCException(
            f'{what} "{name}" is not defined; there are {", ".join(registry.list_registered())}'
        )
    chosen: dict[str, Any] = {}
    for kind in registry.list_registered():
        for option in registry.list_registered_options(kind):
            value = getattr(args, f"{flag}_{kind}_{option}".replace("-", "_"), None)
            if value is None:
                continue
            if kind != name:
                raise TVMCException(
                    f"Passed --{flag}-{kind}-{option} but did not specify {kind} {flag}"
                )
            chosen[option] = value
    return registry(name, chosen)
