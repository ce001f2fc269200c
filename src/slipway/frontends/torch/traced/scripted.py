"""Traced and scripted modules and functions, and files of them, as exported programs.

A script is run by TorchScript's own interpreter under ``torch.export``, which sees every operator
that it calls: branches and loops over what is known become the steps that they take.  One whose
branches depend on data is walked through in Python (`walk`), which keeps them.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from slipway.errors import ModelError, OpenShapeError
from slipway.frontends.torch.traced.walk import Walk, callable_of, in_place, nodes_of

# The dtypes of TorchScript, in small letters.
SCRIPT_DTYPES = {
    "float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32",
    "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "bfloat16": "bfloat16",
}  # fmt: skip
_PREFIX = "script."
# Operators with which a script reads and writes files; the code of a file is looked at for them.
_OF_FILES = ("save", "from_file", "_from_file", "load")

Export = Callable[[Any], Any]


def is_script(torch: Any, model: Any) -> bool:
    """Return whether a model is TorchScript."""
    return isinstance(model, torch.jit.ScriptModule | torch.jit.ScriptFunction)


def holds_script(path: Path) -> bool:
    """Return whether a file is what torch.jit.save wrote; torch need not be there."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.partition("/")[2] for name in archive.namelist()]
    except (zipfile.BadZipFile, OSError, NotImplementedError):
        return False
    return "constants.pkl" in names and any(name.startswith("code/") for name in names)


def loaded_script(torch: Any, path: Path) -> Any:
    """Return the module of a file.  Raises ModelError for one that is damaged or handles files."""
    try:
        with zipfile.ZipFile(path) as archive:
            sources = [n for n in archive.namelist() if "/code/" in n and n.endswith(".py")]
            for name in sources:
                _refuse_files(archive.read(name).decode("utf-8", "replace"), name, path)
        return torch.jit.load(str(path), map_location="cpu").eval()
    except ModelError:
        raise
    except Exception as error:  # torch raises many unrelated classes here
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise ModelError(
            f"{str(path)!r} is not a script that torch.jit.save wrote, or it is damaged: "
            f"{type(error).__name__}: {(lines or [''])[0][:300]}"
        ) from error


def _refuse_files(source: str, name: str, path: Path) -> None:
    for operator in _OF_FILES:
        if f"torch.{operator}(" in source or f"ops.aten.{operator}(" in source:
            raise ModelError(
                f"{str(path)!r} calls torch.{operator} in {name}: a model file that reads or "
                "writes files is not loaded; load it with torch.jit.load and pass the module"
            )


def takes(torch: Any, model: Any) -> dict[str, Any]:
    """Return the types of a script's inputs in its graph, by the names of its signature.

    Raises ModelError for one that is no tensor, and has no value of its own.
    """
    schema = callable_of(torch, model).schema
    own = 0 if isinstance(model, torch.jit.ScriptFunction) else 1  # the module itself
    found = {}
    for argument, value in zip(schema.arguments[own:], list(model.graph.inputs())[own:],
                               strict=True):  # fmt: skip
        if value.type().kind() == "TensorType":
            found[argument.name] = value.type()
        elif not argument.has_default_value():
            raise ModelError(
                f"the script's input {argument.name!r} is of type {argument.type}: tensors are "
                "inputs of a model; give it a default, or wrap the script in a module that passes "
                "it"
            )
    return found


def completed_infos(torch: Any, model: Any, infos: Any) -> Any:
    """Return input_infos with what a script says itself: a trace knows its inputs' types.

    Dtypes that are left out are the trace's; without infos its shapes are too.

    Raises OpenShapeError for a script whose inputs are not told.
    """
    graph = takes(torch, model)
    known = [_known(kind) for kind in graph.values()]
    if infos is None and all(shape is not None for shape, _ in known):
        return [(name, (shape, dtype)) for name, (shape, dtype) in zip(graph, known, strict=True)]
    if infos is None:
        shapes = [(1, 3, 224, 224) if shape is None else shape for shape, _ in known]
        sizes = dict(zip(graph, shapes, strict=True))
        raise OpenShapeError(
            f"a script does not say the shapes of its inputs, {', '.join(graph)}.",
            f"Pass input_infos, for example input_infos={list(sizes.items())}.",
            sizes,
        )
    entries = list(infos.items()) if isinstance(infos, Mapping) else list(infos)
    return [_typed(e, known[i][1] if i < len(known) else "") for i, e in enumerate(entries)]


