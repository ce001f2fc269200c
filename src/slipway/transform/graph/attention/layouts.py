"""Layouts of attentions: transposes, and repeats of heads, around nn.attention are taken into it.

    nn.attention(transpose(q, [0, 2, 1, 3]), ...)   ->  nn.attention(q, ...) with another layout
    transpose(nn.attention(...), [0, 2, 1, 3])      ->  the same
    nn.attention(q, repeat(k, 4), repeat(v, 4))     ->  nn.attention(q, k, v)

What must stay in neighbouring elements is the last axis of the value and of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway.relay import op_registry
from slipway.relay.expr import Call, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.ops.nn.attention import attention_call
from slipway.relay.visit import post_order, rebuild, use_counts
from slipway.transform.graph.simplify_expr import RESHAPES

ATTENTIONS = ("nn.attention", "nn.attention_bias")


def absorb_transposes(function: Function) -> Function:
    """Return `function` with transposes and repeats around attentions taken into them."""
    return rewrite_counted(function, _absorb)


def rewrite_counted(
    function: Function, rule: Callable[[Any, dict[int, int]], Expr | None]
) -> Function:
    """Apply a rule bottom up that sees, by id, how many readers every expression has."""
    return _Rewrite(function, rule).run()


class _Rewrite:
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


def call_of(name: str, *arguments: Any) -> Any:
    """Return a call of the operator `name`."""
    return op_registry.make(name)(*arguments)


def reshaped(expr: Expr, shape: tuple[int, ...]) -> Expr:
    """Return `expr` in another shape, without a chain of reshapes."""
    while is_call_of(expr, *RESHAPES) and expr.tensor_type.shape != shape:
        expr = expr.args[0]
    if expr.tensor_type.shape == shape:
        return expr
    return call_of("reshape", expr, shape, True)  # type: ignore[no-any-return]


def _absorb(expr: Any, counts: dict[int, int]) -> Expr | None:
    """The rule for transposes around an attention."""
    if is_call_of(expr, *ATTENTIONS):
        return _absorb_inputs(expr)
    if is_call_of(expr, "transpose"):
        return _absorb_output(expr, counts)
    return None


def _axes(call: Call) -> list[int]:
    rank = call.tensor_type.rank
    return [a % rank for a in call.attrs.axes] if call.attrs.axes else list(range(rank))[::-1]


def _absorb_inputs(call: Call) -> Expr | None:
    attrs: Any = call.attrs
    names = ("query_layout", "key_layout", "value_layout")
    inputs, layouts = list(call.args), {}
    for number, name in enumerate(names):
        layout: str = getattr(attrs, name)
        below: Any = inputs[number]
        while True:
            below = _with_four_axes(below)
            if is_call_of(below, "transpose"):
                letters = dict(zip(_axes(below), layout, strict=True))
                layout, below = "".join(letters[axis] for axis in range(4)), below.args[0]
            elif name != "query_layout" and (single := _before_repeat(below, layout)) is not None:
                below = single
            else:
                break
            if name != "value_layout" or layout[3] == "H":  # else it would be copied once more
                inputs[number], layouts[name] = below, layout
    if not layouts:
        return None
    heads = [x.tensor_type.shape[layouts.get(n, getattr(attrs, n)).index("N")]
             for n, x in zip(names[1:], inputs[1:3], strict=True)]  # fmt: skip
    if heads[0] != heads[1]:  # only one of key and value was repeated
        return None
    with op_registry.span(call.span):
        return attention_call(attrs.replace(**layouts), *inputs)


def _with_four_axes(expr: Any) -> Any:
    """A transpose of three axes whose first becomes two: the same with the two from the start."""
    if not is_call_of(expr, *RESHAPES) or not is_call_of(expr.args[0], "transpose"):
        return expr
    transposed = expr.args[0]
    split, merged = expr.tensor_type.shape, transposed.tensor_type.shape
    if transposed.tensor_type.rank != 3 or split[2:] != merged[1:]:
        return expr
    source, axes = transposed.args[0], _axes(transposed)
    first = axes[0]
    shape = source.tensor_type.shape
    four = reshaped(source, (*shape[:first], *split[:2], *shape[first + 1 :]))
    positions = [first, first + 1, *(a + (a > first) for a in axes[1:])]
    return call_of("transpose", four, positions)


def _before_repeat(expr: Any, layout: str) -> Expr | None:
    """Return a key or value before each of its heads was repeated, or None."""
    at = layout.index("N")
    if is_call_of(expr, "repeat"):
        axis = expr.attrs.axis
        whole = axis is not None and axis % 4 == at
        return expr.args[0] if whole else None
    if not is_call_of(expr, *RESHAPES) or not is_call_of(expr.args[0], "broadcast_to"):
        return None
    wide = expr.args[0]
    shape, source = expr.tensor_type.shape, wide.args[0]
    if wide.tensor_type.rank != 5 or source.tensor_type.rank != 5:
        return None
    heads = source.tensor_type.shape[at]
    single = (*shape[:at], heads, *shape[at + 1 :])
    repeats = (*shape[:at], heads, shape[at] // max(heads, 1), *shape[at + 1 :])
    once = (*shape[:at], heads, 1, *shape[at + 1 :])
    fits = wide.tensor_type.shape == repeats and source.tensor_type.shape == once
    return reshaped(source, single) if fits else None


def _absorb_output(transposed: Call, counts: dict[int, int]) -> Expr | None:
    """transpose(attention): the attention writes that layout."""
    source: Any = transposed.args[0]
    shape = source.tensor_type.shape
    while is_call_of(source, *RESHAPES) and counts.get(id(source), 0) == 1:
        source = source.args[0]
    if not is_call_of(source, *ATTENTIONS) or counts.get(id(source), 0) != 1:
        return None
    layout = source.attrs.out_layout
    parts = list(layout) if source.tensor_type.shape == shape else [layout[:2], *layout[2:]]
    merged = (source.tensor_type.shape[0] * source.tensor_type.shape[1],)
    if len(parts) == 3 and shape != merged + source.tensor_type.shape[2:]:
        return None
    layout = "".join(parts[axis] for axis in _axes(transposed))
    if layout[3] != "H":
        return None
    with op_registry.span(source.span):
        made = attention_call(source.attrs.replace(out_layout=layout), *source.args)
        return reshaped(made, transposed.tensor_type.shape)
