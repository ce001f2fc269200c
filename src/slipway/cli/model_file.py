"""Reading what the user names on the command line: a model file, and the shapes of its inputs."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any

from slipway.errors import ModelError, did_you_mean

FORMATS = {".onnx": "onnx", ".tflite": "tflite", ".pt2": "pytorch"}
FORMAT_NAMES = "onnx|tflite|pytorch"
_SHAPE = re.compile(r"\s*(?P<name>[^\s:]+)\s*:\s*\[(?P<dims>[\d\s,?]*)\]")


Shapes = dict[str, tuple[int, ...]]


def format_of(path: Path, model_format: str | None = None) -> str:
    """Return the format of the model at `path`, a value of `FORMATS`.

    `model_format` overrides the suffix.  Raises ModelError for an unknown format,
    FileNotFoundError when there is no such file.
    """
    chosen = model_format or FORMATS.get(path.suffix.lower())
    if chosen is None or chosen not in FORMATS.values():
        known = ", ".join(FORMATS)
        asked = model_format or path.suffix or "none"
        raise ModelError(
            f"{path}: cannot tell the model's format from {asked!r} (known: {known})."
            f"{did_you_mean(asked, FORMATS)} Name it with --model-format {FORMAT_NAMES}."
        )
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return chosen


def read_model(
    path: Path, shapes: Shapes | None = None, model_format: str | None = None
) -> tuple[Any, dict[str, Any]]:
    """Return (relay module, parameters) of the model at `path`.

    Raises what `format_of` raises, and ModelError for a file that is damaged or uses what is not
    supported.
    """
    from slipway import relay

    match format_of(path, model_format):
        case "onnx":
            return relay.frontend.from_onnx(path, shape=shapes)  # type: ignore[no-any-return]
        case "pytorch":
            infos = list(shapes.items()) if shapes else None
            return relay.frontend.from_pytorch(path, infos)  # type: ignore[no-any-return]
        case _:
            return relay.frontend.from_tflite(  # type: ignore[no-any-return]
                path.read_bytes(), shape_dict=shapes
            )


def survey_model(
    path: Path, shapes: Shapes | None = None, model_format: str | None = None
) -> list[Any]:
    """Return the `NodeReport` of every node of the model at `path`, supported or not."""
    match format_of(path, model_format):
        case "onnx":
            from slipway.frontends.onnx.importer import check_onnx

            return check_onnx(path, shapes)
        case "pytorch":
            from slipway.frontends.torch.importer import check_pytorch

            return check_pytorch(path, list(shapes.items()) if shapes else None)
        case _:
            from slipway.frontends.tflite.importer import check_tflite

            return check_tflite(path.read_bytes(), shapes)


def parse_shapes(text: str | None) -> Shapes | None:
    """Return {name: shape} of tvmc's spelling, ``"image:[1,1,8,8] mask:[1]"``; ``?`` stays open.

    Raises ModelError with an example when the text is spelled otherwise.
    """
    if not text:
        return None
    from slipway.relay.types import ANY

    shapes: Shapes = {}
    position = 0
    while position < len(text.rstrip(" ,")):
        match = _SHAPE.match(text, position)
        if match is None:
            raise ModelError(
                f"--input-shapes: cannot read {text[position:]!r}; write name:[sizes], several "
                'with a blank between them: --input-shapes "image:[1,3,224,224] mask:[1]"'
            )
        sizes = match["dims"].replace(",", " ").split()
        shapes[match["name"]] = tuple(ANY if size == "?" else int(size) for size in sizes)
        position = match.end()
        while position < len(text) and text[position] in " ,":
            position += 1
    return shapes