def _typed(entry: Any, dtype: str) -> Any:
    """Return (name, (shape, dtype)) of an entry without a dtype; others as they are."""
    try:
        name, given = entry
        nested = len(given) == 2 and hasattr(given[0], "__iter__")
    except (TypeError, ValueError):
        return entry  # which its reader refuses
    return entry if nested or not dtype else (name, (given, dtype))


def _known(kind: Any) -> tuple[tuple[int, ...] | None, str]:
    """Return the shape of a type of TorchScript, None if it is open, and its dtype or ""."""
    sizes = kind.sizes()
    shape = None if sizes is None or None in sizes else tuple(sizes)
    return shape, SCRIPT_DTYPES.get((kind.scalarType() or "").lower(), "")


def exported_script(torch: Any, model: Any, export: Export) -> Any:
    """Return the program of a script; `export` makes one of a module with torch.export.

    Raises ModelError with torch's reason, if it cannot.
    """
    held = _with_parameters(torch, model)  # noqa: F841 - as long as the export runs
    try:
        program = export(_runner(torch, model, _interpreter(torch, model)))
    except ModelError:
        program = export(_runner(torch, model, Walk(torch, model)))
    return _renamed(program)


def _with_parameters(torch: Any, model: Any) -> list[Any]:
    """Make the weights of a script from a file parameters again, which torch.export wants.

    Returns them: the script itself keeps their numbers, not their class.
    """
    made = []
    for part in () if isinstance(model, torch.jit.ScriptFunction) else model.modules():
        for name, weight in part.named_parameters(recurse=False):
            if not isinstance(weight, torch.nn.Parameter):
                made.append(torch.nn.Parameter(weight.detach(), weight.requires_grad))
                setattr(part, name, made[-1])
    return made


def _interpreter(torch: Any, model: Any) -> Callable[..., Any]:
    """Return a script as TorchScript runs it, without its optimiser.

    Its optimiser would keep what stands for tensors now as constants of the caller's script.
    """
    run = callable_of(torch, model)

    def plainly(*inputs: Any) -> Any:
        with torch.jit.optimized_execution(False):
            return run(*inputs)

    return plainly


def _runner(torch: Any, model: Any, run: Callable[..., Any]) -> Any:
    """Return a module that runs a script."""
    function = isinstance(model, torch.jit.ScriptFunction)
    writes = any(in_place(node.kind()) for node in nodes_of(model.inlined_graph))

    class Script(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            if not function:
                self.script = model

        def forward(self, *inputs: Any) -> Any:
            # An input that a script writes to is its caller's, and no further result.
            made = run(*(x.clone() for x in inputs) if writes else inputs)
            # Numbers and constants, which torch cannot give as they are.
            leaves, tree = torch.utils._pytree.tree_flatten(made)
            if inputs and any(isinstance(leaf, torch.Tensor) for leaf in leaves):
                return made
            return tree.unflatten([torch.as_tensor(leaf).clone() for leaf in leaves])

    Script.__name__ = getattr(model, "original_name", type(model).__name__)
    return Script()


def _renamed(program: Any) -> Any:
    """Give the weights of a program the names that they have in the script."""
    signature = program.graph_signature
    for spec in (*signature.input_specs, *signature.output_specs):
        if isinstance(spec.target, str):
            spec.target = spec.target.removeprefix(_PREFIX)
    for table in (program._state_dict, program._constants):
        for name in [n for n in table if n.startswith(_PREFIX)]:
            table[name.removeprefix(_PREFIX)] = table.pop(name)
    return program
