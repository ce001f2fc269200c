"""From what a user has (a module, a traced function, a .pt2 file) to an exported program.

torch is imported here, and only when one of these functions is called.
"""

from __future__ import annotations

import inspect
import io
import logging
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from slipway.errors import MissingPackageError, ModelError, OpenShapeError
from slipway.frontends.told_shapes import told_shape
from slipway.frontends.torch.archive import as_data, unknown_operators
from slipway.frontends.torch.assumptions import export_with_assertions
from slipway.frontends.torch.containers import stand_ins
from slipway.frontends.torch.converters import load_converters
from slipway.frontends.torch.open_sizes import ProgramDims
from slipway.frontends.torch.traced.fast_paths import fast_paths
from slipway.frontends.torch.traced.quantised import is_quantised, with_integers
from slipway.frontends.torch.traced.scripted import (
    SCRIPT_DTYPES,
    completed_infos,
    exported_script,
    holds_script,
    is_script,
    loaded_script,
)
from slipway.relay.dims import Line, SymbolDim, is_open, line_of
from slipway.version import install_line

DTYPES = (
    "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
OLDEST = (2, 6)
# In what torch.export says of modules whose sizes or branches depend on data.
DATA_DEPENDENT = (
    "GuardOnDataDependentSymNode", "DataDependentOutputException", "DynamicOutputShapeException",
    "data-dependent", "data dependent", "unbacked",
)  # fmt: skip

UNPROVED = "Constraints violated"  # what torch says of ranges that it cannot prove
_LISTING = threading.RLock()  # held while torch lists its operators once

InputInfos = Sequence[Any] | Mapping[str, Any] | None
Info = tuple[str, tuple[int, ...], str]


def torch_package() -> Any:
    """Return torch.  Raises MissingPackageError when it is missing or too old."""
    try:
        import torch
    except ImportError as error:
        raise MissingPackageError(
            f"reading PyTorch models needs torch: {install_line('torch')} (on a machine "
            "without a GPU, from https://download.pytorch.org/whl/cpu)"
        ) from error
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise MissingPackageError(
            f"torch {torch.__version__} is too old: torch {wanted} or newer is needed"
        )
    return torch


def read_infos(infos: InputInfos, default_dtype: str) -> list[Info]:
    """Return (name, shape, dtype) of each (name, shape) or (name, (shape, dtype))."""
    pairs = list(infos.items()) if isinstance(infos, Mapping) else list(infos or ())
    found = []
    for entry in pairs:
        try:
            name, given = entry
            nested = (
                len(given) == 2 and not isinstance(given[0], str) and hasattr(given[0], "__iter__")
            )
            shape, dtype = given if nested else (given, default_dtype)
            extents = told_shape(str(name), shape)
            plain = str(dtype).split(".")[-1]
            found.append((str(name), extents, SCRIPT_DTYPES.get(plain, plain)))
        except (TypeError, ValueError):
            raise ModelError(
                f"input_infos has {entry!r}; write (name, shape) or (name, (shape, dtype)), for "
                'example [("image", (1, 3, 224, 224)), ("ids", ((1, 128), "int64"))]'
            ) from None
    for name, _, dtype in found:
        if dtype and dtype not in DTYPES:
            raise ModelError(f"the input {name!r} is of dtype {dtype}; use one of {DTYPES}")
    return found


def exported_program(model: Any, given: InputInfos, default_dtype: str) -> tuple[Any, list[Info]]:
    """Return the ExportedProgram of a model, and what is given of all its inputs in order.

    Its operators have a converter where possible.

    Raises ModelError when the model cannot be exported, with torch's reason.
    """
    torch = torch_package()
    if isinstance(model, (str, Path)) and holds_script(_existing(Path(model))):
        model = loaded_script(torch, Path(model))
    if is_script(torch, model):
        given = completed_infos(torch, model, given)
    infos = read_infos(given, default_dtype)
    if isinstance(model, (str, Path)):
        with stand_ins(torch, Path(model)):
            return _closed(torch, _loaded(torch, Path(model)), infos)
    if isinstance(model, torch.nn.Module) and is_quantised(torch, model):
        model = with_integers(torch, model, _examples(torch, infos, model))
    if isinstance(model, torch.export.ExportedProgram):
        program = model
    elif is_script(torch, model):
        examples = _examples(torch, infos, model) if infos else ()
        sizes = _dynamic_shapes(torch, infos)
        program = exported_script(
            torch, model, lambda module: _exported(torch, module, examples, sizes and (sizes,))
        )
    elif isinstance(model, torch.nn.Module):
        dynamic = _as_arguments(model, _dynamic_shapes(torch, infos))
        program = _exported(torch, model, _examples(torch, infos, model), dynamic)
    else:
        raise ModelError(
            "from_pytorch takes an ExportedProgram, an nn.Module, a traced or scripted module, or "
            f"the path of a .pt2 file, not a {type(model).__name__}"
        )
    return _closed(torch, program, infos)


def _closed(torch: Any, program: Any, infos: list[Info]) -> tuple[Any, list[Info]]:
    """Return a program of fixed shapes whose operators have a converter, and all its inputs."""
    inputs = user_inputs(program)
    infos = _completed(inputs, infos)
    opened = any(is_open(d) for _, shape, _ in infos for d in shape)
    if any(_is_open(value) for value in inputs.values()) and not (opened or _bounded(program)):
        program = _fixed(torch, program, inputs, infos)
    return _decomposed(torch, program), infos


def user_inputs(program: Any) -> dict[str, Any]:
    """Return the fake tensor of each input of a program by name, without weights and buffers."""
    specs = program.graph_signature.input_specs
    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
    return {
        node.name: node.meta["val"]
        for node, spec in zip(nodes, specs, strict=True)
        if spec.kind.name == "USER_INPUT" and hasattr(node.meta.get("val"), "shape")
    }


def _bounded(program: Any) -> bool:
    """Return whether the program itself says how large each of its open sizes becomes."""
    dims = ProgramDims(program.range_constraints)
    sizes = [dims.of(d) for value in user_inputs(program).values() for d in value.shape]
    return all(not isinstance(d, SymbolDim) or d.high is not None for d in sizes)


def _is_open(value: Any) -> bool:
    return any(not isinstance(d, int) for d in value.shape)


def _completed(inputs: Mapping[str, Any], infos: list[Info]) -> list[Info]:
    """Return infos of all inputs, in order, where those given have the program's own names.

    Inputs that are not given keep their shape, if it is fixed, and dtypes left out are the
    program's.
    """
    dtypes = {name: str(value.dtype).removeprefix("torch.") for name, value in inputs.items()}
    given = {name: (shape, dtype) for name, shape, dtype in infos}
    if given and all(name in inputs for name in given):
        for name, value in inputs.items():
            if name not in given and not _is_open(value):
                given[name] = tuple(value.shape), dtypes[name]
        infos = [(name, *given[name]) for name in inputs if name in given]
    own = list(dtypes.values()) + ["float32"] * len(infos)
    return [(name, shape, dtype or own[i]) for i, (name, shape, dtype) in enumerate(infos)]


def _size(dim: Any) -> int:
    """Return the extent of a dimension; of an open one, that of the example of its export."""
    if isinstance(dim, int):
        return dim
    hint = getattr(getattr(dim, "node", None), "hint", None)
    return hint if isinstance(hint, int) else 2


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise ModelError(f"there is no model file {str(path)!r}")
    return path


def _loaded(torch: Any, path: Path) -> Any:
    try:
        with quiet(), as_data(torch, path) as checked:
            program = torch.export.load(str(checked))
        program._guards_code = []  # texts that torch makes Python of; sizes are checked here
        return program
    except ModelError:
        raise
    except Exception as error:  # torch raises many unrelated classes here
        if unknown := unknown_operators(torch, path):
            raise ModelError(
                f"{str(path)!r} uses operators that this torch ({torch.__version__}) does not "
                f"have: {', '.join(unknown)}. Import the package that defines them in a Python "
                "program that passes the file, or the program itself, to slipway.compile"
            ) from None
        raise ModelError(
            f"{str(path)!r} is not a program that torch.export.save wrote, or it is damaged: "
            f"{_reason(error)}"
        ) from error


def _examples(torch: Any, infos: Sequence[Info], model: Any) -> tuple[Any, ...]:
    """Return tensors of the inputs' types: zeros for integers, which index everything."""
    if not infos:
        raise ModelError(
            f"a {type(model).__name__} does not say its inputs: pass input_infos, for example "
            'input_infos=[("image", (1, 3, 224, 224))]'
        )
    made = []
    for _, sizes, dtype in infos:
        shape = tuple(map(_example_size, sizes))
        kind = getattr(torch, dtype or "float32")
        if kind.is_floating_point:
            made.append(torch.linspace(-1, 1, int(np.prod(shape))).reshape(shape).to(kind))
        else:
            made.append(torch.zeros(shape, dtype=kind))
    return tuple(made)


def _example_size(extent: int) -> int:
    """Return a size to trace with: torch takes 0 and 1 for sizes that stay."""
    if not isinstance(extent, SymbolDim):
        return int(extent)
    line = line_of(extent)
    if line is not None and line.variable is not extent.formula:
        return line.times * _example_size(SymbolDim(line.variable)) + line.more
    high = extent.low + 8 if extent.high is None else extent.high
    return min(max(extent.low + 3, 5), high)


def _dynamic_shapes(torch: Any, infos: Sequence[Info]) -> Any:
    """Return torch's own dimensions for those of the inputs that are open; None without any."""
    lines = {extent: _line(extent) for _, shape, _ in infos for extent in shape if is_open(extent)}
    if not lines:
        return None
    known: dict[Any, tuple[Any, int]] = {}
    for line in lines.values():
        base = SymbolDim(line.variable)
        # torch takes a size that others are times of for 2 at least: a smaller one is counted on.
        alone = all(other.is_plain for other in lines.values() if other.variable is line.variable)
        shift = 0 if alone else max(0, 2 - base.low)
        high = None if base.high is None else base.high + shift
        made = torch.export.Dim(str(base), min=base.low + shift, max=high)
        known.setdefault(line.variable, (made, shift))

    def dim_of(extent: int) -> Any:
        line = lines[extent]
        root, shift = known[line.variable]
        times = root if line.times == 1 else line.times * root
        more = line.more - line.times * shift
        return times + more if more else times

    return tuple({a: dim_of(d) for a, d in enumerate(shape) if is_open(d)} for _, shape, _ in infos)


def _as_arguments(module: Any, dynamic: tuple[Any, ...] | None) -> Any:
    """Return the dimensions of inputs as a module's arguments are: those of ``*args`` are one."""
    kinds = [p.kind for p in inspect.signature(module.forward).parameters.values()]
    if dynamic is None or inspect.Parameter.VAR_POSITIONAL not in kinds:
        return dynamic
    first = kinds.index(inspect.Parameter.VAR_POSITIONAL)
    return (*dynamic[:first], dynamic[first:])


def _line(extent: Any) -> Line:
    line = line_of(extent)
    if line is None:
        raise ModelError(
            f"input_infos has the size {extent}: write Dim(name, low, high), or a number of times "
            "it and a number more"
        )
    return line


def _exported(torch: Any, module: Any, examples: tuple[Any, ...], dynamic: Any = None) -> Any:
    # A program's own module cannot change its mode, and was exported in one.
    changes = not isinstance(module, torch.fx.GraphModule)
    training = [m for m in module.modules() if getattr(m, "training", False)] if changes else []
    fast = torch.backends.mha.get_fastpath_enabled()
    try:
        if changes:
            module.eval()
        torch.backends.mha.set_fastpath_enabled(False)  # its fused operators are not ATen's core
        with quiet(), apart(torch):
            try:
                program = torch.export.export(
                    module, examples, dynamic_shapes=dynamic, strict=False
                )
            except Exception as error:
                if UNPROVED not in str(error):
                    raise
                program = export_with_assertions(torch, module, examples, dynamic)
                if program is None:
                    raise
                return program
            if _is_narrower(torch, program, dynamic):
                return export_with_assertions(torch, module, examples, dynamic) or program
            return program
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"torch.export cannot export {type(module).__name__}: {_reason(error)}.{_advice(error)}"
        ) from error
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for part in training:
            part.training = True


