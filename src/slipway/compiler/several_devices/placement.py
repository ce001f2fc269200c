"""Which device computes each operator of a model, and which of them are compiled together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from slipway.relay.expr import Call, Constant, Expr, Op, Tuple, TupleGetItem, Var
from slipway.relay.op_registry import OpPattern, call_definition, is_call_of
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order

ON_DEVICE, DEVICE_COPY = "annotation.on_device", "device_copy"
_PROCESSOR = 1


def is_mark(expr: Expr) -> bool:
    """Return whether an expression is the value below it, marked."""
    return is_call_of(expr, ON_DEVICE, DEVICE_COPY)


CONTROL = ("branch", "scan", "while_loop")  # what the processor decides on while the model runs
# What one thread of a GPU would do alone, or one for each row -> the elements that it may have.
SERIAL = {
    "topk": 1024, "vision.select_boxes": 1024, "vision.suppress_boxes": 1024,
    "cumsum": 8192, "cumprod": 8192,
}  # fmt: skip


def is_serial(call: Call) -> bool:
    """Return whether a thread of a GPU would take so many steps that the processor is sooner done.

    A thread of lavapipe would not even end them: it stops after 65,535.
    """
    if not is_call_of(call, *SERIAL):
        return False
    data = call.args[0].checked_type
    assert isinstance(data, TensorType)
    shape = data.shape
    name = call.op.name
    if name in ("cumsum", "cumprod") and call.attrs.axis is not None:
        shape = (shape[call.attrs.axis],)
    return all(isinstance(n, int) for n in shape) and prod(shape) > SERIAL[name]


def place(
    body: Expr, default: int | None, accelerator: int, control_only: bool = False
) -> dict[int, int]:
    """Return the kind of device of each operator's call, by the id of the call.

    A call is where its mark says, or where the calls are that alone read it and follow a mark;
    others are on `default`.  Where that is None, they are on the processor if the model has a mark,
    and on `accelerator` if it has none, but for what no threads could share: sorting, say, or
    control flow.  With `control_only`, only control flow and long serial work are on the processor.
    """
    order = post_order(body, into_functions=False)
    has_marks = any(is_mark(expr) for expr in order)
    wanted: dict[int, set[int | None]] = {id(e): set() for e in order}
    placed: dict[int, int] = {}

    def usual(call: Call) -> int:
        if control_only:
            alone = is_call_of(call, *CONTROL) or is_serial(call)
            return _PROCESSOR if alone else accelerator
        if default is not None or has_marks:
            return _PROCESSOR if default is None else default
        definition = call_definition(call)
        alone = definition is None or definition.pattern == OpPattern.OPAQUE
        return _PROCESSOR if alone else accelerator

    for expr in reversed(order):
        follows = wanted[id(expr)]
        match expr:
            case Call() if is_call_of(expr, ON_DEVICE):
                wanted[id(expr.args[0])].add(expr.attrs.device_type)
            case Call() if is_call_of(expr, DEVICE_COPY):
                wanted[id(expr.args[0])].add(expr.attrs.src_device_type or None)
            case Call():
                (device,) = follows if len(follows) == 1 else (None,)
                placed[id(expr)] = usual(expr) if device is None else device
                for arg in expr.args:
                    wanted[id(arg)].add(device)
            case Tuple():
                for field in expr.fields:
                    wanted[id(field)] |= follows
            case TupleGetItem():
                wanted[id(expr.tuple_value)] |= follows
            case _:
                pass
    return placed


@dataclass(frozen=True)
class DeviceRegion:
    """Calls that are compiled together, in order, for one kind of device."""

    device: int
    calls: tuple[Call, ...]


def regions(body: Expr, placed: dict[int, int]) -> list[DeviceRegion]:
    """Cut a graph into regions, each of which needs only what earlier ones compute.

    A call's level is how often a value changes devices on its way there; calls of one level and
    device are a region.
    """
    level: dict[int, int] = {}
    found: dict[tuple[int, int], list[Call]] = {}
    for expr in post_order(body, into_functions=False):
        if not isinstance(expr, Call) or is_mark(expr):
            continue
        device = placed[id(expr)]
        own = 0
        for arg in expr.args:
            for source in sources(arg):
                if isinstance(source, Call):
                    own = max(own, level[id(source)] + (placed[id(source)] != device))
        level[id(expr)] = own
        found.setdefault((own, device), []).append(expr)
    return [DeviceRegion(device, tuple(found[n, device])) for n, device in sorted(found)]


def sources(expr: Expr) -> Iterator[Expr]:
    """Yield the calls, variables and constants whose values an expression is put together from."""
    match expr:
        case Tuple():
            for field in expr.fields:
                yield from sources(field)
        case TupleGetItem():
            yield from sources(expr.tuple_value)
        case Call() if is_mark(expr):
            yield from sources(expr.args[0])
        case Call() | Var() | Constant():
            yield expr
        case Op() | _:
            pass
