"""``tvmc.pass_config``: options of a PassContext as texts ``name=value``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slipway.driver.tvmc.model import TVMCException
from slipway.errors import did_you_mean
from slipway.transform.config import CONFIG


def parse_configs(input_configs: Sequence[str] | None) -> dict[str, Any]:
    """Return the options by name.

    Raises TVMCException for a text of another form, for a name that no PassContext has, and for an
    option that is more than a number, a truth value or a text.
    """
    return dict(map(_config, input_configs or ()))


def _config(text: str) -> tuple[str, Any]:
    name, equals, value = map(str.strip, text.partition("="))
    if not equals or not name:
        raise TVMCException(f"{text!r} is not of the form name=value")
    key = CONFIG.get(name)
    if key is None:
        raise TVMCException(
            f"PassContext has no config key {name!r}.{did_you_mean(name, CONFIG)} "
            "PassContext.list_configs() names all of them"
        )
    read = _READ.get(key.kind)
    if read is None:
        raise TVMCException(f"{name} takes a {key.kind} ({key.meaning}): give it in Python")
    try:
        return name, read(value)
    except (ValueError, KeyError):
        raise TVMCException(f"{name} takes a {key.kind} ({key.meaning}), not {value!r}") from None


def _truth(text: str) -> bool:
    return {"true": True, "1": True, "false": False, "0": False}[text.lower()]


_READ: Mapping[str, Callable[[str], Any]] = {"bool": _truth, "int": int, "str": str}
