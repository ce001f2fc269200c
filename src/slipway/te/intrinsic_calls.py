"""Calls of tensor intrinsics as what a compute is: the innermost axes are the intrinsic's.

::

    C = te.compute((m // 16, 16), lambda i: vadd(A[i, 0:16], B[i, 0:16]))

The stage computes the intrinsic's own formula over the regions it is given, and its schedule
begins with the intrinsic in place of the innermost loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.errors import ArgumentTypeError, ArgumentValueError
from slipway.ir import ops
from slipway.ir.expr import IterVar, PrimExpr, ProducerLoad, Range, Reduce, Var
from slipway.te.rewrite import replace_nodes, rewrite
from slipway.te.tensor import Tensor, TensorSlice
from slipway.te.tensor_intrin import IntrinsicCall


def axes_and_body(
    call: IntrinsicCall, extents: Sequence[PrimExpr], name: str
) -> tuple[tuple[IterVar, ...], tuple[PrimExpr, ...]]:
    """Return the innermost axes, of the given extents, and the formulas of a call.

    Raises ArgumentValueError for regions and extents that are not the intrinsic's.
    """
    op, what = call.intrin.op, f"compute {name!r}: intrinsic {call.intrin.name!r}"
    own = [axis.extent for axis in op.axis]
    if len(own) != len(extents) or not all(map(_same, own, extents)):
        raise ArgumentValueError(
            f"{what} computes {_listed(own)}, and the innermost dimensions are {_listed(extents)}"
        )
    axes = tuple(
        IterVar(Range(ops.const(0, e.dtype), e), Var(axis.name, e.dtype), "data")
        for axis, e in zip(op.axis, extents, strict=True)
    )
    inner = [IterVar(a.dom, Var(a.name, a.var.dtype), "reduce") for a in op.reduce_axis]
    vars_of = {
        old.var: new.var
        for old, new in zip((*op.axis, *op.reduce_axis), (*axes, *inner), strict=True)
    }
    starts = _starts(call, what)

    def placed(expr: PrimExpr) -> PrimExpr:
        return rewrite(replace_nodes(expr, vars_of), lambda n: _moved(n, starts))  # type: ignore[no-any-return]

    if call.reduce_axis and not op.reduce_axis:
        raise ArgumentValueError(
            f"{what} reduces nothing, so that it cannot be reduced over "
            f"{', '.join(a.name for a in call.reduce_axis)}"
        )
    body: list[PrimExpr] = []
    for formula in op.body:
        if not isinstance(formula, Reduce):
            body.append(placed(formula))
            continue
        source = tuple(map(placed, formula.source))
        init = tuple(map(placed, formula.init))
        condition, over = placed(formula.condition), (*call.reduce_axis, *inner)
        body.append(Reduce(formula.combiner, source, over, condition, formula.value_index, init))
    return axes, tuple(body)


def _starts(call: IntrinsicCall, what: str) -> dict[Any, tuple[Tensor, list[PrimExpr]]]:
    """Return, for each input of the intrinsic, the tensor and where the region of it begins."""
    wanted, regions = call.intrin.inputs, _regions(call, what)
    if len(regions) != len(wanted):
        raise ArgumentValueError(f"{what} reads {len(wanted)} tensors, got {len(regions)}")
    found = {}
    for theirs, region in zip(wanted, regions, strict=True):
        tensor = region.tensor
        given = [*region.indices, *[slice(None)] * (tensor.ndim - len(region.indices))]
        ranged = [isinstance(index, slice) for index in given]
        outer = len(given) - theirs.ndim
        if ranged != [False] * outer + [True] * theirs.ndim or tensor.dtype != theirs.dtype:
            raise ArgumentValueError(
                f"{what} reads {theirs.ndim} innermost dimensions of {theirs.dtype} as "
                f"{theirs.name!r}, got {_written(region)} of {tensor.dtype}"
            )
        starts: list[PrimExpr] = [ops.as_expr(index) for index in given[:outer]]
        for index, whole, extent in zip(
            given[outer:], tensor.shape[outer:], theirs.shape, strict=True
        ):
            start = ops.as_expr(0 if index.start is None else index.start)
            stop = ops.as_expr(whole if index.stop is None else index.stop)
            if index.step not in (None, 1) or not _same(ops.sub(stop, start), extent):
                raise ArgumentValueError(
                    f"{what} reads {extent} elements of {theirs.name!r} in a dimension of "
                    f"{_written(region)}"
                )
            starts.append(start)
        found[theirs] = (tensor, starts)
    return found


def _regions(call: IntrinsicCall, what: str) -> list[TensorSlice]:
    """Return the regions, a whole tensor as one of no indices.  Raises ArgumentTypeError."""
    for axis in call.reduce_axis:
        if not isinstance(axis, IterVar) or axis.kind != "reduce":
            raise ArgumentTypeError(f"{what}: reduce_axis is made by te.reduce_axis, got {axis!r}")
    found = []
    for region in call.regions:
        if not isinstance(region, Tensor | TensorSlice):
            raise ArgumentTypeError(
                f"{what} takes regions of tensors, such as A[i, 0:16], not {region}"
            )
        found.append(TensorSlice(region, ()) if isinstance(region, Tensor) else region)
    return found


def _moved(node: Any, starts: dict[Any, tuple[Tensor, list[PrimExpr]]]) -> Any:
    if not isinstance(node, ProducerLoad) or node.producer not in starts:
        return None
    tensor, begin = starts[node.producer]
    outer = len(begin) - len(node.indices)
    inside = [ops.add(b, i) for b, i in zip(begin[outer:], node.indices, strict=True)]
    return ProducerLoad(tensor, (*begin[:outer], *inside))


def _same(a: PrimExpr, b: PrimExpr) -> bool:
    difference = Analyzer().simplify(ops.sub(a, b))
    return ops.as_int(difference) == 0


def _listed(extents: Sequence[PrimExpr]) -> str:
    return "[" + ", ".join(map(str, extents)) + "]"


def _written(region: TensorSlice) -> str:
    shown = [f"{i.start}:{i.stop}" if isinstance(i, slice) else str(i) for i in region.indices]
    return f"{region.tensor.name}[{', '.join(shown)}]"
