"""``tvmc.pass_config``: options of a PassContext as ``--pass-config name=value`` gives them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from slipway.driver.tvmc.model import TVMCException
from slipway.errors import did_you_mean
from slipway.runtime.packed_func import get_global_func
from slipway.tir import transform as tir_transform
from slipway.transform.config import CONFIG

__all__ = ["get_pass_config_value", "load_function", "parse_configs"]

_ADDED = "tir.add_lower_pass"
_TRUTHS = {"true": True, "false": False, "1": True, "0": False}


def load_function(full_name: str) -> Any:
    """Return a registered function, a pass ``tir.transform.UnrollLoop``, or ``module.function``."""
    found = get_global_func(full_name, allow_missing=True)
    if found is not None:
        return found
    module_name, _, name = full_name.rpartition(".")
    if module_name == "tir.transform":
        if not hasattr(tir_transform, name):
            raise TVMCException(
                f"there is no pass tir.transform.{name}.{did_you_mean(name, dir(tir_transform))}"
            )
        return getattr(tir_transform, name)
    if not module_name:
        raise TVMCException(f"{full_name!r} is no registered function, and names no module")
    if module_name.partition(".")[0] == "tvm":
        module_name = f"slipway{module_name.removeprefix('tvm')}"
    module = import_module(module_name)
    if not hasattr(module, name):
        raise TVMCException(f"No function '{name}' found in module '{module_name}'.")
    return getattr(module, name)


def get_pass_config_value(name: str, value: str, config_type: str) -> Any:
    """Return the value of an option; raises TVMCException for one that its type does not have."""
    if config_type == "bool" and value.lower() in _TRUTHS:
        return _TRUTHS[value.lower()]
    if config_type == "int" and value.lstrip("-").isdigit():
        return int(value)
    if config_type == "str":
        return value
    if config_type == "list" and name == _ADDED:
        return _added_passes(value)
    if config_type == "dict":
        try:
            found = json.loads(value)
        except ValueError:
            found = None
        if isinstance(found, dict):
            return found
    raise TVMCException(
        f"Invalid value '{value}' for configuration '{name}', which takes a {config_type}"
        f"{' as JSON' if config_type in ('dict', 'list') else ''}"
    )


def _added_passes(value: str) -> list[tuple[int, Any]]:
    words = [word.strip() for word in value.split(",")]
    if len(words) % 2:
        raise TVMCException(f"'{_ADDED}' is of the form {_ADDED}=level,pass,level,pass")
    found = []
    for level, name in zip(words[::2], words[1::2], strict=True):
        if not level.isdigit():
            raise TVMCException(f"Only integers are levels in '{_ADDED}', not {level!r}")
        found.append((int(level), load_function(name)()))
    return found


def parse_configs(input_configs: Sequence[str] | None) -> dict[str, Any]:
    """Return the options of texts ``name=value``; passes that several add are joined."""
    found: dict[str, Any] = {}
    for config in input_configs or ():
        name, equals, value = (part.strip() for part in config.partition("="))
        if not equals or not name:
            raise TVMCException(
                f"Invalid format for configuration '{config}', use <config>=<value>"
            )
        if name not in CONFIG:
            raise TVMCException(
                f"Configuration '{name}' is not there.{did_you_mean(name, CONFIG)} "
                f"There are: {', '.join(CONFIG)}"
            )
        parsed = get_pass_config_value(name, value, CONFIG[name].kind)
        found[name] = found[name] + parsed if name in found and name == _ADDED else parsed
    return found
