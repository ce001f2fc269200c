"""``tvmc.frontends``: reading model files, a class for each format."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from slipway.driver.tvmc.model import TVMCException, TVMCModel
from slipway.errors import did_you_mean
from slipway.frontends.keras.importer import from_keras
from slipway.frontends.onnx.importer import from_onnx
from slipway.frontends.tensorflow.importer import from_tensorflow
from slipway.frontends.tflite.importer import from_tflite
from slipway.frontends.torch.importer import from_pytorch
from slipway.ir.function import IRModule
from slipway.relay.text import parser

__all__ = [
    "Frontend", "KerasFrontend", "OnnxFrontend", "PyTorchFrontend", "RelayFrontend",
    "TFLiteFrontend", "TVMCException", "TVMCImportError", "TensorflowFrontend",
    "get_frontend_by_name", "get_frontend_names", "guess_frontend", "load_model",
]  # fmt: skip

Shapes = Mapping[str, Sequence[int]]
Imported = tuple[IRModule, dict[str, Any]]


class TVMCImportError(TVMCException):
    """A package that reads a format is not installed."""


class TVMCFileError(TVMCException, FileNotFoundError):
    """There is no file of a model."""


class Frontend:
    """What reads the files of one format."""

    NAME: ClassVar[str]
    SUFFIXES: ClassVar[tuple[str, ...]]

    @classmethod
    def name(cls) -> str:
        """Return the format's name, which ``--model-format`` takes."""
        return cls.NAME

    @classmethod
    def suffixes(cls) -> list[str]:
        """Return the endings of its files' names, without the dot."""
        return list(cls.SUFFIXES)

    def load(self, path: str, shape_dict: Shapes | None = None, **kwargs: Any) -> Imported:
        """Return the module and the weights in a file."""
        raise NotImplementedError


class KerasFrontend(Frontend):
    """Files of Keras, read by Keras itself."""

    NAME = "keras"
    SUFFIXES = ("h5", "keras")

    def load(self, path: str, shape_dict: Shapes | None = None, **kwargs: Any) -> Imported:
        """Return the module and the weights in a file."""
        keras = _package("keras")
        model = keras.models.load_model(path)
        return from_keras(model, shape=shape_dict, **kwargs)


class OnnxFrontend(Frontend):
    """ONNX files."""

    NAME = "onnx"
    SUFFIXES = ("onnx",)

    def load(self, path: str, shape_dict: Shapes | None = None, **kwargs: Any) -> Imported:
        """Return the module and the weights in a file."""
        _package("onnx")
        return from_onnx(Path(path), shape=shape_dict, **kwargs)


class TensorflowFrontend(Frontend):
    """Frozen graphs of TensorFlow."""

    NAME = "pb"
    SUFFIXES = ("pb",)

    def load(self, path: str, shape_dict: Shapes | None = None, **kwargs: Any) -> Imported:
        """Return the module and the weights in a file."""
        graph = _package("tensorflow").compat.v1.GraphDef()
        try:
            graph.ParseFromString(Path(path).read_bytes())
        except Exception as error:  # protobuf's own class, of whichever version
            raise TVMCException(f"{path} is no graph of TensorFlow: {error}") from error
        return from_tensorflow(graph, shape=shape_dict, **kwargs)


class TFLiteFrontend(Frontend):
    """TFLite files."""

    NAME = "tflite"
    SUFFIXES = ("tflite",)

    def load(self, path: str, shape_dict: Shapes | None = None, **kwargs: Any) -> Imported:
        """Return the module and the weights in a file."""
        return from_tflite(Path(path).read_bytes(), shape_dict=shape_dict, **kwargs)


class PyTorchFrontend(Frontend):
    """Traces, scripts and exported programs of PyTorch."""

    NAME = "pytorch"
    SUFFIXES = ("pth", "zip", "pt", "pt2")

    def load(self, path: str, shape_dict: Shapes | None = None, **kwargs: Any) -> Imported:
        """Return the module and the weights in a file."""
        _package("torch")
        return from_pytorch(Path(path), list(shape_dict.items()) if shape_dict else None, **kwargs)


class RelayFrontend(Frontend):
    """Relay programs as text."""

    NAME = "relay"
    SUFFIXES = ("relay",)

    def load(self, path: str, shape_dict: Shapes | None = None, **kwargs: Any) -> Imported:
        """Return the module in a file; weights are constants of it."""
        if shape_dict or kwargs:
            raise TVMCException(f"{path}: a text has its shapes, and its reader takes no options")
        found = parser.parse(Path(path).read_text(encoding="utf-8"))
        return found if isinstance(found, IRModule) else IRModule.from_expr(found), {}


ALL_FRONTENDS: tuple[type[Frontend], ...] = (
    KerasFrontend, OnnxFrontend, TensorflowFrontend, TFLiteFrontend, PyTorchFrontend,
    RelayFrontend,
)  # fmt: skip
_NOT_READ = {"pdmodel": "paddle", "paddle": "paddle"}


def get_frontend_names() -> list[str]:
    """Return the formats that a model file may have."""
    return [frontend.NAME for frontend in ALL_FRONTENDS]


def get_frontend_by_name(name: str) -> Frontend:
    """Return what reads a format; raises TVMCException for one that is not there."""
    for frontend in ALL_FRONTENDS:
        if name == frontend.NAME:
            return frontend()
    known = get_frontend_names()
    paddle = " paddle2onnx writes an .onnx of Paddle's." if name in _NOT_READ else ""
    raise TVMCException(
        f"a model of format {name!r} cannot be read; there are {', '.join(known)}."
        f"{did_you_mean(name, known)}{paddle} Say it with model_format="
    )


def guess_frontend(path: str) -> Frontend:
    """Return what reads a file, by its name's ending; raises TVMCException for an unknown one."""
    suffix = Path(path).suffix.lower().removeprefix(".")
    for frontend in ALL_FRONTENDS:
        if suffix in frontend.SUFFIXES:
            return frontend()
    try:
        return get_frontend_by_name(suffix)
    except TVMCException as error:
        raise TVMCException(f"{path}: {error}") from None


def load_model(
    path: str,
    model_format: str | None = None,
    shape_dict: Shapes | None = None,
    **kwargs: Any,
) -> TVMCModel:
    """Return the model in a file; its name's ending says the format, or `model_format` does.

    `shape_dict` fixes sizes that the file leaves open.  Further options go to the importer.
    """
    frontend = get_frontend_by_name(model_format) if model_format else guess_frontend(str(path))
    if not Path(path).is_file():
        raise TVMCFileError(f"there is no file {path}")
    shapes = {n: tuple(s) for n, s in (shape_dict or {}).items()} or None
    module, params = frontend.load(str(path), shapes, **kwargs)
    return TVMCModel(module, dict(params))


def _package(name: str) -> Any:
    """Return a package that reads a format; raises TVMCImportError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise TVMCImportError(f"{name} is needed to read this model: pip install {name}") from error
