"""`tir.IndexMap`: a map of indices that can be kept, called, applied to a shape and inverted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.blocks.solve import solved
from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir.expr import IterVar, PrimExpr, Range, Var
from slipway.ir.visit import substitute

AXIS_SEPARATOR = "axis_separator"  # stands between indices of different dimensions of memory


def parted(indices: Sequence[Any]) -> tuple[tuple[PrimExpr, ...], tuple[int, ...]]:
    """Return what a map gives without separators of axes, and at which indices those stand."""
    found: list[PrimExpr] = []
    separators: list[int] = []
    for index in indices:
        if isinstance(index, str) and index == AXIS_SEPARATOR:
            separators.append(len(found))
        else:
            found.append(ops.as_expr(index))
    return tuple(found), tuple(separators)


class IndexMap:
    """Where an element [i, j, ...] is put: `final_indices`, in terms of `initial_indices`.

    It is a function of indices, so that whatever takes such a function takes one of these.
    """

    AXIS_SEPARATOR = AXIS_SEPARATOR

    def __init__(self, initial_indices: Sequence[Var], final_indices: Sequence[Any]) -> None:
        self.initial_indices = tuple(initial_indices)
        self.final_indices, self.axis_separators = parted(final_indices)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(f"i{n}", kind) for n in range(len(self.initial_indices))]
        )

    @staticmethod
    def from_func(mapping_function: Callable[..., Any], ndim: int | None = None) -> IndexMap:
        """Return the map of a function; `ndim` says of how many indices, where that is open."""
        parameters = list(inspect.signature(mapping_function).parameters.values())
        named = [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_POSITIONAL]
        count = len(named) if len(named) == len(parameters) else ndim
        if count is None or count < len(named) or ndim not in (None, count):
            raise ScheduleError(
                f"IndexMap.from_func: the function takes {len(named)} indices"
                f"{' or more' if len(named) < len(parameters) else ''}, and ndim={ndim}"
            )
        names = [*named, *(f"i{n}" for n in range(len(named), count))]
        variables = [Var(name) for name in names]
        made = mapping_function(*variables)
        return IndexMap(variables, made if isinstance(made, list | tuple) else [made])

    def __call__(self, *indices: PrimExpr | int) -> tuple[PrimExpr, ...]:
        """Return where the element at `indices` is put."""
        if len(indices) != len(self.initial_indices):
            raise ScheduleError(
                f"the map takes {len(self.initial_indices)} indices, got {len(indices)}"
            )
        given = dict(zip(self.initial_indices, map(ops.as_expr, indices), strict=True))
        an = Analyzer()
        return tuple(an.simplify(substitute(i, given)) for i in self.final_indices)

    def map_indices(self, indices: Sequence[PrimExpr | int]) -> list[PrimExpr]:
        """Return where the element at `indices` is put."""
        return list(self(*indices))

    def _bounds(self, shape: Sequence[int]) -> Analyzer:
        if len(shape) != len(self.initial_indices):
            raise ScheduleError(
                f"the map takes {len(self.initial_indices)} indices, the shape {tuple(shape)} "
                f"has {len(shape)} dimensions"
            )
        an = Analyzer()
        for var, extent in zip(self.initial_indices, shape, strict=True):
            an.bind(var, 0, int(extent) - 1)
        return an

    def map_shape(self, shape: Sequence[int]) -> list[int]:
        """Return the smallest shape that holds all elements of a tensor of `shape`."""
        an = self._bounds(shape)
        made = []
        for index in self.final_indices:
            low, high = an.bounds(an.simplify(index))
            if low < 0 or high == float("inf"):
                raise ScheduleError(f"the map makes {index}, which runs from {low} to {high}")
            made.append(int(high) + 1)
        return made

    def inverse(self, shape: Sequence[int]) -> IndexMap:
        """Return the map back, for a tensor of `shape`.

        Raises ScheduleError for a map that loses what tells one index from another.
        """
        an = self._bounds(shape)
        axes = [IterVar(Range.of(n), v, "data") for n, v in zip(shape, self.initial_indices,
                                                                strict=True)]  # fmt: skip
        extents = [ops.as_expr(n) for n in self.map_shape(shape)]
        what = "cannot invert the map of indices"
        fresh, values, _ = solved(axes, self.final_indices, extents, what)
        return IndexMap(fresh, [an.simplify(values[v]) for v in self.initial_indices])

    def __repr__(self) -> str:
        names = ", ".join(v.name for v in self.initial_indices)
        return f"IndexMap(({names}) -> ({', '.join(map(str, self.final_indices))}))"
