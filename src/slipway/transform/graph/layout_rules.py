"""How a call means the same on a value whose axes lie in another order.

`adapt` gives for a call on values that have moved (`Moved`) a call on them as they lie, with its
axes, windows and sizes named anew.  Nothing is transformed where both sides can be had; an
operator that no rule speaks of gets its operands in the graph's own layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from slipway.relay import op_registry
from slipway.relay.expr import Call, Expr, Tuple, TupleGetItem
from slipway.relay.layout import parse_layout
from slipway.relay.ops.tensor.reduce import reduced_axes
from slipway.relay.types import TupleType


@dataclass(frozen=True)
class Moved:
    """`expr` holds in layout `target` what the graph's value holds in layout `source`.

    Of a tuple: each tensor of it.  Names of axes are letters, the same ones in both.
    """

    expr: Expr
    source: str
    target: str

    @property
    def is_blocked(self) -> bool:
        """Whether an axis is cut into blocks."""
        return any(axis.block for axis in parse_layout(self.target).axes)

    def axis(self, axis: int) -> int:
        """Return where axis `axis` of the graph's value lies."""
        return self.target.index(self.source[axis % len(self.source)])

    def ordered(self, per_axis: Sequence[Any]) -> tuple[Any, ...]:
        """Return what the graph says of each axis in the order in which they lie."""
        return tuple(per_axis[self.source.index(letter)] for letter in self.target)

    def of(self, expr: Expr) -> Moved:
        """Return another value that has moved in the same way."""
        return Moved(expr, self.source, self.target)


@dataclass(frozen=True)
class Fields:
    """A tuple of which some fields have moved and others have not."""

    fields: tuple[Value, ...]


Value = Expr | Moved | Fields
Transform = Callable[[Expr, str, str], Expr]
_Rule = Callable[[Call, Moved, list[Expr]], "Value | None"]
_RULES: dict[str, _Rule] = {}


def adapt(call: Call, args: Sequence[Value], parts: Sequence[Value], transform: Transform) -> Value:
    """Return `call` on operands that have moved; the call itself on plain ones where it cannot.

    `args` are its operands; `parts` are the fields of its operand, where that is one Tuple.
    """
    name = call.op.name
    made = None
    if op_registry.is_pointwise(call):
        made = _pointwise(call, args, transform)
    elif name in ("concatenate", "stack") and parts:
        made = _join(call, parts, transform)
    elif name == "nn.bias_add" and isinstance(args[0], Moved):
        made = _bias(call, args, transform)
    elif (
        name in _RULES
        and isinstance(args[0], Moved)
        and (not args[0].is_blocked or _RULES[name] is _pool)
    ):
        others = [plain(a, transform) for a in args[1:]]
        made = _RULES[name](call, args[0], others)
    if made is not None:
        return made
    return _call(call, [plain(a, transform) for a in args])


def plain(value: Value, transform: Transform) -> Expr:
    """Return a value in the graph's own layout."""
    if isinstance(value, Fields):
        return Tuple(tuple(plain(f, transform) for f in value.fields))
    if not isinstance(value, Moved):
        return value
    if isinstance(value.expr.type, TupleType):
        fields = [TupleGetItem(value.expr, i) for i in range(len(value.expr.type.fields))]
        return Tuple(tuple(plain(value.of(f), transform) for f in fields))
    return transform(value.expr, value.target, value.source)


def _call(call: Call, args: Sequence[Expr], attrs: Any = None) -> Call:
    return Call(call.op, tuple(args), call.attrs if attrs is None else attrs, call.span)


def _pointwise(call: Call, args: Sequence[Value], transform: Transform) -> Value | None:
    """All operands as the first of full rank that has moved lies, constants and vectors too."""
    rank = len(call.tensor_type.shape)
    lead = next((a for a in args if isinstance(a, Moved) and len(a.source) == rank), None)
    if lead is None:
        return None
    found = [_operand(a, lead, transform) for a in args]
    if any(f is None for f in found):
        return None
    return lead.of(_call(call, [f for f in found if f is not None]))


