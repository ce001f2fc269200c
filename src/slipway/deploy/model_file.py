"""Reading a model file of any format that has an importer."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway.errors import FileError, ModelError, OpenShapeError, did_you_mean
from slipway.frontends.tflite.c_array import file_bytes, holds_model
from slipway.frontends.torch.traced.scripted import holds_script

if TYPE_CHECKING:
    from slipway.ir.function import IRModule
    from slipway.target import Target

# What other files of models are, and how their framework writes one of `FORMATS`.
_PYTORCH = (
    "it is PyTorch's file of weights and names of classes, which has no graph: make the module, "
    "load its weights, and "
    "torch.export.save(torch.export.export(module.eval(), (example,)), 'model.pt2')"
)
_KERAS = (
    "Keras saved it: relay.frontend.from_keras(keras.saving.load_model(path)) takes the model "
    "itself, and tf.lite.TFLiteConverter or tf2onnx write files"
)
_SKLEARN = "it holds Python objects: skl2onnx.to_onnx(model, X[:1]) writes a model of scikit-learn"
_LANGUAGE = "it is a language model: `slipway chat` and `slipway serve` compile and run it"
_MADE = "it is {}'s, made from a model in another file: compile that, the .onnx or .tflite say"
_EXPORTED = (
    "it is {}, lowered already: "
    "torch.export.save(torch.export.export(module.eval(), (example,)), 'model.pt2') writes the "
    "model that it was made from"
)
_SAVED = (
    "it is TensorFlow's SavedModel: tf.lite.TFLiteConverter.from_saved_model(folder).convert() or "
    "`python -m tf2onnx.convert --saved-model FOLDER --output model.onnx` write files"
)
_OTHERS = {
    **dict.fromkeys((".mlmodel", ".mlpackage", ".mlmodelc"), _MADE.format("Core ML")),
    **dict.fromkeys((".engine", ".plan", ".trt"), _MADE.format("TensorRT")),
    ".ort": _MADE.format("ONNX Runtime"), ".xml": _MADE.format("OpenVINO"),
    ".mnn": _MADE.format("MNN"), ".param": _MADE.format("ncnn"), ".dlc": _MADE.format("Qualcomm"),
    ".pte": _EXPORTED.format("ExecuTorch's program"),
    ".ptl": _EXPORTED.format("PyTorch Mobile's program"),
    **dict.fromkeys((".caffemodel", ".prototxt"), "it is Caffe's: caffe2onnx writes an .onnx"),
    **dict.fromkeys((".pdmodel", ".pdiparams"), "it is Paddle's: paddle2onnx writes an .onnx"),
    **dict.fromkeys((".cfg", ".weights"), "it is Darknet's: relay.frontend.from_darknet reads it"),
    ".params": "it is MXNet's: relay.frontend.from_mxnet reads it",
    ".pt": _PYTORCH, ".pth": _PYTORCH, ".ckpt": _PYTORCH, ".h5": _KERAS, ".hdf5": _KERAS,
    ".keras": _KERAS, ".pkl": _SKLEARN, ".pickle": _SKLEARN, ".joblib": _SKLEARN,
    ".gguf": _LANGUAGE, ".safetensors": _LANGUAGE,
    ".pb": "it is TensorFlow's graph: relay.frontend.from_tensorflow reads it, and tf2onnx or "
    "tf.lite.TFLiteConverter write files",
}  # fmt: skip
FORMATS = {".onnx": "onnx", ".tflite": "tflite", ".pt2": "pytorch"}
COMPILED = (".tar", ".so")
MODEL_SUFFIXES = (*FORMATS, *_OTHERS)

Shapes = dict[str, tuple[int, ...]]


def format_of(path: Path, model_format: str | None = None, advice: str = "") -> str:
    """Return the format of the model at `path`, a value of `FORMATS`.

    `model_format` overrides the suffix.  Raises ModelError, which ends in `advice`, for an unknown
    format, FileNotFoundError when there is no such file.
    """
    chosen = model_format or FORMATS.get(path.suffix.lower())
    if chosen is None and _OTHERS.get(path.suffix.lower()) == _PYTORCH and holds_script(path):
        chosen = "pytorch"
    if chosen is None and holds_model(path):
        chosen = "tflite"
    if chosen is None or chosen not in FORMATS.values():
        known = ", ".join(FORMATS)
        if model_format is None and path.is_dir():
            saved = _of_folder(path)
            raise ModelError(
                f"{path} is a folder: {saved}" if saved else
                f"{path} is a folder; a model is one file: {known}.{advice}"
            )  # fmt: skip
        if model_format is None and (what := _OTHERS.get(path.suffix.lower())) and path.is_file():
            end = f".{advice}" if what == _PYTORCH else ""  # torch.export's may be called so
            raise ModelError(f"{path} is none of {', '.join(FORMATS)}: {what}{end}")
        if model_format is None and path.suffix.lower() in COMPILED and path.is_file():
            raise ModelError(
                f"{path} is no model but, by its name, compiled already: `slipway run`, profile "
                f"and size take it, other commands the model that it was made from ({known})."
            )
        wanted = model_format or path.suffix or "none"
        raise ModelError(
            f"{path}: cannot tell the model's format from {wanted!r} (known: {known})."
            f"{did_you_mean(wanted, FORMATS)}{advice}"
        )
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        raise FileError(
            f"{path} is a pipe or a device, and a model is read more than once: write it into a "
            f"file first, cat {shlex.quote(str(path))} > model{_suffix_of(chosen)}"
        )
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return chosen


def _suffix_of(chosen: str) -> str:
    return next(suffix for suffix, name in FORMATS.items() if name == chosen)


def _of_folder(path: Path) -> str:
    """Return what a folder is that a framework saved a model in; "" for another."""
    if (path / "saved_model.pb").is_file():
        return _SAVED
    if (path / "config.json").is_file():  # transformers saves its models so
        return f"{_LANGUAGE}. Other models of transformers are exported by optimum-cli export onnx"
    return _OTHERS.get(path.suffix.lower(), "")


def read_model_file(
    path: Path,
    model_format: str,
    shapes: Mapping[str, Any] | None = None,
    constants: Mapping[str, Any] | None = None,
    dense_rounding: str = "double",
    dims: Mapping[str, Any] | None = None,
    signature: str | None = None,
    *,
    counted: bool = True,
) -> tuple[IRModule, dict[str, Any]]:
    """Return (relay module, parameters) of the model of that format at `path`.

    `constants` binds inputs to values; `dense_rounding` is that of `from_tflite`, `dims` and
    `counted` are those of `from_onnx`, `signature` an entry of a TFLite file: no other formats have
    these.  Raises ModelError for a file that is damaged or uses what is not supported,
    and its OpenShapeError for one that leaves sizes open.
    """
    from slipway import relay

    bound = constants or {}
    refuse_dims(path, model_format, dims)
    refuse_signature(path, model_format, signature)
    match model_format:
        case "onnx":
            return relay.frontend.from_onnx(
                path, shape=shapes, constants=bound, dims=dims, counted=counted
            )
        case "pytorch":
            infos = list(shapes.items()) if shapes else None
            return relay.frontend.from_pytorch(path, infos, default_dtype="", constants=bound)
        case _:
            try:
                return relay.frontend.from_tflite(
                    file_bytes(path),
                    shape_dict=shapes,
                    dense_rounding=dense_rounding,
                    constants=bound,
                    signature=signature,
                )
            except ModelError as error:  # bytes have no name of their own
                if not isinstance(error, OpenShapeError) and str(path) not in str(error):
                    error.args = (f"{path}: {error}", *error.args[1:])
                raise


def refuse_dims(path: Path, model_format: str, dims: Mapping[str, Any] | None) -> None:
    """Raise ModelError for sizes of named dimensions where a format has no names for them."""
    if dims and model_format != "onnx":
        raise ModelError(
            f"{path}: dimensions have names in ONNX files alone, and {', '.join(dims)} was given a "
            "size: give the inputs their shapes, with ranges as 1..8 for open sizes"
        )


def refuse_signature(path: Path, model_format: str, signature: str | None) -> None:
    """Raise ModelError for a signature of what is no TFLite file."""
    if signature is not None and model_format != "tflite":
        raise ModelError(
            f"{path}: TFLite files alone have signatures, so that there is no {signature!r}: leave "
            "it out"
        )


def rounding_for(target: Target, given: str | None) -> str:
    """Return `from_tflite`'s dense_rounding for a target, as LiteRT or TensorFlow Lite Micro there.

    `given` overrides it. Raises ModelError for what is no way of rounding.
    """
    if given is None:
        return "double" if target.parsed_triple.is_bare else "single"
    if given not in ("single", "double"):
        raise ModelError(f"--dense-rounding {given}: write single or double")
    return given
