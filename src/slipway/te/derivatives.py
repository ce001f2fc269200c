"""te.gradient: what a tensor's elements change by when those of its inputs do, as tensors.

::

    y = topi.nn.dense(x, w)
    loss = topi.sum(y * y)
    (dw,) = te.gradient(loss, [w])
    s = te.create_schedule(dw.op)

From the output back to the inputs each stage hands on what it got: for every place that reads a
tensor, the sum over the stage's elements that read an element.  Which those are follows from the
indices (``h + rh`` at h' gives h = h' - rh), so that a convolution's gradient is a convolution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slipway import dtypes
from slipway.arith.analyzer import Analyzer
from slipway.errors import ArgumentTypeError, InvalidShapeError, LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.expr import IterVar, PrimExpr, ProducerLoad, Range, Reduce, Var
from slipway.ir.visit import substitute
from slipway.te import reduction as R
from slipway.te.declare import compute
from slipway.te.operation import ComputeOp, PlaceholderOp, loads_in
from slipway.te.tensor import Tensor


def gradient(
    output: Tensor, inputs: Tensor | Sequence[Tensor], head: Tensor | None = None
) -> list[Tensor]:
    """Return, for each input, the product of `head` and the derivative of `output` by it.

    `head` has the shape (..., *output.shape), and a result (..., *input.shape).  Without a head the
    whole derivative is returned, (*output.shape, *input.shape): of a scalar, the gradient.  One of
    `inputs` may be computed from others of them.  Raises LoweringError for a stage that cannot be
    differentiated.
    """
    wanted = list(inputs) if isinstance(inputs, Sequence) else [inputs]
    for one in (output, *wanted, *([] if head is None else [head])):
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(f"te.gradient takes tensors, not {one!r}")
    head = _identity(output) if head is None else head
    more = head.ndim - output.ndim
    ends = [ops.as_int(n) for n in head.shape[more:]] if more >= 0 else None
    if ends != [ops.as_int(n) for n in output.shape]:
        raise InvalidShapeError(
            f"te.gradient: the head {tuple(head.shape)} must end in the shape of the output, "
            f"{tuple(output.shape)}"
        )
    adjoints: dict[Tensor, Tensor] = {output: head}
    stages = _stages(output, set(wanted))
    between = set(stages)
    for stage in stages:
        got = adjoints.get(stage)
        if got is None or between.isdisjoint(stage.op.input_tensors):
            continue
        for source, part in _parts(stage, got, more, between):
            before = adjoints.get(source)
            adjoints[source] = part if before is None else _sum(before, part)
    prefix = tuple(head.shape[:more])
    return [
        adjoints[one] if one in adjoints else _constant((*prefix, *one.shape), one.dtype)
        for one in wanted
    ]


def _constant(shape: Sequence[PrimExpr], dtype: str) -> Tensor:
    return _made(shape, lambda *i: ops.const(0, dtype), "zeros")


def _made(shape: Sequence[PrimExpr], element: Callable[..., Any], name: str) -> Tensor:
    made = compute(tuple(shape), element, name)
    assert isinstance(made, Tensor)
    return made


def _identity(output: Tensor) -> Tensor:
    count, dtype = output.ndim, output.dtype

    def element(*i: PrimExpr) -> PrimExpr:
        same = ops.all_of([ops.equal(a, b) for a, b in zip(i[:count], i[count:], strict=True)])
        return ops.select(same, ops.const(1, dtype), ops.const(0, dtype))

    return _made((*output.shape, *output.shape), element, "identity")


def _sum(a: Tensor, b: Tensor) -> Tensor:
    return _made(a.shape, lambda *i: ops.add(a(*i), b(*i)), "grad_sum")


def _stages(output: Tensor, wanted: set[Tensor]) -> list[Tensor]:
    """Return the tensors between the output and those wanted, each before what it reads."""
    found: dict[Tensor, bool] = {}
    order: list[Tensor] = []
    stack: list[tuple[Tensor, bool]] = [(output, False)]
    while stack:
        one, done = stack.pop()
        reads = tuple(one.op.input_tensors)
        if done:
            found[one] = one in wanted or any(found[x] for x in reads)
            order += [one] if found[one] else []
        elif one not in found:
            found[one] = False
            stack += [(one, True), *((x, False) for x in reads)]
    return order[::-1]


@dataclass(frozen=True)
class _Read:
    """A place of a stage's formula that reads a tensor, and the derivative of the formula by it."""

    load: ProducerLoad
    factor: PrimExpr


