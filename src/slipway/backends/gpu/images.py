"""Images between the kernels of a model, on devices that fetch texels through a cache of their own.

    nn.conv2d(%x, %w)  ->  layout_transform(
                               nn.contrib_conv2d_nchwc(layout_transform(%x, NCHW, NCHW4c), %w4),
                               NCHW4c, NCHW)

`in_texels` brings convolutions into blocks of four channels, with what reads them.  `with_images`
says of each fused kernel which of its tensors are images (`ir.instructions.texels`): those in such
blocks that a kernel of ours writes, a texel at a time, and that only kernels read; and weights.
Inputs and outputs of the model stay memory like any.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from slipway.backends.cpu.lowering.alter_layout import alter_layout
from slipway.backends.cpu.lowering.layout_wish import LayoutWish
from slipway.backends.strategy import Problem, choose
from slipway.ir.instructions.texels import DTYPES, LANES, MOST, SCOPE, row_axes
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem, Var
from slipway.relay.op_registry import is_call_of, is_primitive
from slipway.relay.open_dims import has_open
from slipway.relay.types import TensorType, flatten
from slipway.relay.visit import post_order, rebuild
from slipway.target import Target
from slipway.transform.graph.fold_constant import fold_constant
from slipway.transform.graph.simplify_expr import RESHAPES

IMAGES = "images"  # of a fused function: the scope of each of its tensors, "-" of memory like any
_BLOCKED = ("conv", "depthwise_conv")
_WINDOWS = tuple(
    name
    for n in (1, 2, 3)
    for name in (
        *(f"nn.contrib_{kind}{n}d_nchwc" for kind in _BLOCKED),
        f"nn.max_pool{n}d",
        f"nn.avg_pool{n}d",
    )
)
_CONVS = tuple(name for name in _WINDOWS if "contrib" in name)
# A thread writes whole texels with these.
_WRITERS = ("threads.texels", "threads.elements")


def takes_images(target: Target) -> bool:
    """Return whether a model's tensors are images: Adreno, or a target that tells their sizes."""
    told = target.attrs.get("texture_spatial_limit")
    return target.kind.name == "opencl" and (bool(told) or target.device_name == "adreno")


def is_texels(type_: Any) -> bool:
    """Return whether a tensor could be an image: floats whose last axis is a texel."""
    return (
        isinstance(type_, TensorType)
        and type_.dtype in DTYPES
        and type_.rank >= 5
        and type_.shape[-1] == LANES
        and not has_open(type_)
    )


def in_texels(function: Function) -> Function:
    """Return `function` with its convolutions on blocks of four channels."""
    wish = LayoutWish("blocked", read=LANES, written=LANES)
    plain = LayoutWish("plain")

    def wanted(call: Call) -> LayoutWish:
        return plain if is_call_of(call, "nn.dense") else wish

    made = alter_layout(function, LANES, wish=wanted)
    return made if made is function else fold_constant(made)


def with_images(function: Function, target: Target) -> Function:
    """Return `function` with the images of each kernel, in the attribute `IMAGES`."""
    scopes = _scopes(function, target)
    if not scopes:
        return function
    known: dict[int, Expr] = {}

    def of(expr: Expr) -> Expr:
        return known.get(id(expr), expr)

    for expr in post_order(function, into_functions=False):
        if expr is function:
            break
        made = rebuild(expr, of)
        if isinstance(expr, Call) and isinstance(expr.op, Function):
            told = [scopes.get(id(value), "-") for value in (*_read(expr), expr)]
            if any(scope != "-" for scope in told):
                kernel = expr.op.with_attr(IMAGES, " ".join(told))
                made = Call(kernel, made.args, made.attrs, made.span)
        known[id(expr)] = made
    return Function(function.params, of(function.body), None, function.attrs)


def _read(call: Call) -> list[Expr]:
    """Return the tensors that a kernel reads, one for each of its parameters' fields."""
    found: list[Expr] = []
    for argument in call.args:
        fields = argument.fields if isinstance(argument, Tuple) else (argument,)
        for field in fields:  # which may be a tuple itself, of no images
            found += [field] * len(flatten(field.checked_type))
    return found