def _operand(given: Value, lead: Moved, transform: Transform) -> Expr | None:
    if isinstance(given, Moved) and (given.source, given.target) == (lead.source, lead.target):
        return given.expr
    value = plain(given, transform)
    shape, rank = value.tensor_type.shape, len(lead.source)
    if not shape or value.tensor_type.size == 1:
        return op_registry.make("reshape")(value, ()) if shape else value
    if len(shape) < rank:
        value = op_registry.make("reshape")(value, (1,) * (rank - len(shape)) + tuple(shape))
    whole = dict(zip(lead.source, value.tensor_type.shape, strict=True))
    layout = parse_layout(lead.target)
    if any(whole[letter] % layout.block_of(letter) for letter in layout.letters):
        return None  # one for all channels has no blocks of them
    if sum(extent > 1 for extent in whole.values()) <= 1:
        return op_registry.make("reshape")(value, layout.shape_of(whole))  # type: ignore[no-any-return]
    return transform(value, lead.source, lead.target)


def _bias(call: Call, args: Sequence[Value], transform: Transform) -> Value | None:
    rank = len(call.tensor_type.shape)
    bias = plain(args[1], transform)
    shape = [1] * rank
    shape[call.attrs.axis % rank] = bias.tensor_type.size
    column = op_registry.make("reshape")(bias, tuple(shape))
    add = Call(op_registry.get("add").op, (call.args[0], column), None, call.span)
    return _pointwise(add, [args[0], column], transform)


def _join(call: Call, parts: Sequence[Value], transform: Transform) -> Value | None:
    lead = next((p for p in parts if isinstance(p, Moved)), None)
    if lead is None or lead.is_blocked or call.op.name == "stack":
        return None
    fields = [
        p.expr
        if isinstance(p, Moved) and (p.source, p.target) == (lead.source, lead.target)
        else transform(plain(p, transform), lead.source, lead.target)
        for p in parts
    ]
    attrs = call.attrs.replace(axis=lead.axis(call.attrs.axis))
    return lead.of(_call(call, [Tuple(tuple(fields))], attrs))


def _rule(*names: str) -> Callable[[_Rule], _Rule]:
    def enter(function: _Rule) -> _Rule:
        _RULES.update(dict.fromkeys(names, function))
        return function

    return enter


@_rule(
    "nn.prelu", "nn.softmax", "nn.log_softmax", "nn.layer_norm", "nn.lrn", "qnn.quantize",
    "qnn.dequantize", "split", "cumsum", "cumprod", "reverse", "repeat",
)  # fmt: skip
def _along_one_axis(call: Call, value: Moved, others: list[Expr]) -> Value | None:
    axis = call.attrs.axis
    if axis is None:
        return None
    axes = tuple(map(value.axis, axis)) if isinstance(axis, tuple) else value.axis(axis)
    return value.of(_call(call, [value.expr, *others], call.attrs.replace(axis=axes)))


@_rule("nn.instance_norm")
def _instance_norm(call: Call, value: Moved, others: list[Expr]) -> Value | None:
    return _along_one_axis(call, value, others) if value.axis(0) == 0 else None


@_rule("nn.batch_norm")
def _batch_norm(call: Call, value: Moved, others: list[Expr]) -> Value | None:
    """Only the data has moved; the other two results are vectors."""
    made = _along_one_axis(call, value, others)
    assert isinstance(made, Moved)
    data, *vectors = (TupleGetItem(made.expr, i) for i in range(3))
    return Fields((made.of(data), *vectors))


@_rule("sum", "mean", "max", "min", "prod", "all", "any")
def _reduction(call: Call, value: Moved, others: list[Expr]) -> Value | None:
    axes = reduced_axes(call.attrs, len(value.source))
    attrs = call.attrs.replace(axis=tuple(sorted(map(value.axis, axes))), exclude=False)
    return _without(value, axes, call.attrs.keepdims, _call(call, [value.expr], attrs))


