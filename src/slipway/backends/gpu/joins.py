"""Which reductions of a model for a GPU are computed in the kernel of the product they reduce.

Of kernels, as FuseOps leaves them::

    %1 = fn(%p0, %p1) { nn.relu(nn.conv2d(%p0, %p1)) }(%x, w)
    fn(%p0) { nn.global_avg_pool2d(%p0) }(%1)
        ->  fn(%p0, %p1) { mean(nn.relu(nn.conv2d(%p0, %p1)), axis=[2, 3]) }(%x, w)

Where `schedules.joined` costs less than a kernel for each, of a product whose threads have tiles
and whose result nothing else reads.  A global pool becomes the mean, or the largest, over its axes,
so that the product decides the loops, and a convolution's constant weights have its filters last.
"""

from __future__ import annotations

from typing import Any

from slipway.backends.choices import forced_for
from slipway.backends.gpu.schedules.joined import JoinedThreads
from slipway.backends.gpu.schedules.tile import TileKnobs, tiled_axes
from slipway.backends.strategy import Problem, choose
from slipway.relay import op_registry
from slipway.relay.dims import is_open
from slipway.relay.expr import Call, Expr, Function, Var
from slipway.relay.op_registry import OpPattern, is_call_of, is_primitive
from slipway.relay.ops.tensor.reduce import reduced_axes
from slipway.relay.types import TensorType, flatten
from slipway.relay.visit import post_order, rewrite, substitute, use_counts
from slipway.target import Target
from slipway.transform.graph.fold_constant import fold_one
from slipway.transform.graph.fuse_ops import MAX_DEPTH

_REDUCTIONS = ("sum", "mean", "max", "min", "prod")
_POOLS = {
    f"nn.global_{kind}_pool{n}d": name
    for kind, name in (("avg", "mean"), ("max", "max"))
    for n in (1, 2, 3)
}
_MOST_TENSORS = 8  # of a kernel, on every kind of device


def joined_reductions(function: Function, target: Target) -> Function:
    """Return `function` with kernels of a reduction joined to the product's that they read."""
    uses = use_counts(function.body)
    reads: dict[int, int] = {}  # by kernel, which is the same where what it is given has changed
    for expr in post_order(function.body, into_functions=False):
        if (called := _kernel_of(expr)) is not None:
            reads[id(called)] = reads.get(id(called), 0) + uses[id(expr)]

    def rule(call: Expr) -> Expr | None:
        kernel = _kernel_of(call)
        if kernel is None or not isinstance(call, Call):
            return None
        for number, given in enumerate(call.args):
            producer = _kernel_of(given)
            if producer is None or not isinstance(given, Call) or reads.get(id(producer)) != 1:
                continue
            if _is_joined(producer, kernel, kernel.params[number], target):
                return _joined(given, producer, call, kernel, number)
        return None

    return rewrite(function, rule)  # type: ignore[no-any-return]


def _kernel_of(expr: Expr) -> Function | None:
    """Return the kernel that an expression calls."""
    if isinstance(expr, Call) and isinstance(expr.op, Function) and is_primitive(expr.op):
        return expr.op
    return None


def _is_joined(producer: Function, reader: Function, param: Var, target: Target) -> bool:
    """Return whether two kernels are better one: a product, and what reduces its results."""
    product, reduction = _anchor(producer), _anchor(reader)
    if product is None or reduction is None or _axes(reduction) is None:
        return False
    calls = [e for f in (producer, reader) for e in post_order(f.body) if isinstance(e, Call)]
    tensors = [t for f in (producer, reader) for p in f.params for t in flatten(p.checked_type)]
    if len(calls) > MAX_DEPTH or len(tensors) > _MOST_TENSORS:
        return False
    shape = product.tensor_type.shape
    whole = _is_pointwise(producer.body, product, shape)
    if not whole or not _is_pointwise(reduction.args[0], param, shape):
        return False
    if any(is_open(n) or n == 0 for n in shape):
        return False
    return _is_cheaper(product, _axes(reduction) or (), target)


def _anchor(kernel: Function) -> Call | None:
    """Return the only operator of a kernel that reduces, or computes a product."""
    found = [
        e for e in post_order(kernel.body)
        if (definition := op_registry.call_definition(e)) is not None
        and definition.pattern > OpPattern.INJECTIVE
    ]  # fmt: skip
    return found[0] if len(found) == 1 and isinstance(found[0], Call) else None