def _scopes(function: Function, target: Target) -> dict[int, str]:
    """Return the scope of each value that is an image, by its id."""
    readers: dict[int, list[Call]] = {}
    values: dict[int, Expr] = {}
    elsewhere = set(_used(function.body))
    for expr in post_order(function.body, into_functions=False):
        values[id(expr)] = expr
        if isinstance(expr, Call) and _is_kernel(expr):
            for value in _read(expr):
                readers.setdefault(id(value), []).append(expr)
        elif not isinstance(expr, Tuple):
            elsewhere.update(_used(*_children(expr)))
    scopes = {}
    for number, value in values.items():
        if number in elsewhere or not readers.get(number):
            continue
        scope = _scope_of(value, readers[number], target)
        if scope:
            scopes[number] = scope
    return scopes


def _is_kernel(call: Call) -> bool:
    return is_primitive(call.op) and not call.op.attr("Compiler")


def _children(expr: Expr) -> Iterator[Expr]:
    match expr:
        case Call():
            yield from expr.args
        case TupleGetItem():
            yield expr.tuple_value
        case Var() | Constant() | Op() | Function():
            pass
        case _:
            yield from (e for e in post_order(expr, into_functions=False) if e is not expr)


def _used(*values: Expr) -> Iterator[int]:
    """Return the ids of values, and of the fields of tuples."""
    for value in values:
        yield id(value)
        if isinstance(value, Tuple):
            yield from _used(*value.fields)


def _scope_of(value: Expr, readers: list[Call], target: Target) -> str:
    """Return the scope of a value that is an image; "" where it is none."""
    if not is_texels(value.type) or any(_only_reshapes(r.op) for r in readers):
        return ""
    shape = value.tensor_type.shape
    if isinstance(value, Constant):
        is_weight = all(_is_weight(value, reader) for reader in readers)
        return fitting(shape, (f"{SCOPE}-weight", SCOPE), target) if is_weight else ""
    if not isinstance(value, Call) or not _is_kernel(value):
        return ""
    if not any(_has_window(call) for call in (value, *readers)) or not writes_texels(value, target):
        return ""
    return fitting(shape, (SCOPE,), target)


def fitting(shape: tuple[int, ...], scopes: tuple[str, ...], target: Target) -> str:
    """Return the first of the scopes whose image of a shape a device has; "": none."""
    most = min(int(target.attrs.get("texture_spatial_limit") or MOST), MOST)
    for scope in scopes:
        rows = row_axes(scope, len(shape))
        if max(prod(shape[:rows]), prod(shape[rows:-1])) <= most:
            return scope
    return ""


def _calls(kernel: Any) -> list[Call]:
    """Return the operators of a kernel, in order."""
    return [e for e in post_order(kernel.body, into_functions=False) if isinstance(e, Call)]


def _only_reshapes(kernel: Any) -> bool:
    return all(is_call_of(call, *RESHAPES) for call in _calls(kernel))


def _has_window(call: Call) -> bool:
    return any(is_call_of(inner, *_WINDOWS) for inner in _calls(call.op))


def _is_weight(value: Constant, reader: Call) -> bool:
    """Return whether a constant is the weights of a kernel's convolution, and nothing else."""
    kernel: Any = reader.op
    found = [p for p, a in zip(kernel.params, reader.args, strict=True) if a is value]
    reads = [c for c in _calls(kernel) if any(a is p for a in c.args for p in found)]
    inside = any(isinstance(a, Tuple) and value in a.fields for a in reader.args)
    return not inside and all(
        is_call_of(c, *_CONVS) and not any(c.args[0] is p for p in found) for c in reads
    )


def writes_texels(call: Call, target: Target) -> bool:
    """Return whether a kernel's threads write whole texels of its result."""
    best, chosen = -1, None
    for inner in _calls(call.op):
        definition = op_registry.get(inner.op.name)
        if int(definition.pattern) >= best:
            best = int(definition.pattern)
            types = [a.checked_type for a in inner.args]
            problem = Problem(
                inner.op.name, inner.attrs, types, flatten(inner.checked_type), target
            )
            chosen = choose(problem, None)
    return chosen is not None and chosen.strategy.name in _WRITERS
