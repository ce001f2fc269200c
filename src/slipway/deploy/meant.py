"""What names of other tools mean where `slipway.compile` and a `Model` have none of that name.

Each row is of words and of what to write instead; words that are close to a name that there is are
answered with that one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from slipway.errors import ArgumentTypeError, did_you_mean

F = TypeVar("F", bound=Callable[..., Any])
Rows = tuple[tuple[str, str], ...]

_ARGUMENTS: Rows = (
    ("shape input_shape input_shapes shape_dict in_shapes input_size",
     "write shapes={'image': (1, 3, 224, 224)}, by the inputs' names"),
    ("batch batch_size max_batch_size dynamic_axes dynamic_shapes",
     "sizes that the file leaves open are said by its names for them, dims={'batch': (1, 8)}, or "
     "by shapes="),
    ("input_data sample_input sample_inputs example_inputs inputs args",
     "a PyTorch module's inputs are example="),
    ("device devices platform arch cpu mcpu triple providers provider backend hardware gpu",
     "target= says what it is compiled for: 'llvm' is this machine, `slipway targets` lists "
     "boards, 'opencl', 'vulkan' and 'cuda' are GPUs; compiled, it runs on a device by "
     ".on('HOST:PORT')"),
    ("board", "target= takes boards with Linux; firmware for a microcontroller is made by `slipway "
     "micro create MODEL DIR --board NAME`"),
    ("fp16 half dtype precision mixed_precision compute_type",
     "`slipway compile --precision float16` computes in 16 bits"),
    ("int8 quantize quantization quant_config calibration",
     "slipway.quantize(model, calibration=...) makes a model of integers first"),
    ("num_threads threads nthreads intra_op_num_threads sess_options",
     "threads are said when it runs: slipway.runtime.set_num_threads(n)"),
    ("output output_path out path save_to filename", "write .save('model.tar') of what it returns"),
    ("optimize optimization_level optimization opt level", "opt_level= is 0 to 3"),
    ("verbose verbosity log_level debug progress", "quiet=True leaves the progress out"),
    ("mod module onnx onnx_model model_path model_file file filename_or_bytes source",
     "the model stands first, without a name"),
    ("entry signature_key", "signature= is the entry of a .tflite file"),
)  # fmt: skip

_ATTRIBUTES: Rows = (
    ("predict infer inference forward execute invoke evaluate apply transform",
     "call it: model(x), or model.run({'image': x}) for all outputs by name"),
    ("get_inputs input_names input_shape input_shapes input_info get_input_details input_spec",
     "model.inputs has name, shape and dtype of each"),
    ("get_outputs output_names output_shape output_info get_output_details output_spec",
     "model.outputs has name, shape and dtype of each"),
    ("export export_library serialize write dump to_file save_model export_model",
     "model.save('model.tar') writes it"),
    ("to cuda cpu deploy upload connect remote device send push",
     "model.on('HOST:PORT') is this model on a device"),
    ("eval train requires_grad_ half float",
     "a compiled model has one mode and one type: call it, model(x)"),
    ("summary describe info plot graph_summary", "print(model), or model.report('model.html')"),
    ("bench time timeit latency measure speed time_evaluator",
     "model.benchmark() times runs, model.profile() each layer"),
    ("quantize", "slipway.quantize(model_file, calibration=...) makes a model of integers"),
    ("set_input get_output get_input allocate_tensors AllocateTensors set_tensor get_tensor",
     "model.executor is the GraphModule that has these; model(x) does both"),
    ("test validate compare verify agree", "model.check() compares with what it was made from"),
    ("graph params lib module get_params mod", "model.library is what relay.build returned"),
    ("load load_model from_file open", "slipway.load('model.tar') opens an artifact"),
    ("get_modelmeta metadata meta", "model.inputs and model.outputs have names, shapes, labels"),
)  # fmt: skip


def _advice(rows: Rows, word: str, known: Iterable[str]) -> str:
    for words, told in rows:
        if word in words.split():
            return f": {told}"
    return f".{did_you_mean(word, known)}"


def own_arguments(function: F) -> F:
    """Return `function`, which answers arguments that it has not with what they may mean."""
    parameters = inspect.signature(function).parameters
    named = [n for n, p in parameters.items() if p.kind is not p.KEYWORD_ONLY]

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        for word in options:
            if word not in parameters:
                told = _advice(_ARGUMENTS, word, parameters)
                raise ArgumentTypeError(f"{function.__name__} has no argument {word!r}{told}")
        if len(args) > len(named):
            raise ArgumentTypeError(
                f"{function.__name__} takes {' and '.join(named)} without a name; what comes after "
                f"has one, as in {function.__name__}(model, shapes={{'image': (1, 3, 224, 224)}})"
            )
        return function(*args, **options)

    return cast("F", call)


def inputs_alone(function: F) -> F:
    """Return a method that takes inputs, which answers onnxruntime's (names, inputs)."""

    @functools.wraps(function)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        if len(args) > 1:
            raise ArgumentTypeError(
                "run takes the inputs alone, run({'image': x}), and returns all outputs by name; "
                "onnxruntime's run(None, feeds) is list(model.run(feeds).values())"
            )
        return function(self, *args, **options)

    return cast("F", call)


class MeantNames:
    """A class that answers names that it has not with those that it has."""

    if not TYPE_CHECKING:  # a type checker shall find them

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError: there is no such attribute."""
            if hasattr(type(self), name):  # a property, whose own code lacks an attribute
                return object.__getattribute__(self, name)
            kind = type(self).__name__
            known = [one for one in dir(self) if not one.startswith("_")]
            told = "" if name.startswith("_") else _advice(_ATTRIBUTES, name, known)
            raise AttributeError(f"a {kind} has no attribute {name!r}{told}")
