"""Reading what the user names on the command line: a model file, and the shapes of its inputs."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any

from slipway.errors import ModelError, did_you_mean

FORMATS = {".onnx": "onnx", ".tflite": "tflite"}
_SHAPE = re.compile(r"\s*(?P<name>[^\s:]+)\s*:\s*\[(?P<dims>[\d\s,]*)\]")


def read_model(
    path: Path, shapes: dict[str, tuple[int, ...]] | None = None, model_format: str | None = None
) -> tuple[Any, dict[str, Any]]:
    """Return (relay module, parameters) of the model at `path`.

    `model_format` ("onnx" or "tflite") overrides the suffix.  Raises ModelError for an unknown
    format and for a file that is damaged, FileNotFoundError when there is none.
    """
    chosen = model_format or FORMATS.get(path.suffix.lower())
    if chosen not in FORMATS.values():
        known = ", ".join(FORMATS)
        asked = model_format or path.suffix or "none"
        raise ModelError(
            f"{path}: cannot tell the model's format from {asked!r} (known: {known})."
            f"{did_you_mean(asked, FORMATS)} Name it with --model-format onnx|tflite."
        )
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    from slipway import relay

    if chosen == "onnx":
        return relay.frontend.from_onnx(path, shape=shapes)  # type: ignore[no-any-return]
    try:
        importer = relay.frontend.from_tflite
    except ModuleNotFoundError as missing:
        raise ModelError(
            f"{path}: this version of Slipway reads ONNX only. Convert the model: "
            f"pip install tf2onnx; python -m tf2onnx.convert --tflite {path} --output model.onnx"
        ) from missing
    return importer(path.read_bytes())  # type: ignore[no-any-return]


def parse_shapes(text: str | None) -> dict[str, tuple[int, ...]] | None:
    """Return {name: shape} of tvmc's spelling, ``"image:[1,1,8,8] mask:[1]"``.

    Raises ModelError with an example when the text is spelled otherwise.
    """
    if not text:
        return None
    shapes: dict[str, tuple[int, ...]] = {}
    position = 0
    while position < len(text.rstrip(" ,")):
        match = _SHAPE.match(text, position)
        if match is None:
            raise ModelError(
                f"--input-shapes: cannot read {text[position:]!r}; write name:[sizes], several "
                'with a blank between them: --input-shapes "image:[1,3,224,224] mask:[1]"'
            )
        sizes = match["dims"].replace(",", " ").split()
        shapes[match["name"]] = tuple(int(size) for size in sizes)
        position = match.end()
        while position < len(text) and text[position] in " ,":
            position += 1
    return shapes
