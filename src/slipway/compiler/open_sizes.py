"""The open dimensions of a model's graph, as its tables have them.

Memory is planned for the upper ends of the ranges: each tensor lies where it would with the largest
extent on each axis.  The executor evaluates the formulas once for each new size.

Inputs tell most sizes, and values the others (`relay/analysis/told_sizes.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from slipway import dtypes
from slipway.compiler.model_graph import ModelGraph
from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.relay.dims import ANY, SymbolDim, is_open, range_text, told_by
from slipway.relay.types import TensorType
from slipway.runtime.graph.graph_sizes import MAX_DEPTH, Formula, OpenSize

_LARGEST = (1 << 31) - 1  # elements of a tensor that kernels index with 32 bits
_TOKENS: Mapping[type, str] = {
    E.Add: "+", E.Sub: "-", E.Mul: "*", E.FloorDiv: "//", E.FloorMod: "%",
    E.Min: "min()", E.Max: "max()",
}  # fmt: skip


def largest_shape(type_: TensorType) -> tuple[int, ...]:
    """Return a shape with the upper bounds of its open dimensions."""
    return tuple(_upper(d) for d in type_.shape)


def largest_bytes(type_: TensorType) -> int:
    """Return the bytes that a tensor takes at most."""
    size = dtypes.bytes_of(type_.dtype)
    for extent in largest_shape(type_):
        size *= extent
    return size


def _upper(extent: Any) -> int:
    if not is_open(extent):
        return int(extent)
    assert isinstance(extent, SymbolDim)
    assert extent.high is not None  # see `check_open`
    return extent.high


def formula_of(dim: Any) -> Formula:
    """Return the formula of an open dimension in reverse Polish order."""
    assert isinstance(dim, SymbolDim)
    tokens: list[int | str] = []

    def add(node: Any, held: int) -> None:
        """Add what leaves the value of a node on a stack that holds `held` others."""
        if held == MAX_DEPTH:
            raise LoweringError(
                f"the size {dim} of a tensor is a formula of which more than {MAX_DEPTH} values "
                "are held at once, which the runtime does not evaluate: fix one of its dimensions"
            )
        if isinstance(node, E.IntImm):
            tokens.append(node.value)
        elif isinstance(node, E.Var):
            tokens.append(node.name)
        elif isinstance(node, E.Cast):
            add(node.value, held)
        elif type(node) in _TOKENS:
            add(node.a, held)
            add(node.b, held + 1)
            tokens.append(_TOKENS[type(node)])
        else:
            raise LoweringError(f"the size {dim} of a tensor cannot be evaluated on a device")

    add(dim.formula, 0)
    return tuple(tokens)


def open_sizes(
    types: Iterable[TensorType], tellers: Mapping[str, int] | None = None
) -> tuple[OpenSize, ...]:
    """Return the variables in the shapes of `types`, in the order in which they appear.

    `tellers` are the entries that tell those which values decide.
    """
    known = tellers or {}
    found: dict[E.Var, None] = {}
    for type_ in types:
        for extent in type_.shape:
            if isinstance(extent, SymbolDim):
                found.update(dict.fromkeys(extent.variables))
    dims = [SymbolDim(v) for v in found]
    return tuple(OpenSize(str(d), d.low, _upper(d), known.get(str(d))) for d in dims)


def sizes_of(graph: ModelGraph, tellers: Mapping[str, int] | None = None) -> tuple[OpenSize, ...]:
    """Return the open sizes of a model, and the numbers that values of it must be."""
    known = tellers or {}
    exact = (OpenSize(n, e.size, e.size, known.get(n)) for n, e in graph.exact.items())
    return (*open_sizes((t for node in graph.nodes for t in node.types), known), *exact)


def check_open(graph: ModelGraph) -> None:
    """Raise LoweringError for open dimensions that no library can have, with what to do."""
    inputs = [node for node in graph.nodes if not node.function]  # and constants, of fixed sizes
    stated: set[E.Var] = set()
    names: dict[str, SymbolDim] = {}
    for node in graph.nodes:
        for type_ in node.types:
            _check_type(node.layer or node.name, type_)
            for extent in type_.shape:
                if isinstance(extent, SymbolDim):
                    for dim in map(SymbolDim, extent.variables):
                        other = names.setdefault(str(dim), dim)
                        if other is not dim:
                            raise LoweringError(
                                f"two dimensions are called {dim}: {range_text(dim)} and "
                                f"{range_text(other)}. Give one of them another name."
                            )
    for node in inputs:
        for extent in node.types[0].shape:
            variable = told_by(extent)
            if variable is not None:
                stated.add(variable)
    for dim in names.values():
        if dim.formula not in stated and str(dim) not in graph.tellers:
            raise no_input_tells(dim)


def no_input_tells(dim: SymbolDim) -> LoweringError:
    """Return the error for a size that is not known when the inputs' shapes are."""
    return LoweringError(
        f"no input has the dimension {dim} itself or some times (2 n + 1 tells n), so that it "
        f"cannot be told from the inputs' shapes: give one an axis of Dim({str(dim)!r}, {dim.low}, "
        f"{dim.high})"
    )


def _check_type(where: str, type_: TensorType) -> None:
    count = 1
    for extent in type_.shape:
        if extent is ANY:
            raise LoweringError(
                f"{where!r} gives {type_}, and what the size ? is does not follow from the sizes "
                "of the inputs. Fix a dimension, as in relay.transform.FixShapes, or run the "
                'module with relay.create_executor("vm"), which compiles it for each size.'
            )
        if isinstance(extent, SymbolDim) and extent.high is None:
            raise LoweringError(
                f"{where!r} gives {type_}, and nothing bounds {extent}, for which memory is to be "
                f'planned: give it an upper end, as in Dim("{extent}", {extent.low}, 512)'
            )
        count *= _upper(extent)
    if count > _LARGEST and any(map(is_open, type_.shape)):
        raise LoweringError(
            f"{where!r} gives {type_}, which has up to {count} elements: tensors with open "
            f"dimensions have at most {_LARGEST}. Give a dimension a smaller upper end."
        )


def need_fixed_sizes(graph: ModelGraph, what: str) -> None:
    """Raise LoweringError, with the ways out, where `what` is to hold an open dimension."""
    sizes = sizes_of(graph)
    if sizes:
        listed = ", ".join(f"{s.name} in {s.low}..{s.high}" for s in sizes)
        raise LoweringError(
            f"{what} has fixed sizes, and the model has the open dimension {listed}. Export the "
            "program alone (.o, .a or .tar), whose header has the sizes, compile with "
            'Executor("graph"), or fix the shapes with relay.transform.FixShapes.'
        )