def _is_narrower(torch: Any, program: Any, dynamic: Any) -> bool:
    """Return whether torch exported for fewer sizes than it was told, which of some it does."""
    if dynamic is None:
        return False
    wanted = torch.utils._pytree.tree_leaves(dynamic, is_leaf=_is_axes)
    for value, axes in zip(user_inputs(program).values(), wanted, strict=False):
        for axis, dim in axes.items():
            root = getattr(dim, "root", dim)
            expr = getattr(getattr(value.shape[axis], "node", None), "expr", None)
            for symbol in getattr(expr, "free_symbols", ()):
                bounds = program.range_constraints.get(symbol)
                if bounds is not None and bounds.lower > root.min:
                    return True
    return False


def _is_axes(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(axis, int) for axis in value)


def _fixed(torch: Any, program: Any, inputs: Mapping[str, Any], infos: Sequence[Info]) -> Any:
    """The program exported again for the shapes given; without them an error that asks for them."""
    given = [name for name, _, _ in infos]
    missing = {n: v for n, v in inputs.items() if _is_open(v) and n not in given}
    if len(infos) < len(inputs) and missing:
        listed = "; ".join(f"{n} ({', '.join(map(str, v.shape))})" for n, v in missing.items())
        sizes = {name: shape for name, shape, _ in infos}
        sizes |= {n: tuple(_size(d) for d in v.shape) for n, v in missing.items()}
        raise OpenShapeError(
            f"the program leaves sizes of its inputs open: {listed}.",
            f"Pass input_infos={list(sizes.items())}.",
            sizes,
        )
    return _exported(torch, program.module(), _examples(torch, infos, program))


