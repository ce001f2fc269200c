"""What a model gives elsewhere: in the framework it comes from, or a function of the caller's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from slipway.deploy.tensors import Array, TensorSpec, as_array, positions_of
from slipway.errors import ArgumentValueError, ExecutionError
from slipway.frontends.tflite.c_array import SUFFIXES as C_SUFFIXES
from slipway.frontends.tflite.c_array import file_bytes

Reference = tuple[str, Callable[[Mapping[str, Array]], Sequence[Any]]]


def reference_of(
    given: Any, constants: Mapping[str, Any], signature: str | None = None
) -> Reference:
    """Return (name, function of the named inputs) of a file, a PyTorch module, or a function.

    `signature` is the entry of a TFLite file.  A function takes the inputs by position.  Raises
    ExecutionError for what cannot be run, with what to install.
    """
    if isinstance(given, str | Path):
        return _of_file(Path(given), constants, signature)
    if hasattr(given, "SerializeToString"):
        return _of_onnx(given, constants)
    if hasattr(given, "state_dict") or (hasattr(given, "module") and not inspect.ismodule(given)):
        return _of_torch(given)
    if callable(given):
        return _of_function(given)
    if isinstance(given, Mapping):
        return "the given outputs", lambda arrays: list(given.values())
    raise ExecutionError(
        f"{type(given).__name__} is no kind of reference; give a model file, a PyTorch module, a "
        "function of the inputs, or the outputs themselves as a dictionary"
    )


def _of_function(function: Any) -> Reference:
    name = getattr(function, "__name__", "the reference")

    def run(arrays: Mapping[str, Array]) -> list[Array]:
        try:
            inspect.signature(function).bind(*arrays.values())
        except TypeError as error:
            raise ExecutionError(
                f"the reference {name} does not take the model's {len(arrays)} inputs by position, "
                f"{', '.join(arrays)}: {error}"
            ) from None
        except ValueError:
            pass  # a function that does not say what it takes
        return results_of(function(*arrays.values()))

    return name, run


def results_of(found: Any) -> list[Array]:
    """Return what a function returned as a list of arrays."""
    if isinstance(found, Mapping):
        return [as_array(value) for value in found.values()]
    if isinstance(found, list | tuple):
        return [array for value in found for array in results_of(value)]
    return [as_array(found)]


def _of_file(path: Path, constants: Mapping[str, Any], signature: str | None) -> Reference:
    if path.suffix.lower() == ".onnx":
        return _of_onnx(str(path), constants)
    if path.suffix.lower() in (".tflite", *C_SUFFIXES):
        return _of_tflite(path, constants, signature)
    if path.suffix.lower() == ".pt2":
        import torch

        return _of_torch(torch.export.load(str(path)))
    raise ArgumentValueError(f"{path}: a reference file is .onnx, .tflite or .pt2")


def _of_onnx(model: Any, constants: Mapping[str, Any]) -> Reference:
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise ExecutionError(
            "checking an ONNX model needs ONNX Runtime: pip install onnxruntime; or give another "
            "reference, a function of the inputs for example"
        ) from None
    from slipway.frontends.onnx.operators.ml.dictionaries import texts_of
    from slipway.frontends.onnx.reader import load_model
    from slipway.frontends.onnx.reference import as_inputs

    if isinstance(model, str):
        contents = model if _is_utf8(model) else Path(model).read_bytes()
    else:
        contents = model.SerializeToString()
    session = onnxruntime.InferenceSession(contents, providers=["CPUExecutionProvider"])
    bound = as_inputs(model, constants)
    kinds = {i.name: i.type for i in session.get_inputs()}
    textual = [name for name, kind in kinds.items() if kind == "tensor(string)"]
    tables = [name for name, kind in kinds.items() if kind.startswith("map(")]
    names = [output.name for output in session.get_outputs()]
    worded = [output.name for output in session.get_outputs() if "string" in output.type]
    texts = texts_of(load_model(model)) if textual or tables or worded else {}

    def run(arrays: Mapping[str, Array]) -> Sequence[Any]:
        own: dict[str, Any] = {
            name: np.array([*texts[name], ""], object)[arrays[name]] for name in textual
        }
        for name in tables:
            keys = map(int, texts[name]) if kinds[name].startswith("map(int") else texts[name]
            own[name] = dict(zip(keys, arrays[name][0].tolist(), strict=True))
        try:
            found = session.run(None, {**arrays, **own, **bound})
        except Exception as error:  # of classes that onnxruntime does not show
            raise ExecutionError(
                f"onnxruntime does not run the model with these inputs: {error}. Give inputs that "
                "the model takes"
            ) from error
        return [
            _numbers(value, texts.get(name, ())) for name, value in zip(names, found, strict=True)
        ]

    return f"onnxruntime {onnxruntime.__version__}", run


def _numbers(value: Any, labels: Sequence[str]) -> Any:
    """Return positions for texts, a row of numbers for each dictionary, and all else as it is."""
    if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
        return np.array([list(row.values()) for row in value], np.float32)
    if isinstance(value, np.ndarray) and value.dtype.kind in "USO":
        return positions_of(value, labels)
    return value


def _is_utf8(name: str) -> bool:
    """Whether ONNX Runtime can be given a file's name; it takes no other encodings."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _of_tflite(path: Path, constants: Mapping[str, Any], signature: str | None) -> Reference:
    in_source = path.suffix.lower() in C_SUFFIXES
    held = {"model_content": file_bytes(path)} if in_source else {"model_path": str(path)}
    try:
        interpreter = _interpreter(held)
    except ModuleNotFoundError:
        raise ExecutionError(
            "checking a TFLite model needs LiteRT: pip install ai-edge-litert; or give another "
            "reference, a function of the inputs for example"
        ) from None
    except ValueError as error:
        raise ExecutionError(
            f"LiteRT does not read {path.name}: {str(error).splitlines()[0][:200]}. Give another "
            "reference, a function of the inputs for example"
        ) from error
    if signature is not None:
        runner = interpreter.get_signature_runner(signature)
        return "LiteRT", lambda arrays: [
            value for _, value in sorted(runner(**arrays, **constants).items())
        ]

    def run(arrays: Mapping[str, Array]) -> list[Any]:
        details = interpreter.get_input_details()
        free = [detail for detail in details if detail["name"] not in constants]
        if len(free) != len(arrays):
            names = ", ".join(detail["name"] for detail in free)
            raise ExecutionError(
                f"LiteRT takes the inputs {names}, and the model {', '.join(arrays)}: what "
                "LiteRT keeps between runs is an input here. Give another reference, a function of "
                "the inputs for example"
            )
        for detail, value in zip(free, arrays.values(), strict=True):
            interpreter.resize_tensor_input(detail["index"], list(value.shape))
        interpreter.allocate_tensors()
        for detail, value in zip(free, arrays.values(), strict=True):
            interpreter.set_tensor(detail["index"], value)
        for detail in details:
            if detail["name"] in constants:
                bound = np.asarray(constants[detail["name"]], detail["dtype"])
                interpreter.set_tensor(detail["index"], bound.reshape(detail["shape"]))
        interpreter.invoke()
        return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]

    return "LiteRT", run


