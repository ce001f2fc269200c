"""`tvmc.load`: a model file as a module, by its format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway.driver.tvmc.model import TVMCException, TVMCModel
from slipway.errors import did_you_mean
from slipway.frontends.onnx.importer import from_onnx
from slipway.frontends.tflite.importer import from_tflite
from slipway.frontends.torch.importer import from_pytorch
from slipway.ir.function import IRModule
from slipway.relay.text import parser

FORMATS = {
    ".onnx": "onnx", ".tflite": "tflite", ".pt2": "pytorch", ".pt": "pytorch", ".pth": "pytorch",
    ".relay": "relay",
}  # fmt: skip


def get_frontend_names() -> list[str]:
    """Return the formats that a model file may have."""
    return list(dict.fromkeys(FORMATS.values()))


class TVMCImportError(TVMCException):
    """A model of a format that is not there."""


def load_model(
    path: str,
    model_format: str | None = None,
    shape_dict: Mapping[str, Sequence[int]] | None = None,
    **kwargs: Any,
) -> TVMCModel:
    """Return the model in a file; its name's ending says the format, or `model_format` does.

    `shape_dict` fixes sizes that the file leaves open.  Further options go to the importer.
    """
    file = Path(path)
    chosen = model_format or FORMATS.get(file.suffix.lower())
    known = get_frontend_names()
    if chosen not in known:
        raise TVMCImportError(
            f"{path}: a model of format {model_format or file.suffix!r} cannot be read; there are "
            f"{', '.join(known)}.{did_you_mean(str(chosen), known)} Say it with model_format="
        )
    if not file.is_file():
        raise TVMCException(f"there is no file {path}")
    shapes = {n: tuple(int(d) for d in s) for n, s in (shape_dict or {}).items()} or None
    if chosen == "onnx":
        module, params = from_onnx(file, shape=shapes, **kwargs)
    elif chosen == "tflite":
        module, params = from_tflite(file.read_bytes(), shape_dict=shapes, **kwargs)
    elif chosen == "pytorch":
        infos = list(shapes.items()) if shapes else None
        module, params = from_pytorch(file, infos, **kwargs)
    else:
        module, params = _relay_text(file), {}
    return TVMCModel(module, dict(params))


def _relay_text(file: Path) -> IRModule:
    found = parser.parse(file.read_text(encoding="utf-8"))
    return found if isinstance(found, IRModule) else IRModule.from_expr(found)