def _parts(
    stage: Tensor, adjoint: Tensor, more: int, wanted: set[Tensor]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield (tensor that the stage reads, what it adds to the derivative by that)."""
    if not isinstance(stage.op, ComputeOp) or stage.op.num_outputs != 1:
        if isinstance(stage.op, PlaceholderOp):
            return
        raise LoweringError(
            f"te.gradient: {stage.op.name!r} is no te.compute of one formula, so its derivative is "
            "not known"
        )
    axes, body = list(stage.op.axes), stage.op.body[0]
    condition: PrimExpr = ops.TRUE
    one = ops.const(1, body.dtype)
    if isinstance(body, Reduce):
        yield from _of_start(stage, adjoint, more, body, wanted)
        condition, axes = body.condition, [*axes, *body.axis]
        one = _of_reduction(stage, body)
        body = body.source[body.value_index]
    for read in _reads(body, one, wanted, stage.op.name):
        yield read.load.producer, _part(stage, adjoint, more, axes, condition, read)


def _of_start(
    stage: Tensor, adjoint: Tensor, more: int, body: Reduce, wanted: set[Tensor]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield what the value that a reduction starts from adds to the derivatives."""
    for start in body.init:
        for read in _reads(start, ops.const(1, start.dtype), wanted, stage.op.name):
            if not isinstance(body.combiner.result[0], E.Add):
                raise LoweringError(
                    f"te.gradient: {stage.op.name!r} starts from elements of "
                    f"{read.load.producer.op.name!r}: only a sum's start can be differentiated"
                )
            part = _part(stage, adjoint, more, stage.op.axis, ops.TRUE, read)
            yield read.load.producer, part


def _of_reduction(stage: Tensor, body: Reduce) -> PrimExpr:
    """Return the derivative of a reduction by one of its terms."""
    term = body.source[body.value_index]
    result = body.combiner.result[0]
    if len(body.source) == 1 and isinstance(result, E.Add):
        return ops.const(1, term.dtype)
    if len(body.source) == 1 and isinstance(result, E.Max | E.Min):
        own = stage(*(axis.var for axis in stage.op.axes))
        return ops.select(ops.equal(term, own), ops.const(1, term.dtype), ops.const(0, term.dtype))
    if len(body.source) != 1:
        raise LoweringError(
            f"te.gradient: {stage.op.name!r} reduces several values together: reductions of one "
            "value can be differentiated"
        )
    return _by_one_term(stage, body)


def _by_one_term(stage: Tensor, body: Reduce) -> PrimExpr:
    """Return the derivative of a reduction by one of its terms, from those of all others.

    The result is the term combined with the reduction of the others, which is a stage that reduces
    anew for every term: no division, so that terms may be zero.
    """
    (term,), combiner = body.source, body.combiner
    (identity,) = combiner.identity
    own = [axis.var for axis in (*stage.op.axis, *body.axis)]
    spans = [(axis, axis.dom) for axis in body.axis if axis.dom is not None]

    def element(*i: PrimExpr) -> Any:
        fresh = [R.reduce_axis(bounds, f"{axis.name}_o") for axis, bounds in spans]
        positions = dict(zip(own, [*i[: stage.ndim], *(axis.var for axis in fresh)], strict=True))
        same = ops.all_of([
            ops.equal(axis.var, ops.add(k, bounds.min))
            for axis, (_, bounds), k in zip(fresh, spans, i[stage.ndim :], strict=True)
        ])  # fmt: skip
        other = ops.select(same, identity, _substituted(term, positions))
        start = tuple(_substituted(value, positions) for value in body.init)
        condition = _substituted(body.condition, positions)
        return Reduce(combiner, (other,), tuple(fresh), condition, 0, start)

    shape = (*stage.shape, *(bounds.extent for _, bounds in spans))
    others = _made(shape, element, f"{stage.op.name}_others")
    inside = [ops.sub(axis.var, bounds.min) for axis, bounds in spans]
    one = PlaceholderOp("term", (), term.dtype).output(0)
    load = one()
    mapping = {load: term, combiner.rhs[0]: others(*own[: stage.ndim], *inside)}
    result = substitute(combiner.result[0], {combiner.lhs[0]: load})
    total: PrimExpr = ops.const(0, term.dtype)
    for read in _reads(result, ops.const(1, term.dtype), {one}, stage.op.name):
        total = ops.add(total, read.factor)
    return substitute(total, mapping)  # type: ignore[no-any-return]


_DERIVATIVES: dict[str, Callable[[PrimExpr, PrimExpr], PrimExpr]] = {
    "exp": lambda x, y: y,
    "log": lambda x, y: ops.div(1.0, x),
    "sigmoid": lambda x, y: ops.mul(y, ops.sub(1.0, y)),
    "tanh": lambda x, y: ops.sub(1.0, ops.mul(y, y)),
    "sqrt": lambda x, y: ops.div(0.5, y),
    "rsqrt": lambda x, y: ops.mul(-0.5, ops.div(y, x)),
    "sin": lambda x, y: _call("cos", x),
    "cos": lambda x, y: ops.sub(0.0, _call("sin", x)),
    "tan": lambda x, y: ops.add(1.0, ops.mul(y, y)),
    "sinh": lambda x, y: _call("cosh", x),
    "cosh": lambda x, y: _call("sinh", x),
    "atan": lambda x, y: ops.div(1.0, ops.add(1.0, ops.mul(x, x))),
    "asin": lambda x, y: _call("rsqrt", ops.sub(1.0, ops.mul(x, x))),
    "acos": lambda x, y: ops.sub(0.0, _call("rsqrt", ops.sub(1.0, ops.mul(x, x)))),
    "log1p": lambda x, y: ops.div(1.0, ops.add(1.0, x)),
    "expm1": lambda x, y: ops.add(1.0, y),
    "log2": lambda x, y: ops.div(1 / math.log(2), x),
    "log10": lambda x, y: ops.div(1 / math.log(10), x),
    "exp2": lambda x, y: ops.mul(math.log(2), y),
    "exp10": lambda x, y: ops.mul(math.log(10), y),
    "erf": lambda x, y: ops.mul(2 / math.sqrt(math.pi), _call("exp", ops.sub(0.0, ops.mul(x, x)))),
    "fabs": lambda x, y: _sign(x),
    "abs": lambda x, y: _sign(x),
}


def _sign(x: PrimExpr) -> PrimExpr:
    return ops.select(ops.less(x, 0.0), ops.const(-1, x.dtype), ops.const(1, x.dtype))


_FLAT = ("floor", "ceil", "round", "trunc", "nearbyint", "isnan", "isinf", "isfinite")


def _reads(expr: PrimExpr, factor: PrimExpr, wanted: set[Tensor], name: str) -> Iterator[_Read]:
    """Yield the places of a formula that read a tensor of `wanted`, with the derivative by each."""
    if not any(load.producer in wanted for load in loads_in(expr)):
        return
    if not dtypes.is_float(expr.dtype):
        return  # whole numbers do not change by a little
    zero = ops.const(0, expr.dtype)
    below: list[tuple[PrimExpr, PrimExpr]] = []
    match expr:
        case ProducerLoad():
            yield _Read(expr, factor)
        case E.Add():
            below = [(expr.a, factor), (expr.b, factor)]
        case E.Sub():
            below = [(expr.a, factor), (expr.b, ops.sub(zero, factor))]
        case E.Mul():
            below = [(expr.a, ops.mul(factor, expr.b)), (expr.b, ops.mul(factor, expr.a))]
        case E.Div():
            quotient = ops.div(factor, expr.b)
            below = [(expr.a, quotient), (expr.b, ops.sub(zero, ops.mul(quotient, expr)))]
        case E.Max() | E.Min():
            is_max = isinstance(expr, E.Max)
            left = (ops.greater_equal if is_max else ops.less_equal)(expr.a, expr.b)
            below = [(expr.a, ops.select(left, factor, zero)),
                     (expr.b, ops.select(left, zero, factor))]  # fmt: skip
        case E.Select():
            below = _chosen(expr.condition, expr.true_value, expr.false_value, factor, zero)
        case E.Call(op="if_then_else"):
            condition, first, second = expr.args
            below = _chosen(condition, first, second, factor, zero)
        case E.Let():
            body = _substituted(expr.body, {expr.var: expr.value})
            yield from _reads(body, factor, wanted, name)
        case E.Cast():
            below = [(expr.value, ops.cast(factor, expr.value.dtype))]
        case E.Call(op="pow"):
            base, power = expr.args
            lower = E.Call(base.dtype, "pow", (base, ops.sub(power, 1.0)))
            below = [(base, ops.mul(factor, ops.mul(power, lower))),
                     (power, ops.mul(factor, ops.mul(expr, _call("log", base))))]  # fmt: skip
        case E.Call() if expr.op in _DERIVATIVES:
            (argument,) = expr.args
            below = [(argument, ops.mul(factor, _DERIVATIVES[expr.op](argument, expr)))]
        case E.Call() if expr.op in _FLAT:
            pass
        case _:
            what = expr.op if isinstance(expr, E.Call) else type(expr).__name__
            raise LoweringError(
                f"te.gradient: {name!r} computes {what}, which has no derivative here"
            )
    for inside, through in below:
        yield from _reads(inside, through, wanted, name)


def _chosen(
    condition: PrimExpr, first: PrimExpr, second: PrimExpr, factor: PrimExpr, zero: PrimExpr
) -> list[tuple[PrimExpr, PrimExpr]]:
    return [(first, ops.if_then_else(condition, factor, zero)),
            (second, ops.if_then_else(condition, zero, factor))]  # fmt: skip


def _part(
    stage: Tensor, adjoint: Tensor, more: int, axes: Sequence[IterVar], condition: PrimExpr,
    read: _Read,
) -> Tensor:  # fmt: skip
    """Return the sum, over the elements that read an element, of what each hands on."""
    source = read.load.producer
    outer = [axis.var for axis in stage.op.axes]

    def element(*i: PrimExpr) -> Any:
        solution = _Solution(axes)
        for index, value, extent in zip(read.load.indices, i[more:], source.shape, strict=True):
            solution.add(index, value, extent)
        fresh = {
            axis.var: R.reduce_axis(solution.domains[axis.var], f"{axis.name}_g") for axis in axes
            if axis.var not in solution.values
        }  # fmt: skip
        own = {v: axis.var for v, axis in fresh.items()}

        def placed(expr: PrimExpr) -> PrimExpr:
            return _substituted(_substituted(expr, solution.values), own)

        term = ops.mul(adjoint(*i[:more], *outer), read.factor)
        tests = [t for t in (*solution.tests, condition) if ops.as_int(t) != 1]
        value = ops.cast(placed(term), source.dtype)
        if tests:
            zero = ops.const(0, value.dtype)
            value = ops.if_then_else(placed(ops.all_of(tests)), value, zero)
        return R.sum(value, axis=list(fresh.values())) if fresh else value

    shape = (*adjoint.shape[:more], *source.shape)
    return _made(shape, element, f"{source.op.name}_grad")


def _equal(a: PrimExpr, b: PrimExpr) -> bool:
    return a is b or (ops.as_int(a) is not None and ops.as_int(a) == ops.as_int(b))


def _substituted(expr: PrimExpr, mapping: Mapping[Any, Any]) -> PrimExpr:
    """Return an expression with variables replaced, but for those of the tensors that it reads."""
    kept: dict[Any, Any] = {load.producer: load.producer for load in loads_in(expr)}
    return substitute(expr, kept | dict(mapping))  # type: ignore[no-any-return]


def _uses(expr: PrimExpr, var: Var) -> bool:
    return _substituted(expr, {var: ops.const(0, var.dtype)}) is not expr


def _call(op: str, x: PrimExpr) -> PrimExpr:
    return E.Call(x.dtype, op, (x,))


class _Solution:
    """The axes of a stage, told by the element that it reads; the others are summed over."""

    def __init__(self, axes: Sequence[IterVar]) -> None:
        self.values: dict[Any, PrimExpr] = {}
        self.tests: list[PrimExpr] = []
        self.domains: dict[Var, Range] = {a.var: a.dom for a in axes if a.dom is not None}
        self.an = Analyzer()
        for var, dom in self.domains.items():
            self.an.bind_range(var, dom)

    def add(self, index: PrimExpr, value: PrimExpr, extent: PrimExpr) -> None:
        """Let `index`, of the axes, be `value`, which is below `extent`."""
        index = self.an.simplify(_substituted(index, self.values))
        found = self._solvable(index)
        if found is None:
            self.tests.append(ops.equal(index, value))
            return
        var, weight = found
        others = _substituted(index, {var: ops.const(0, var.dtype)})
        left = self.an.simplify(ops.sub(value, others))
        if weight < 0:
            left, weight = self.an.simplify(ops.sub(0, left)), -weight
        if weight > 1:
            self.tests.append(ops.equal(ops.floormod(left, weight), 0))
            left = ops.floordiv(left, weight)
        self.values = {v: _substituted(e, {var: left}) for v, e in self.values.items()}
        self.tests = [_substituted(t, {var: left}) for t in self.tests]
        self.values[var] = left
        dom = self.domains[var]
        if left is not value or ops.as_int(dom.min) != 0 or not _equal(dom.extent, extent):
            end = ops.add(dom.min, dom.extent)
            self.tests += [ops.greater_equal(left, dom.min), ops.less(left, end)]

    def _solvable(self, index: PrimExpr) -> tuple[Var, int] | None:
        """Return the longest axis that an index is linear in, with its weight; smallest first."""
        best: tuple[Var, int] | None = None
        rank: tuple[int, int] = (0, 0)
        for var, dom in self.domains.items():
            if var in self.values or not _uses(index, var):
                continue
            zero, one = (_substituted(index, {var: ops.const(n, var.dtype)}) for n in (0, 1))
            weight = ops.as_int(self.an.simplify(ops.sub(one, zero)))
            if not weight or not self.an.can_prove_equal(
                index, ops.add(zero, ops.mul(var, weight))
            ):
                continue
            mine = (-abs(weight), ops.as_int(dom.extent) or 1 << 40)
            if best is None or mine > rank:
                best, rank = (var, weight), mine
        return best