def _axes(reduction: Call) -> tuple[int, ...] | None:
    """Return the axes that an operator reduces; None where it is no such operator."""
    attrs: Any = reduction.attrs
    data = reduction.args[0]
    rank = len(data.tensor_type.shape) if isinstance(data.type, TensorType) else 0
    if reduction.op.name in _REDUCTIONS:
        return reduced_axes(attrs, rank)
    if reduction.op.name in _POOLS:
        return tuple(k for k, letter in enumerate(attrs.layout) if letter not in "NC")
    return None


def _is_pointwise(value: Expr, source: Expr, shape: tuple[Any, ...]) -> bool:
    """Return whether `value` is `source`, or computed element by element of it alone so."""
    uses = use_counts(value)
    while value is not source:
        definition = op_registry.call_definition(value)
        if definition is None or definition.pattern > OpPattern.BROADCAST:
            return False
        if value.tensor_type.shape != shape:
            return False
        inside = [a for a in value.args if any(e is source for e in post_order(a))]  # type: ignore[attr-defined]
        if len({id(a) for a in inside}) != 1:
            return False
        value = inside[0]
    return uses.get(id(source), 0) > 0 and value.tensor_type.shape == shape


def _is_cheaper(product: Call, axes: tuple[int, ...], target: Target) -> bool:
    in_types = [a.checked_type for a in product.args]
    out = product.tensor_type
    problem = Problem(product.op.name, product.attrs, in_types, [out], target)
    choice = choose(problem, forced_for(problem))
    if choice is None or not isinstance(choice.knobs, TileKnobs):
        return False
    sides = choice.knobs.rows, choice.knobs.columns
    threads = JoinedThreads.of(out.shape, axes, tiled_axes(problem), sides, target)
    definition = op_registry.get(product.op.name)
    depth = max(1, round(definition.count_flops(product.attrs, in_types, out) / (2 * out.size)))
    return threads.is_cheaper(depth)


def _joined(given: Call, producer: Function, call: Call, kernel: Function, number: int) -> Expr:
    """Return the call of one kernel in place of two."""
    params, args, made = _with_columns(producer, given.args)
    params = (*params, *(p for k, p in enumerate(kernel.params) if k != number))
    args = (*args, *(a for k, a in enumerate(call.args) if k != number))
    body = substitute(kernel.body, {kernel.params[number]: made})
    return Call(Function(params, rewrite(body, _mean), None, kernel.attrs), args)


def _with_columns(
    producer: Function, args: tuple[Expr, ...]
) -> tuple[tuple[Var, ...], tuple[Expr, ...], Expr]:
    """Return a kernel's parameters, arguments and body, with a convolution's filters last.

    A thread reads the weights of its filters from one place: apart they may cost more than the
    image does (LLVM 14, which is PoCL's, gathers them where what follows is a sum).
    """
    product = _anchor(producer)
    unchanged = producer.params, args, producer.body
    if not is_call_of(product, "nn.conv2d"):
        return unchanged
    attrs: Any = product.attrs
    positions = [k for k, param in enumerate(producer.params) if param is product.args[1]]
    if attrs.groups != 1 or attrs.kernel_layout != "OIHW" or len(positions) != 1:
        return unchanged
    (position,) = positions
    weight = args[position]
    columns = fold_one(op_registry.make("transpose")(weight, axes=(2, 3, 1, 0)))
    if columns is None:
        return unchanged
    param = Var(producer.params[position].name_hint, columns.checked_type)
    made = product.replace(args=(product.args[0], param), attrs=attrs.replace(kernel_layout="HWIO"))
    params = (*producer.params[:position], param, *producer.params[position + 1 :])
    args = (*args[:position], columns, *args[position + 1 :])
    return params, args, substitute(producer.body, {product: made})


def _mean(pool: Expr) -> Expr | None:
    """Return a global pool as the reduction over its axes."""
    if not is_call_of(pool, *_POOLS):
        return None
    axes = _axes(pool)
    return op_registry.make(_POOLS[pool.op.name])(pool.args[0], axis=axes, keepdims=True)  # type: ignore[no-any-return]