@_rule("argmax", "argmin")
def _arg_reduction(call: Call, value: Moved, others: list[Expr]) -> Value | None:
    axis = call.attrs.axis
    if not isinstance(axis, int):  # a position in several axes depends on their order
        return None
    attrs = call.attrs.replace(axis=value.axis(axis))
    return _without(value, [axis], call.attrs.keepdims, _call(call, [value.expr], attrs))


@_rule("squeeze")
def _squeeze(call: Call, value: Moved, others: list[Expr]) -> Value | None:
    shape = dict(zip(value.target, value.expr.tensor_type.shape, strict=True))
    axes = call.attrs.axis
    if axes is None:
        axes = tuple(i for i, letter in enumerate(value.source) if shape[letter] == 1)
    attrs = call.attrs.replace(axis=tuple(sorted(map(value.axis, axes))))
    return _without(value, axes, False, _call(call, [value.expr], attrs))


def _without(value: Moved, axes: Sequence[int], keeps: bool, made: Expr) -> Value:
    """Return `made`, in which the axes are gone; where what is left is in order, nothing moved."""
    if keeps:
        return value.of(made)
    gone = {value.source[axis % len(value.source)] for axis in axes}
    source, target = (
        "".join(letter for letter in layout if letter not in gone)
        for layout in (value.source, value.target)
    )
    return made if source == target else Moved(made, source, target)


@_rule("nn.pad")
def _pad(call: Call, value: Moved, others: list[Expr]) -> Value | None:
    attrs = call.attrs.replace(pad_width=value.ordered(call.attrs.pad_width))
    return value.of(_call(call, [value.expr], attrs))


@_rule("image.resize")
def _resize(call: Call, value: Moved, others: list[Expr]) -> Value | None:
    changes = {
        field: value.ordered(getattr(call.attrs, field))
        for field in ("size", "scales")
        if getattr(call.attrs, field)
    }
    return value.of(_call(call, [value.expr], call.attrs.replace(**changes)))


@_rule("strided_slice")
def _slice(call: Call, value: Moved, others: list[Expr]) -> Value | None:
    axes = call.attrs.axes or range(len(call.attrs.begin))
    attrs = call.attrs.replace(axes=tuple(map(value.axis, axes)))
    return value.of(_call(call, [value.expr], attrs))


@_rule("transpose")
def _transpose(call: Call, value: Moved, others: list[Expr]) -> Value | None:
    """Nothing is done: another order is asked for of what lies as it lies."""
    rank = len(value.source)
    axes = call.attrs.axes or tuple(reversed(range(rank)))
    layout = "".join(value.source[axis % rank] for axis in axes)
    return value.expr if layout == value.target else Moved(value.expr, layout, value.target)


@_rule("layout_transform")
def _layout_transform(call: Call, value: Moved, others: list[Expr]) -> Value | None:
    layout = call.attrs.dst_layout
    if call.attrs.src_layout != value.source or sorted(layout) != sorted(value.source):
        return None
    return value.expr if layout == value.target else Moved(value.expr, layout, value.target)


def _pool(call: Call, value: Moved, others: list[Expr]) -> Value | None:
    if call.attrs.layout != value.source:
        return None
    attrs = call.attrs.replace(layout=value.target)
    return value.of(_call(call, [value.expr], attrs))


_rule(*(f"nn.{kind}_pool{n}d" for n in (1, 2, 3) for kind in (
    "max", "avg", "global_max", "global_avg", "adaptive_max", "adaptive_avg"
)))(_pool)  # fmt: skip


def field_of(value: Value, index: int) -> Value:
    """Return one field of a tuple, as it lies."""
    if isinstance(value, Moved):
        return value.of(TupleGetItem(value.expr, index))
    if isinstance(value, Fields):
        return value.fields[index]
    return value.fields[index] if isinstance(value, Tuple) else TupleGetItem(value, index)
