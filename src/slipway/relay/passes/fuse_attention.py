"""FuseAttention: two products with a softmax between them become one nn.attention.

    p = nn.batch_matmul(q, k)            (B*N, S, T), perhaps reshaped to (B, N, S, T)
    p = nn.softmax(p * scale + mask)     the scale perhaps on q and k, the mask perhaps a `where`
    nn.batch_matmul(p, v)
        ->  nn.attention_bias(q, k, v, mask, scale=scale)

and transposes of q, k, v and of the result become layouts of the attention, which reads and writes
them as they lie.  The scores must have no other reader.  A `where` counts as a mask if it gives
-inf or a number so low that a score beside it is lost in rounding (-1e30 and less).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.ops.attention import AttentionAttrs, attention_call
from slipway.relay.passes.simplify_expr import RESHAPES
from slipway.relay.visit import post_order, rebuild, use_counts

ATTENTIONS = ("nn.attention", "nn.attention_bias")
LOST_BESIDE = -1e30

Serves = Callable[[int, int], bool]


def fuse_attention(function: Function, serves: Serves) -> Function:
    """Return `function` with attentions in one piece.

    `serves(rows, value_size)` tells whether one of that many query rows is faster so.
    """
    fused = _Rewrite(function, lambda expr, counts: _fuse(expr, counts, serves)).run()
    return _Rewrite(fused, _absorb).run()


class _Rewrite:
    """Applies a rule bottom up; the rule sees how many readers every expression has."""

    def __init__(self, function: Function, rule: Callable[[Any, dict[int, int]], Any]) -> None:
        self.function = function
        self.rule = rule
        self.counts = use_counts(function)
        self.done: dict[int, Expr] = {}
        self.keep: list[Expr] = []

    def run(self) -> Function:
        for expr in post_order(self.function, into_functions=False):
            count = self.counts.get(id(expr), 0)
            fresh: Any = expr
            if not isinstance(expr, Function) or expr is self.function:
                fresh = rebuild(expr, lambda child: self.done[id(child)])
                made = self.rule(fresh, self.counts)
                fresh = fresh if made is None else made
            self.done[id(expr)] = fresh
            self.keep.append(fresh)
            self.counts[id(fresh)] = count
        return self.done[id(self.function)]  # type: ignore[return-value]


def _face(name: str, *arguments: Any) -> Any:
    return op_registry.face(name)(*arguments)


def reshaped(expr: Any, shape: tuple[int, ...]) -> Expr:
    """Return `expr` in another shape, without a chain of reshapes."""
    while is_call_of(expr, *RESHAPES) and expr.tensor_type.shape != shape:
        expr = expr.args[0]
    if expr.tensor_type.shape == shape:
        return expr  # type: ignore[no-any-return]
    return _face("reshape", expr, shape, True)  # type: ignore[no-any-return]


def _number(expr: Any) -> float | None:
    """The value of a constant with one element."""
    if isinstance(expr, Constant) and expr.array.size == 1:
        return float(expr.array.reshape(())[()])
    return None


def _scaled(expr: Any) -> tuple[Any, float] | None:
    """Return (x, factor) of x * factor, factor * x or x / factor with a scalar constant."""
    if not is_call_of(expr, "multiply", "divide"):
        return None
    lhs, rhs = expr.args
    number = _number(rhs)
    if number is not None and lhs.type == expr.type:
        if is_call_of(expr, "multiply"):
            return lhs, number
        return (lhs, 1 / number) if number else None
    number = _number(lhs)
    if number is not None and rhs.type == expr.type and is_call_of(expr, "multiply"):
        return rhs, number
    return None


@dataclass
class _Scores:
    """product * factor + the sum of biases, each in the rank of the scores it is added to."""

    product: Call
    factor: float = 1.0
    biases: list[Expr] = field(default_factory=list)
    grids: list[tuple[int, ...]] = field(default_factory=list)  # (B, N) where scores had four axes

    def times(self, factor: float) -> _Scores:
        made = [b if factor == 1 else _face("multiply", b, _constant(factor)) for b in self.biases]
        return _Scores(self.product, self.factor * factor, made, self.grids)


def _constant(value: float) -> Constant:
    return Constant(np.asarray(value, "float32"))


def _scores(expr: Any, counts: dict[int, int], rows: tuple[int, ...]) -> _Scores | None:
    """Match scores whose last two extents are `rows`, read by nobody else."""
    if counts.get(id(expr), 0) != 1 or not isinstance(expr, Call):
        return None
    if expr.tensor_type.dtype != "float32" or expr.tensor_type.shape[-2:] != rows:
        return None
    found: _Scores | None = None
    if is_call_of(expr, "nn.batch_matmul"):
        return _Scores(expr) if expr.args[0].tensor_type.dtype == "float32" else None
    if is_call_of(expr, *RESHAPES):
        found = _scores(expr.args[0], counts, rows)
    elif (scaled := _scaled(expr)) is not None:
        found = _scores(scaled[0], counts, rows)
        found = found.times(scaled[1]) if found is not None else None
    elif is_call_of(expr, "add", "subtract"):
        found = _with_bias(expr, counts, rows)
    elif is_call_of(expr, "where"):
        found = _with_choice(expr, counts, rows)
    if found is not None and expr.tensor_type.rank == 4:
        found.grids.append(expr.tensor_type.shape[:2])
    return found


def _with_bias(expr: Call, counts: dict[int, int], rows: tuple[int, ...]) -> _Scores | None:
    lhs, rhs = expr.args
    orders = ((lhs, rhs),) if is_call_of(expr, "subtract") else ((lhs, rhs), (rhs, lhs))
    for scores, bias in orders:
        found = _scores(scores, counts, rows) if scores.type == expr.type else None
        if found is not None:
            if is_call_of(expr, "subtract"):
                bias = _face("negative", bias)
            found.biases.append(_with_rank(bias, expr.tensor_type.rank))
            return found
    return None


def _with_choice(expr: Call, counts: dict[int, int], rows: tuple[int, ...]) -> _Scores | None:
    """where(condition, scores, low), or the other way round."""
    condition, *branches = expr.args
    for scores, other in (branches, branches[::-1]):
        low = _number(other)
        if low is None or not low <= LOST_BESIDE or scores.type != expr.type:
            continue
        found = _scores(scores, counts, rows)
        if found is None or (found.biases and np.isfinite(low)):
            return None
        zero, least = _constant(0.0), _constant(low)
        chosen = (zero, least) if scores is branches[0] else (least, zero)
        bias = _face("where", condition, *chosen)
        found.biases.append(_with_rank(bias, expr.tensor_type.rank))
        return found
    return None


def _with_rank(expr: Expr, rank: int) -> Expr:
    shape = expr.tensor_type.shape
    return reshaped(expr, (1,) * (rank - len(shape)) + shape)


def _fuse(expr: Any, counts: dict[int, int], serves: Serves) -> Expr | None:
    """The rule for the product of powers and value."""
    if not is_call_of(expr, "nn.batch_matmul") or expr.attrs.transpose_a:
        return None
    if expr.tensor_type.dtype != "float32":
        return None
    powers, value = expr.args
    batch, *rows = powers.tensor_type.shape
    while is_call_of(powers, *RESHAPES) and counts.get(id(powers), 0) == 1:
        powers = powers.args[0]
        if powers.tensor_type.shape[-2:] != tuple(rows):
            return None
    if not is_call_of(powers, "nn.softmax") or counts.get(id(powers), 0) != 1:
        return None
    if powers.attrs.axis % powers.tensor_type.rank != powers.tensor_type.rank - 1:
        return None
    value_size = expr.tensor_type.shape[2]
    if not serves(rows[0], value_size):
        return None
    with op_registry.span(expr.span):
        found = _scores(powers.args[0], counts, tuple(rows))
        made = None if found is None else _attention(found, value, expr, batch)
        return None if made is None else reshaped(made, expr.tensor_type.shape)


def _attention(found: _Scores, value: Expr, expr: Call, batch: int) -> Call | None:
    """Build the attention over (B, N, S, H), or return None where the shapes do not say B and N."""
    product = found.product
    (query, q_factor), (key, k_factor) = (_unscaled(a) for a in product.args)
    operands = [
        (query, "BNHS" if product.attrs.transpose_a else "BNSH"),
        (key, "BNSH" if product.attrs.transpose_b else "BNHS"),
        (value, "BNHS" if expr.attrs.transpose_b else "BNSH"),
    ]
    if product.tensor_type.shape[0] != batch:
        return None
    grid = _grid(found, [operand for operand, _ in operands], batch)
    if grid is None:
        return None
    four = [_with_heads(operand, grid, batch) for operand, _ in operands]
    bias = _joined_bias(found.biases, grid)
    if any(x is None for x in four) or (found.biases and bias is None):
        return None
    if four[1].tensor_type.shape[:2] != four[2].tensor_type.shape[:2]:  # type: ignore[union-attr]
        return None
    q_layout, k_layout, v_layout = (layout for _, layout in operands)
    scale = found.factor * q_factor * k_factor
    attrs = AttentionAttrs(scale, "", q_layout, k_layout, v_layout, "BNSH")
    if bias is not None:
        bias, attrs = _turned_bias(bias, attrs)
    return attention_call(attrs, *four, *([] if bias is None else [bias]))


def _unscaled(expr: Any) -> tuple[Any, float]:
    """Return an operand without its scale, which may lie below reshapes and transposes."""
    chain: list[Call] = []
    below = expr
    while is_call_of(below, "transpose", *RESHAPES):
        chain.append(below)
        below = below.args[0]
    scaled = _scaled(below)
    if scaled is None or not np.isfinite(scaled[1]):
        return expr, 1.0
    made = scaled[0]
    for call in reversed(chain):
        made = call.with_args((made,))
    return made, scaled[1]


def _grid(found: _Scores, operands: list[Any], batch: int) -> tuple[int, int] | None:
    """Return (B, N): as the scores say, else as a tensor behind an operand does."""
    grids = list(found.grids)
    for operand in operands:
        below = operand
        while is_call_of(below, *RESHAPES):
            below = below.args[0]
            if below.tensor_type.rank == 4:
                if below.tensor_type.shape[2:] == operand.tensor_type.shape[1:]:
                    grids.append(below.tensor_type.shape[:2])
                break
    fitting = [g for g in grids if g[0] * g[1] == batch]
    if found.grids and any(g != found.grids[0] for g in found.grids):
        return None
    one, other = fitting[0] if fitting else (1, batch)
    return one, other


def _with_heads(operand: Expr, grid: tuple[int, int], batch: int) -> Expr | None:
    own, *rest = operand.tensor_type.shape
    if own == batch:
        return reshaped(operand, (*grid, *rest))
    return reshaped(operand, (1, 1, *rest)) if own == 1 and grid[0] == 1 else None


def _joined_bias(biases: list[Expr], grid: tuple[int, int]) -> Expr | None:
    """Return the sum of the biases on axes (B, N, S, T), or None where one does not fit."""
    total: Expr | None = None
    for bias in biases:
        shape = bias.tensor_type.shape
        if bias.tensor_type.rank == 3:
            if shape[0] not in (1, grid[0] * grid[1]):
                return None
            bias = reshaped(bias, (*((1, 1) if shape[0] == 1 else grid), *shape[1:]))
        elif bias.tensor_type.rank != 4:
            return None
        total = bias if total is None else _face("add", total, bias)
    return total


def _turned_bias(bias: Expr, attrs: AttentionAttrs) -> tuple[Expr, AttentionAttrs]:
    """Turn a bias with a row for each query position, which many heads read, to (B, N, T, S).

    One that says something else for every head is read once: it stays as it is unless it is
    constant.
    """
    _, heads, rows, _ = bias.tensor_type.shape
    if rows == 1 or (heads > 1 and not isinstance(bias, Constant)):
        return bias, attrs
    turned = _face("transpose", bias, (0, 1, 3, 2))
    return turned, attrs.replace(bias_layout="BNTS")


def _absorb(expr: Any, counts: dict[int, int]) -> Expr | None:
    """The rule for transposes around an attention."""
    if is_call_of(expr, *ATTENTIONS):
        return _absorb_inputs(expr)
    if is_call_of(expr, "transpose"):
        return _absorb_output(expr, counts)
    return None


def _axes(call: Any) -> list[int]:
    rank = call.tensor_type.rank
    return [a % rank for a in call.attrs.axes] if call.attrs.axes else list(range(rank))[::-1]


def _absorb_inputs(call: Call) -> Expr | None:
    attrs: Any = call.attrs
    names = ("query_layout", "key_layout", "value_layout")
    inputs, layouts = list(call.args), {}
    for number, name in enumerate(names):
        layout: str = getattr(attrs, name)
        below: Any = inputs[number]
        while is_call_of(below, "transpose"):
            letters = dict(zip(_axes(below), layout, strict=True))
            layout, below = "".join(letters[axis] for axis in range(4)), below.args[0]
            if name != "value_layout" or layout[3] == "H":  # else it would be copied once more
                inputs[number], layouts[name] = below, layout
    if not layouts:
        return None
    with op_registry.span(call.span):
        return attention_call(attrs.replace(**layouts), *inputs)


def _absorb_output(turned: Call, counts: dict[int, int]) -> Expr | None:
    """transpose(attention): the attention writes that layout."""
    source: Any = turned.args[0]
    shape = source.tensor_type.shape
    while is_call_of(source, *RESHAPES) and counts.get(id(source), 0) == 1:
        source = source.args[0]
    if not is_call_of(source, *ATTENTIONS) or counts.get(id(source), 0) != 1:
        return None
    if source.tensor_type.shape != shape:
        return None
    layout = "".join(source.attrs.out_layout[axis] for axis in _axes(turned))
    if layout[3] != "H":
        return None
    with op_registry.span(source.span):
        return attention_call(source.attrs.replace(out_layout=layout), *source.args)
