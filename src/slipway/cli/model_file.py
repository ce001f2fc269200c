"""Reading what the user names on the command line: a model file, and the shapes of its inputs."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.cli.exit_codes import OptionError
from slipway.deploy.model_file import (
    COMPILED,
    Shapes,
    format_of,
    read_model_file,
    refuse_dims,
    refuse_signature,
    rounding_for,
)
from slipway.errors import ArgumentValueError, ModelError, OpenShapeError
from slipway.runtime.arrays.numpy_file import read_numpy_file

if TYPE_CHECKING:
    from slipway.target import Target

ADVICE = " Name it with --model-format onnx|tflite|pytorch."
_SHAPE = re.compile(r"\s*(?P<name>\S+?)\s*:\s*\[(?P<dims>[\w\s,?.=]*)\]")


def read_model(
    path: Path,
    shapes: Shapes | None = None,
    model_format: str | None = None,
    constants: Mapping[str, Any] | None = None,
    dense_rounding: str = "double",
    dims: Mapping[str, Any] | None = None,
    signature: str | None = None,
    *,
    counted: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Return (relay module, parameters) of the model at `path`.

    With `counted`, an output whose size depends on the data has its room and a count beside it.
    Raises what `format_of` and `read_model_file` raise; sizes that it leaves open are asked for in
    the words of the command line.
    """
    try:
        return read_model_file(
            path, format_of(path, model_format, ADVICE), shapes, constants, dense_rounding, dims,
            signature, counted=counted,
        )  # fmt: skip
    except OpenShapeError as error:
        advice = f"Pass {shapes_option(error.shapes)}"
        if error.dimensions and not counted:
            advice += f", or a range that stays open: --dim {error.dimensions[0]}=1..8"
        raise ModelError(f"{error.problem} {advice}") from None


@dataclass(frozen=True)
class ModelOptions:
    """How a command line says that a model file is to be read; every command has all of them."""

    input_shapes: str | None = None
    bind: Sequence[str] | None = None
    model_format: str | None = None
    dense_rounding: str | None = None
    dim: Sequence[str] | None = None
    signature: str | None = None

    def read(
        self, path: Path, target: Target, *, firmware: bool = False
    ) -> tuple[Any, dict[str, Any]]:
        """Return (relay module, parameters) of the model at `path` for a target.

        In `firmware`, which targets without a system are always for, all sizes are fixed: an output
        whose size depends on the data has its room and a count beside it.
        Raises what `read_model` raises, and ModelError for an option that is spelled otherwise.
        """
        return read_model(
            path,
            parse_shapes(self.input_shapes),
            self.model_format,
            parse_bindings(self.bind),
            rounding_for(target, self.dense_rounding),
            parse_dims(self.dim),
            self.signature,
            counted=firmware or target.parsed_triple.is_bare,
        )


def survey_model(
    path: Path,
    shapes: Shapes | None = None,
    model_format: str | None = None,
    constants: Mapping[str, Any] | None = None,
    dims: Mapping[str, Any] | None = None,
    signature: str | None = None,
) -> list[Any]:
    """Return the `NodeReport` of every node of the model at `path`, supported or not.

    Raises OpenShapeError, with shapes that can be assumed, for a model that leaves sizes open.
    """
    bound = constants or {}
    refuse_dims(path, found := format_of(path, model_format, ADVICE), dims)
    refuse_signature(path, found, signature)
    match found:
        case "onnx":
            from slipway.frontends.onnx.importer import check_onnx

            return check_onnx(path, shapes, constants=bound, dims=dims)
        case "pytorch":
            from slipway.frontends.torch.importer import check_pytorch

            infos = list(shapes.items()) if shapes else None
            return check_pytorch(path, infos, default_dtype="", constants=bound)
        case _:
            from slipway.frontends.tflite.c_array import file_bytes
            from slipway.frontends.tflite.importer import check_tflite

            return check_tflite(file_bytes(path), shapes, constants=bound, signature=signature)


def shapes_option(shapes: Mapping[str, Sequence[Any]]) -> str:
    """Return the option of the command line that gives inputs these shapes."""
    listed = (f"{name}:[{','.join(str(d) for d in shape)}]" for name, shape in shapes.items())
    return f'--input-shapes "{" ".join(listed)}"'


def need_file(path: Path) -> None:
    """Raise the system's error for a path that is no file: names are derived from a file's."""
    path.stat()
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))


def need_model(path: Path, model_format: str | None = None) -> None:
    """Raise what `format_of` does for a folder or an artifact, and the system's error for nothing.

    A file's name may be wrong and the file still be a model: that is found out as it is read.
    """
    path.stat()
    if path.is_dir() or (model_format is None and path.suffix.lower() in COMPILED):
        format_of(path, model_format, ADVICE)


def check_module_name(name: str | None) -> None:
    """Raise OptionError for a name that cannot be a part of names in C."""
    from slipway.codegen.names import is_symbol

    if name is not None and not is_symbol(f"tvmgen_{name}", in_c=True):
        raise OptionError(
            f"--module-name {name!r}: names in C begin with it, so that it has letters, digits "
            "and '_' only"
        )


