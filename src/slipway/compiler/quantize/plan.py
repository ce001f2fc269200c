"""Which values of a relay function are stored as integers, and which of them share a scale.

Products with constant weights read integers.  From their data it goes backwards: through
activations that run in the rescaling of a sum, through what only moves elements (and so shares
its scale), to sums and products of two tensors, whose operands are integers too.  What no product
needs stays real, as what follows the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from slipway.compiler.quantize.config import QConfig
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import post_order

CONVS = ("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv1d_transpose", "nn.conv2d_transpose",
         "nn.conv3d_transpose")  # fmt: skip
PRODUCTS = (*CONVS, "nn.dense")
# They run inside the rescaling of what is before them.
TAILS = ("nn.relu", "clip", "nn.bias_add")
# The operands are brought to one scale.
ELEMENTWISE = ("add", "subtract", "multiply")
# The result has the scale of the data.
MOVES = (
    "nn.max_pool2d", "reshape", "squeeze", "expand_dims", "nn.batch_flatten", "strided_slice",
    "transpose", "nn.pad", "nn.dropout",
)  # fmt: skip
POOLS = ("nn.avg_pool2d", "nn.global_avg_pool2d")


@dataclass
class Plan:
    """Values to store as integers; `group` maps each to the one whose scale it has."""

    products: list[Call] = field(default_factory=list)
    stored: list[Expr] = field(default_factory=list)
    group: dict[int, Expr] = field(default_factory=dict)

    def root(self, value: Expr) -> Expr:
        """Return the value whose scale `value` has."""
        while (other := self.group.get(id(value), value)) is not value:
            value = other
        return value

    def roots(self) -> list[Expr]:
        """Return the values that have a scale of their own."""
        return [v for v in self.stored if self.root(v) is v]


def make_plan(function: Function, config: QConfig) -> Plan:
    """Decide what of a typed function is stored as integers."""
    order = post_order(function.body, into_functions=False)
    plan = Plan()
    plan.products = _products(order, config)
    products = {id(p) for p in plan.products}
    needed: dict[int, Expr] = {}
    for expr in reversed(order):  # readers before what they read
        if id(expr) in products:
            assert isinstance(expr, Call)
            _need(expr.args[0], needed)
        elif id(expr) in needed:
            _need_below(expr, products, needed, plan)
    plan.stored = [e for e in order if id(e) in needed]
    return plan


def _products(order: Sequence[Expr], config: QConfig) -> list[Call]:
    found, seen = [], 0
    skipped = {int(i) for i in config.skip_conv_layers or ()}
    enabled = None if config.debug_enabled_ops is None else set(map(str, config.debug_enabled_ops))
    for expr in order:
        if not isinstance(expr, Call) or not is_call_of(expr, *PRODUCTS):
            continue
        name = expr.op.name
        skips = name == "nn.dense" and config.skip_dense_layer
        if name == "nn.conv2d":
            skips = seen in skipped
            seen += 1
        if enabled is not None and name not in enabled:
            skips = True
        real = expr.tensor_type.dtype == "float32"
        if not skips and real and isinstance(expr.args[1], Constant):
            found.append(expr)
    return found


def _need(value: Expr, needed: dict[int, Expr]) -> None:
    if not isinstance(value, Constant) and value.tensor_type.dtype == "float32":
        needed[id(value)] = value


def _need_below(value: Expr, products: set[int], needed: dict[int, Expr], plan: Plan) -> None:
    """What must be integers so that `value` is computed from integers."""
    end = value
    while (below := _without_tail(end)) is not None:
        end = below
    if not isinstance(end, Call) or not isinstance(end.op, Op) or id(end) in products:
        return
    name = end.op.name
    if name in ELEMENTWISE:
        sides = [a for a in end.args if not isinstance(a, Constant)]
        if len(sides) == 2 and all(_is_made(a) for a in sides):
            for side in sides:
                _need(side, needed)
    elif name == "concatenate" and isinstance(end.args[0], Tuple):
        parts = end.args[0].fields
        if all(_is_made(p) for p in parts):
            for part in parts:
                _need(part, needed)
                _share(plan, value if end is value else part, part)
    elif name in MOVES:
        _need(end.args[0], needed)
        if end is value:
            _share(plan, value, end.args[0])
    elif name in POOLS:
        _need(end.args[0], needed)


def _without_tail(value: Expr) -> Expr | None:
    """Return what an activation or the addition of a constant is applied to."""
    if not isinstance(value, Call) or not isinstance(value.op, Op):
        return None
    if is_call_of(value, *TAILS):
        return value.args[0]
    if is_call_of(value, "add", "subtract") and isinstance(value.args[1], Constant):
        return value.args[0]
    return (
        value.args[1] if is_call_of(value, "add") and isinstance(value.args[0], Constant) else None
    )


def _is_made(value: Expr) -> bool:
    """Return whether a value is a real tensor that something computes or is given."""
    return not isinstance(value, Constant) and value.tensor_type.dtype == "float32"


def _share(plan: Plan, one: Expr, other: Expr) -> None:
    first, second = plan.root(one), plan.root(other)
    if first is not second:
        plan.group[id(first)] = second
