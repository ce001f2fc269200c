"""Small integer inputs whose values the stated shapes of the outputs settle.

A model may take the size of what it makes as an input: a number of samples, the extents of a grid.
Read with an unknown in the place of each element, its outputs have shapes that are formulas of
these; where the file states the shapes in numbers, an unknown that a formula has alone is settled,
and the model is read again with its value.  The input stays one, and a caller who gives it another
value asks for another shape than the model states.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.expr import Var as Variable
from slipway.relay.dims import Dim, SymbolDim, at, is_open
from slipway.relay.expr import Var
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.frontends.onnx.converters import NodeView

MOST = 8  # elements of an input that is taken for one of sizes

Values = Mapping[str, np.ndarray[Any, Any]]  # by input: numbers and dimensions


def unknown_values(inputs: Iterable[Var]) -> dict[str, np.ndarray[Any, Any]]:
    """Return a dimension for each element of the inputs that may hold sizes."""
    found = {}
    for var in inputs:
        type_ = var.tensor_type
        if type_.dtype not in ("int32", "int64") or type_.rank > 1:
            continue
        if all(isinstance(d, int) for d in type_.shape) and 0 < type_.size <= MOST:
            symbol = re.sub(r"\W", "_", var.name)
            values = np.empty(type_.size, object)
            values[:] = [Dim(f"_{symbol}_{i}") for i in range(type_.size)]
            found[var.name] = values.reshape(type_.shape)
    return found


def settled_values(
    unknown: Values, made: Iterable[tuple[Sequence[Any], Sequence[int]]]
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the values with those elements as numbers that shapes settle; {} where none is.

    `made` pairs the shape of each output, which has formulas, with the one that the file states.
    """
    equations = [
        (formula, stated)
        for shape, wanted in made
        if len(shape) == len(wanted)
        for formula, stated in zip(shape, wanted, strict=True)
        if isinstance(formula, SymbolDim)
    ]
    sizes: dict[Variable, int] = {}
    for formula, stated in equations:
        solved = _solution(formula, stated)
        if solved is not None:
            sizes.setdefault(*solved)
    if not sizes:
        return {}
    settle = np.frompyfunc(lambda dim: sizes.get(dim.formula, dim), 1, 1)
    return {name: np.asarray(settle(values), object) for name, values in unknown.items()}


def _solution(formula: SymbolDim, stated: int) -> tuple[Variable, int] | None:
    """Return the variable of a formula, and its only value for which the formula is `stated`."""
    if len(formula.variables) != 1:
        return None
    (variable,) = formula.variables
    base, step = at(formula, {variable: 0}), at(formula, {variable: 1})
    factor = step - base
    # Formulas that are proved equal are one object.
    if not factor or SymbolDim(variable) * factor + base is not formula:
        return None
    value, remainder = divmod(stated - base, factor)
    return None if remainder or value < 0 else (variable, value)


def presumed(node: NodeView) -> Var | None:
    """Return a variable of the shape that a node's result has if its amounts fit the data.

    For nodes whose amounts are formulas of unknowns, None for others.  What is found so is read
    again with numbers.
    """
    if node.kind not in ("Reshape", "Pad", "Slice") or node.opset < 11:
        return None
    firsts = node.sizes.of(node.input(1))
    if firsts is None or firsts.ndim != 1 or not any(map(is_open, firsts.flat)):
        return None
    shape, rank = list(node.type().shape), node.rank()
    if node.kind == "Reshape":
        shape = list(firsts)
    else:
        axes = node.ints(3, "the axes") if node.has(3) else tuple(range(rank))
        if any(not -rank <= axis < rank for axis in axes):
            return None
        if node.kind == "Pad":
            count = len(firsts) // 2
            for axis, low, high in zip(axes, firsts[:count], firsts[count:], strict=False):
                shape[axis] = shape[axis] + low + high
        elif not node.has(4):
            for axis, begin, end in zip(axes, firsts, node.ints(2, "the ends"), strict=False):
                shape[axis] = end - begin
    return Var(node.name, TensorType(tuple(shape), node.type().dtype))
