"""``tvmc --config FILE``: a command's options as JSON, each of which the line may give anew.

A name that is no file here is looked for in the folder TVM_CONFIGS_JSON_DIR, and in `configs`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slipway.driver.tvmc.model import TVMCException

CONFIGS_JSON_DIR: str | None = None  # a script may name its own


def get_configs_json_dir() -> str:
    """Return the folder of options that have names: the environment's, else our own."""
    own = os.environ.get("TVM_CONFIGS_JSON_DIR", "")
    if CONFIGS_JSON_DIR is not None:
        return CONFIGS_JSON_DIR
    return own if Path(own).is_dir() and own else str(Path(__file__).parent / "configs")


def read_config(path: str) -> dict[str, Any]:
    """Return what a file of options holds; ``.json`` may be left out of its name."""
    file = Path(path if path.endswith(".json") else f"{path.strip()}.json")
    if not file.is_file():
        named = sorted(Path(get_configs_json_dir()).rglob(file.name))
        file = named[0] if named else file
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise TVMCException(f"--config: {file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise TVMCException(f"--config: {file} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise TVMCException(f'--config: {file} holds no object of options, {{"targets": ...}}')
    return found


def convert_config_json_to_cli(json_params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the options as an argument parser names them, one to a dict.

    ``targets`` are joined, and the options of each become ``target_<kind>_<option>``; an executor
    or a runtime has its ``kind``, and options likewise; ``pass-config`` becomes name=value.
    """
    found: list[dict[str, Any]] = []
    for key, value in json_params.items():
        name = key.replace("-", "_")
        if key == "targets":
            for target in value:
                kind = str(target["kind"])
                found += [
                    {f"target_{kind}_{of}": given} for of, given in target.items() if of != "kind"
                ]
            found.append({"target": ", ".join(str(target["kind"]) for target in value)})
        elif key in ("executor", "runtime"):
            found.append({name: value["kind"]})
            found += [
                {f"{name}_{value['kind']}_{of}".replace("-", "_"): given}
                for of, given in value.items()
                if of != "kind"
            ]
        elif isinstance(value, dict):
            found.append({name: [f"{of}={given}" for of, given in value.items()]})
        else:
            found.append({name: value})
    return found


def words_of(json_params: Mapping[str, Any]) -> list[str]:
    """Return the options as the words of a command line."""
    words: list[str] = []
    for option in convert_config_json_to_cli(json_params):
        ((name, value),) = option.items()
        if name.startswith("target_"):  # the option of a kind keeps its own dashes
            _, kind, of = name.split("_", 2)
            flag = f"--target-{kind}-{of}"
        else:
            flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is not False and value is not None:
            words += [f"{flag}={one}" for one in (value if isinstance(value, list) else [value])]
    return words
