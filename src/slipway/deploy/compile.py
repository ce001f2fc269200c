"""`slipway.compile`: a model of any kind to one that can be called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway import relay
from slipway.arguments import table_of
from slipway.compiler.relay_build import build
from slipway.compiler.states import State
from slipway.deploy.meant import own_arguments
from slipway.deploy.model import Model
from slipway.deploy.model_file import format_of, read_model_file, rounding_for
from slipway.deploy.progress import step
from slipway.deploy.tensors import as_array
from slipway.dtypes import canonical
from slipway.errors import ArgumentTypeError, ModelError, OpenShapeError, TargetError, did_you_mean
from slipway.frontends.told_shapes import told_shapes
from slipway.ir.function import IRModule
from slipway.relay.expr import Expr, Function
from slipway.target import Target
from slipway.toolchain.tempdir import TempDirectory, tempdir
from slipway.transform.context import PassContext

Relay = tuple[IRModule, dict[str, Any]]


@own_arguments
def compile(
    model: Any,
    target: str | Target = "llvm",
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    example: Any = None,
    dims: Mapping[str, Any] | None = None,
    signature: str | None = None,
    constants: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    state: State | None = None,
    opt_level: int = 3,
    name: str | None = None,
    quiet: bool = False,
) -> Model:
    """Compile a model for a target and return it as something to call.

    Parameters
    ----------
    model
        the path of a .onnx, .tflite or .pt2 file, or its contents as bytes; an ONNX ModelProto; a
        PyTorch module or ExportedProgram; or a relay module.
    target
        what it is to run on: "llvm" is this machine, "raspberry-pi/4b-aarch64" a board
        (``slipway targets`` lists them).
    shapes
        of inputs, by name: needed where the model leaves sizes open.
    dims
        of an ONNX model, by its names for them: a size, or a range as (1, 8), which stays open.
    signature
        of a .tflite file: the entry to compile, where it has several.
    example
        for a PyTorch module: inputs like those it will get, one or a tuple of them.
    constants
        inputs that always have one value, by name; they are inputs no longer.
    params
        values for parameters of a relay module.
    state
        inputs that the model keeps between calls, each with the output (name or number) that is its
        next value.
    opt_level
        of the graph passes: 0 changes nothing, 3 is for speed.
    name
        of the model, in what is shown and saved; that of the file otherwise.
    quiet
        no progress, which a terminal shows otherwise.

    Raises ModelError for a model that cannot be read, TargetError for an unknown target.

    """
    if hasattr(target, "shape") or isinstance(target, tuple | list):
        raise ArgumentTypeError(
            "the second argument is the target, and this is an array: a PyTorch module's inputs "
            "are example=, as in slipway.compile(module, example=x)"
        )
    chosen = target if isinstance(target, Target) else Target(target)
    if chosen.parsed_triple.is_page:
        raise TargetError(
            f"{chosen} runs in a page, and nothing here can call it: write a .wasm with "
            "`slipway compile --target web/wasm` or relay.build(...).export_library, load it in "
            "JavaScript, or upload it to a page that `slipway web-device` serves"
        )
    if name is not None and not isinstance(name, str):
        raise ArgumentTypeError(f"name is {name!r}; write a word, or leave it out")
    state = table_of(state, "state", "{'past': 'present'}")
    dims = table_of(dims, "dims", "{'batch': (1, 8)}")
    params = table_of(params, "params", "{'weight': array}")
    constants = table_of(constants, "constants", "{'rate': 16000}")
    folder = tempdir()
    if isinstance(model, bytes | bytearray | memoryview):
        model = _as_file(bytes(model), folder)
    own_name = name or _name_of(model)
    with step(f"Reading {own_name}", quiet):
        module, values = _read(model, chosen, shapes, example, constants, dims, signature)
    with step(f"Compiling for {chosen}", quiet), PassContext(opt_level=opt_level):
        library = build(module, chosen, params=_checked(module, values, params), state=state)
    artifact = folder / f"{own_name}.tar"
    library.export_library(str(artifact))
    return Model(
        artifact,
        name=own_name,
        library=library,
        source=None if isinstance(model, IRModule | Expr) else model,
        constants=constants,
        signature=signature,
        folder=folder,
        quiet=quiet,
    )


def _as_file(contents: bytes, folder: TempDirectory) -> Path:
    """Return a file of these contents, whose ending says which format they begin in."""
    suffix = ".pt2" if contents.startswith(b"PK") else ".onnx"
    path = folder / f"model{'.tflite' if contents[4:8] == b'TFL3' else suffix}"
    path.write_bytes(contents)
    return path


def _name_of(model: Any) -> str:
    if isinstance(model, str | Path):
        return Path(model).stem or "model"
    if isinstance(model, IRModule | Expr):
        return "model"
    return type(model).__name__.lower()


def _read(
    model: Any,
    target: Target,
    shapes: Mapping[str, Sequence[int]] | None,
    example: Any,
    constants: Mapping[str, Any] | None,
    dims: Mapping[str, Any] | None,
    signature: str | None,
) -> Relay:
    given = hasattr(model, "SerializeToString") or isinstance(model, str | Path)
    if dims and not given:
        raise ModelError("dims names dimensions of an ONNX file; give other models their shapes")
    if signature is not None and not isinstance(model, str | Path):
        raise ModelError(
            "signature names an entry of a .tflite file; leave it out for other models"
        )
    if isinstance(model, IRModule):
        return model, {}
    if isinstance(model, Expr):
        return IRModule.from_expr(model), {}
    sizes = told_shapes(shapes, {name: name for name in dims or ()}) or None
    counted = target.parsed_triple.is_bare  # whose sizes are all fixed
    try:
        if isinstance(model, str | Path):
            path = Path(model)
            return read_model_file(
                path,
                format_of(path),
                sizes,
                constants,
                rounding_for(target, None),
                dims,
                signature,
                counted=counted,
            )
        if hasattr(model, "SerializeToString") and hasattr(model, "opset_import"):
            return relay.frontend.from_onnx(
                model, shape=sizes, constants=constants, dims=dims, counted=counted
            )
        if hasattr(model, "state_dict") or hasattr(model, "inlined_graph"):
            # A program knows its inputs, and a script says itself what it does not.
            told = hasattr(model, "graph_signature") or hasattr(model, "inlined_graph")
            if sizes is None and example is None and not told:
                raise ModelError(
                    f"a {type(model).__name__} does not say what it takes: pass example=, inputs "
                    "like those it will get, or shapes={'name': (1, 3, 224, 224)}"
                )
            infos = _input_infos(sizes, example)
            return relay.frontend.from_pytorch(model, infos, default_dtype="", constants=constants)
    except OpenShapeError as error:
        advice = f"Pass shapes={error.shapes!r}"
        if error.dimensions:
            advice += f", or a range that stays open: dims={{{error.dimensions[0]!r}: (1, 8)}}"
        raise ModelError(f"{error.problem} {advice}") from None
    raise ModelError(
        f"{type(model).__name__} is no kind of model; give the path of a .onnx, .tflite "
        "or .pt2 file, an ONNX ModelProto, a PyTorch module or ExportedProgram, or a relay module"
    )


def _checked(
    module: IRModule, values: Mapping[str, Any], params: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return all parameters; ModelError for one that the model does not have."""
    main = module["main"]
    names = [str(p.name_hint) for p in main.params] if isinstance(main, Function) else []
    for name in params or {}:
        if name not in names:
            raise ModelError(
                f"params: the model has no parameter {name!r}.{did_you_mean(name, names)} It has "
                f"{', '.join(names) or 'none'}"
            )
    return {**values, **(params or {})}


def _input_infos(sizes: Mapping[str, tuple[int, ...]] | None, example: Any) -> list[Any] | None:
    """Return `from_pytorch`'s input_infos of shapes by name, or of example inputs."""
    if example is None:
        return list(sizes.items()) if sizes else None
    given = example if isinstance(example, list | tuple) else (example,)
    arrays = [as_array(value) for value in given]
    names = list(sizes) if sizes else [f"input{i}" for i in range(len(arrays))]
    return [
        (name, (array.shape, canonical(array.dtype)))
        for name, array in zip(names, arrays, strict=True)
    ]
