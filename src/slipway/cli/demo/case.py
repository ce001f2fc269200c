"""What the demo runs: a model, inputs for it, and the outputs to expect."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.cli.model_file import ModelOptions, parse_bindings, read_model
from slipway.deploy.model_file import format_of

if TYPE_CHECKING:
    from slipway.relay.expr import Function
    from slipway.target import Target

Arrays = dict[str, Any]
Outputs = list[Any]
RANDOM_RUNS = 2


@dataclass
class Case:
    """A model in relay form, inputs of each run, and what a reference makes of them.

    `reference` is the name of the reference, `expected` its outputs per run; `labels` the
    right class per run where the truth is known.
    """

    path: Path
    module: Any
    parameters: Arrays
    inputs: list[Arrays]
    reference: str | None = None
    expected: list[Outputs] = field(default_factory=list)
    labels: Any = None


def digits_case() -> Case:
    """Return the example model with its held-out test set and stored logits."""
    folder = Path(str(files("slipway"))) / "models" / "digits"
    module, parameters = read_model(folder / "digits.onnx")
    with np.load(folder / "digits_test.npz", allow_pickle=False) as stored:
        images, labels, logits = stored["images"], stored["labels"], stored["logits"]
    return Case(
        path=folder / "digits.onnx",
        module=module,
        parameters=parameters,
        inputs=[{"image": image[None]} for image in images],
        reference="training script, float64",
        expected=[[row[None]] for row in logits],
        labels=labels,
    )


def model_case(path: Path, options: ModelOptions, target: Target) -> Case:
    """Return the user's model with random inputs, and onnxruntime's outputs if there."""
    module, parameters = options.read(path, target)
    inputs = [
        {
            name: array
            for name, array in made_up_inputs(module["main"], seed).items()
            if name not in parameters
        }
        for seed in range(RANDOM_RUNS)
    ]
    case = Case(path=path, module=module, parameters=parameters, inputs=inputs)
    if format_of(path, options.model_format) == "onnx":
        add_onnxruntime(case, parse_bindings(options.bind))
    return case


def made_up_inputs(main: Function, seed: int = 0) -> dict[str, Any]:
    """Return an array for each input, of values that mean something to the model."""
    from slipway.compiler.input_values import input_values
    from slipway.deploy.reference import random_inputs
    from slipway.deploy.tensors import specs_of
    from slipway.relay.meaning import NO_MEANINGS

    known = input_values(main, NO_MEANINGS)
    described = [
        {
            "name": param.name_hint,
            "shape": tuple(int(size) for size in param.tensor_type.shape),
            "dtype": param.tensor_type.dtype,
            **known.get(param.name_hint, {}),
        }
        for param in main.params
    ]
    return random_inputs(specs_of(described), seed)


def add_onnxruntime(case: Case, constants: Arrays) -> None:
    """Fill in the reference, when onnxruntime is there; `constants` are inputs of the file."""
    try:
        import onnxruntime
    except ModuleNotFoundError:
        return
    from slipway.frontends.onnx.reference import as_inputs

    session = onnxruntime.InferenceSession(str(case.path), providers=["CPUExecutionProvider"])
    case.reference = f"onnxruntime {onnxruntime.__version__}"
    bound = as_inputs(case.path, constants)
    case.expected = [session.run(None, {**arrays, **bound}) for arrays in case.inputs]