def parse_bindings(texts: Sequence[str] | None) -> dict[str, Any]:
    """Return {name: array} of ``--bind``: a number, nested lists, or @FILE.npy after "name=".

    Raises OptionError with an example when a text is spelled otherwise.
    """
    found: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise OptionError(
                f"--bind {text!r}: write the name of an input, =, and its value: --bind sr=16000, "
                '--bind "scale=[0.5, 2]" or --bind mask=@mask.npy'
            )
        if name in found:
            raise OptionError(f"--bind gives the input {name!r} two values")
        found[name] = _array_file(name, Path(value[1:])) if value[:1] == "@" else _value(text)
    return found


def _value(text: str) -> Any:
    value = text.partition("=")[2]
    try:
        return np.asarray(json.loads(value.lower()))
    except (ValueError, RecursionError):
        raise OptionError(
            f"--bind {text!r}: cannot read {value[:80]!r}; it is a number, true or false, lists of "
            "them in brackets, or @ and the path of a .npy file"
        ) from None


def _array_file(name: str, path: Path) -> Any:
    try:
        stored = read_numpy_file(path)
    except ArgumentValueError as error:
        raise ModelError(f"--bind {name}=@{path}: it is no .npy file ({error})") from None
    if not isinstance(stored, np.ndarray):
        raise ModelError(
            f"--bind {name}=@{path}: a .npz holds several arrays ({', '.join(stored)}); save the "
            "one that is meant: numpy.save('x.npy', array)"
        )
    return stored


def parse_shapes(text: str | None) -> Shapes | None:
    """Return {name: shape} of tvmc's spelling, ``"image:[1,1,8,8] mask:[1]"``.

    ``?`` stays open; ``n=1..8`` is the open dimension n with its range, and ``1..8`` one that no
    other input has.  Raises OptionError with an example when the text is spelled otherwise.
    """
    if not text:
        return None
    shapes: Shapes = {}
    position = 0
    while position < len(text.rstrip(" ,")):
        match = _SHAPE.match(text, position)
        if match is None:
            raise OptionError(
                f"--input-shapes: cannot read {text[position:]!r}; write name:[sizes], several "
                'with a blank between them: --input-shapes "image:[1,3,224,224] mask:[1]"'
            )
        sizes = match["dims"].replace(",", " ").split()
        shapes[match["name"]] = tuple(
            _dimension(size, f"{match['name']}_{axis}") for axis, size in enumerate(sizes)
        )
        position = match.end()
        while position < len(text) and text[position] in " ,":
            position += 1
    return shapes


def parse_dims(texts: Sequence[str] | None) -> dict[str, Any]:
    """Return {name: size or (low, high)} of ``--dim batch=1..8`` and ``--dim batch=4``.

    ``--dim other=batch`` says that another name is the same size, and gives that name.
    Raises OptionError with an example when a text is spelled otherwise.
    """
    found: dict[str, Any] = {}
    names = [text.rpartition("=")[0] for text in texts or ()]
    for text in texts or ():
        name, _, size = text.rpartition("=")
        match = _RANGE.fullmatch(size)
        is_other = size != name and size in names
        if not name or not (size.isdecimal() or is_other or (match and not match["name"])):
            raise OptionError(
                f"--dim {text!r}: write the model's name of a dimension, =, and its size or the "
                "range that stays open: --dim batch=1..8 --dim sequence=128"
            )
        if name in found:
            raise OptionError(f"--dim gives the dimension {name!r} two sizes")
        if is_other:
            found[name] = size
        else:
            found[name] = (int(match["low"]), int(match["high"])) if match else int(size)
    return found


def parse_states(texts: Sequence[str] | None) -> dict[str, str | int]:
    """Return {input: output} of ``--state past=present``; an output may be a number.

    Raises OptionError with an example when a text is spelled otherwise.
    """
    found: dict[str, str | int] = {}
    for text in texts or ():
        name, equals, output = text.partition("=")
        if not name or not equals or not output or name in found:
            raise OptionError(
                f"--state {text!r}: write an input that the model is to keep, once, =, and the "
                "output that is its next value: --state past=present"
            )
        found[name] = int(output) if output.isdecimal() else output
    return found


def _dimension(text: str, own_name: str) -> Any:
    """Return a dimension as `parse_shapes` reads it, of `own_name` where it has a range alone."""
    from slipway.frontends.told_shapes import read_size

    try:
        if not text[:1].isdecimal() and text != "?" and ".." not in text:
            raise ModelError("a name alone has no range, which a library needs")
        return read_size(text, own_name, "")
    except ModelError:
        raise OptionError(
            f"--input-shapes: cannot read the size {text!r}; write a number, ? for an open one, "
            "1..8 for one with a range, n=1..8 for one that several axes have: --input-shapes "
            '"image:[1,3,224,224] mask:[n=1..8]"'
        ) from None


_RANGE = re.compile(r"(?:(?P<name>[^\W\d]\w*)=)?(?P<low>\d+)\.\.(?P<high>\d+)")