def _decomposed(torch: Any, program: Any) -> Any:
    """Rewrite operators without a converter into smaller ones; those with one stay whole."""
    served = load_converters()
    with _listed_once(torch):
        table = torch.export.default_decompositions()
        for overload in list(table):
            space, _, name = overload._schema.name.partition("::")
            if (name if space == "aten" else f"{space}::{name}") in served:
                table.pop(overload)
        table.update(fast_paths(torch))
        try:
            with quiet(), apart(torch):
                return program.run_decompositions(table)
        except Exception as error:
            raise ModelError(
                f"torch cannot decompose the program into ATen operators: {_reason(error)}"
            ) from error


@contextmanager
def _listed_once(torch: Any) -> Iterator[None]:
    """Let torch list its composite operators once, and not again for each of its namespaces.

    A decomposition enters no operators; torch, which cannot know that, lists them 52 times.
    """
    utils: Any = getattr(getattr(torch, "_export", None), "utils", None)
    if not hasattr(utils, "_materialize_cpp_cia_ops"):  # another version's torch
        yield
        return
    with _LISTING:
        listing = utils._materialize_cpp_cia_ops
        utils._materialize_cpp_cia_ops = cache(listing)
        try:
            yield
        finally:
            utils._materialize_cpp_cia_ops = listing


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    broken = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    said = broken[0] if UNPROVED in lines[0] and broken else lines[0]
    return f"{type(error).__name__}: {said[:300]}"


def _advice(error: Exception) -> str:
    """Return what to export instead of a module whose sizes or branches depend on its data."""
    names = [kind.__name__ for kind in type(error).__mro__]
    text = f"{' '.join(names)} {error}"
    if not any(sign in text for sign in DATA_DEPENDENT):
        return ""
    return (
        " What it does depends on values inside the model: boxes that are kept or dropped, masks, "
        "loops over results. Export the part before that, whose shapes are fixed, and do the rest "
        "in Python: of a detector of torchvision its network, for example a module that returns "
        "model.head(list(model.backbone(x).values())) for RetinaNet, SSD and FCOS, or "
        "model.rpn.head(list(model.backbone(x).values())) for the R-CNNs"
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Without torch's warnings, log lines and prints on its own internals."""
    log = logging.getLogger("torch")
    level = log.level
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            log.setLevel(level)


def apart(torch: Any) -> AbstractContextManager[object]:
    """Apart from a compilation of torch's own that this one may be part of.

    Inside ``torch.compile(model, backend="tvm")`` an export would share its stand-ins for tensors,
    and spoil what it guards.
    """
    tracing = getattr(getattr(torch, "_guards", None), "tracing", None)
    return nullcontext() if tracing is None else tracing(None)