def _interpreter(held: Mapping[str, Any]) -> Any:
    """Return LiteRT's interpreter of a file, by the kernels whose rounding is documented.

    XNNPACK, which it takes by itself, is one step away in some outputs of quantised files; for
    those it has reference kernels, which are slow and exact.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    made = Interpreter(**held, experimental_op_resolver_type=plain)
    scales = (t["quantization_parameters"]["scales"] for t in made.get_tensor_details())
    if not any(map(len, scales)):
        return made
    return Interpreter(**held, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)


def _of_torch(module: Any) -> Reference:
    import torch

    runs = module.module() if hasattr(module, "graph_signature") else module

    def run(arrays: Mapping[str, Array]) -> list[Array]:
        with torch.no_grad():
            return results_of(runs(*(torch.from_numpy(value) for value in arrays.values())))

    return f"PyTorch {torch.__version__}", run


def random_inputs(specs: Sequence[TensorSpec], seed: int) -> dict[str, Array]:
    """Return an array for each input, of values that mean something to the model.

    Those of its range where it tells one (pixels, quantised integers), else normal values for
    floats, all for 8 bits, [0, 128) for wider integers.  Open dimensions have their upper bounds.
    """
    rng = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for spec in specs:
        if spec.dtype.startswith(("float", "bfloat")):
            drawn = (
                rng.uniform(*spec.values, spec.largest)
                if spec.values
                else rng.standard_normal(spec.largest)
            )
            dtype = "float32" if spec.dtype == "bfloat16" else spec.dtype
            arrays[spec.name] = drawn.astype(dtype)
        else:
            low, high = spec.values or (0, 1 if spec.dtype == "bool" else 127)
            arrays[spec.name] = rng.integers(int(low), int(high) + 1, spec.largest).astype(
                spec.dtype
            )
    return arrays
