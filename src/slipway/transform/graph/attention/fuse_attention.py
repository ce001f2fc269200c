"""FuseAttention: two products with a softmax between them become one nn.attention.

    p = nn.batch_matmul(q, k)            (B*N, S, T), perhaps reshaped to (B, N, S, T)
    p = nn.softmax(p * scale + mask)     the scale perhaps on q and k, the mask perhaps a `where`
    nn.batch_matmul(p, v)
        ->  nn.attention_bias(q, k, v, mask, scale=scale)

and transposes of q, k, v and of the result become layouts of the attention, which reads and writes
them as they lie; keys and values repeated for several heads are read where they were one.  The
scores must have no other reader.  A `where` counts as a mask if it gives -inf or a number so low
that a score beside it is lost in rounding (-1e30 and less); a constant mask of a triangle becomes
the attribute causal_mask.  A `where` that sets the exponentials of whole rows to zero moves after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.ops.nn.attention import AttentionAttrs, attention_call
from slipway.transform.graph.attention.layouts import (
    absorb_transposes,
    call_of,
    reshaped,
    rewrite_counted,
)
from slipway.transform.graph.fold_constant import fold_constant
from slipway.transform.graph.simplify_expr import RESHAPES

LOST_BESIDE = -1e30

Serves = Callable[[int, int], bool]


def fuse_attention(function: Function, serves: Serves) -> Function:
    """Return `function` with attentions in one piece.

    `serves(rows, value_size)` says whether one of that many query rows is faster so.
    """
    fused = rewrite_counted(function, lambda expr, counts: _fuse(expr, counts, serves))
    return absorb_transposes(fused)


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
        made = [
            b if factor == 1 else call_of("multiply", b, _constant(factor)) for b in self.biases
        ]
        return _Scores(self.product, self.factor * factor, made, self.grids)


def _constant(value: float) -> Constant:
    return Constant(np.asarray(value, "float32"))


def _scores(expr: Expr, counts: dict[int, int], rows: tuple[int, ...]) -> _Scores | None:
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
                bias = call_of("negative", bias)
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
        zero, minimum = _constant(0.0), _constant(low)
        chosen = (zero, minimum) if scores is branches[0] else (minimum, zero)
        bias = call_of("where", condition, *chosen)
        found.biases.append(_with_rank(bias, expr.tensor_type.rank))
        return found
    return None


def _with_rank(expr: Expr, rank: int) -> Expr:
    shape = expr.tensor_type.shape
    return reshaped(expr, (1,) * (rank - len(shape)) + shape)


def _fuse(expr: Any, counts: dict[int, int], serves: Serves) -> Expr | None:
    """The rule for the product of exponentials and value."""
    if not is_call_of(expr, "nn.batch_matmul") or expr.attrs.transpose_a:
        return None
    if expr.tensor_type.dtype != "float32":
        return None
    exponentials, value = expr.args
    if not exponentials.tensor_type.size:
        return None
    batch, *rows = exponentials.tensor_type.shape
    while is_call_of(exponentials, *RESHAPES) and counts.get(id(exponentials), 0) == 1:
        exponentials = exponentials.args[0]
        if exponentials.tensor_type.shape[-2:] != tuple(rows):
            return None
    cleared = None
    if is_call_of(exponentials, "where") and counts.get(id(exponentials), 0) == 1:
        cleared, zero, exponentials = exponentials.args
        if (
            _number(zero) != 0
            or cleared.tensor_type.shape[-1:] != (1,)
            or exponentials.tensor_type.rank != 4
        ):
            return None
        cleared = _with_rank(cleared, 4)
    if not is_call_of(exponentials, "nn.softmax") or counts.get(id(exponentials), 0) != 1:
        return None
    if exponentials.attrs.axis % exponentials.tensor_type.rank != exponentials.tensor_type.rank - 1:
        return None
    value_size = expr.tensor_type.shape[2]
    if not serves(rows[0], value_size):
        return None
    with op_registry.span(expr.span):
        found = _scores(exponentials.args[0], counts, tuple(rows))
        made: Any = None if found is None else _attention(found, value, expr, batch)
        if made is not None and cleared is not None:
            if made.tensor_type.shape[:2] != exponentials.tensor_type.shape[:2]:
                return None
            made = call_of("where", cleared, _constant(0.0), made)
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
        causal = _causal_mask(bias, *product.tensor_type.shape[1:])
        bias, attrs = _transposed_bias(bias, attrs)
        if causal:
            bias, attrs = None, attrs.replace(causal_mask=causal, bias_layout="BNST")
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
    """Return (B, N): as the scores say, else as a tensor before an operand does."""
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
        total = bias if total is None else call_of("add", total, bias)
    return None if total is None else fold_constant(Function((), total)).body


def _causal_mask(bias: Expr, rows: int, keys: int) -> str:
    """Return the causal mask that a constant bias says, or ""."""
    if not isinstance(bias, Constant) or bias.tensor_type.shape != (1, 1, rows, keys):
        return ""
    array = bias.array[0, 0]
    seen = array == 0
    if not np.all(seen | (array <= LOST_BESIDE)):
        return ""
    if np.array_equal(seen, np.tri(rows, keys, dtype=bool)):
        return "TopLeft"
    return "BottomRight" if np.array_equal(seen, np.tri(rows, keys, keys - rows, bool)) else ""


def _transposed_bias(bias: Expr, attrs: AttentionAttrs) -> tuple[Expr, AttentionAttrs]:
    """Turn a bias with a row for each query position, which many heads read, to (B, N, T, S).

    One that says something else for every head is read once: it stays as it is unless it is
    constant.
    """
    _, heads, rows, _ = bias.tensor_type.shape
    if rows == 1 or (heads > 1 and not isinstance(bias, Constant)):
        return bias, attrs
    transposed = call_of("transpose", bias, (0, 1, 3, 2))
    return transposed, attrs.replace(bias_layout="BNTS")
