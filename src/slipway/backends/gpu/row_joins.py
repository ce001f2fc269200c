"""Which kernels of a model that reduce the same rows are computed as one.

Of kernels, as FuseOps leaves them::

    %1 = fn(%p0) { mean(%p0, axis=[-1]) }(%x)
    fn(%p0, %p1) { mean(power(%p0 - %p1, 2), axis=[-1]) }(%x, %1)
        ->  fn(%p0) { mean(power(%p0 - mean(%p0, axis=[-1]), 2), axis=[-1]) }(%x)

So variances, norms and softmax that a model has in small operators take the kernel that the
operators of those names have.  A kernel joins those that read it where nothing else does, and only
where the schedule of all of them together is one kernel (`schedules.several_rows`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slipway import te
from slipway.backends.primitive import schedule_primitive
from slipway.relay import op_registry
from slipway.relay.dims import is_open
from slipway.relay.expr import Call, Expr, Function, Var
from slipway.relay.op_registry import OpPattern, is_primitive
from slipway.relay.ops.tensor.reduce import reduced_axes
from slipway.relay.types import TensorType
from slipway.relay.visit import children, post_order, rebuild, substitute
from slipway.target import Target
from slipway.transform.graph.fuse_ops import MAX_DEPTH

_REDUCTIONS = ("sum", "mean", "max", "min", "prod")
_MOST_TENSORS = 8  # of a kernel, on every kind of device

Form = tuple[tuple[int, ...], tuple[int, ...]]  # a tensor's shape, and the axes that are reduced


@dataclass(frozen=True)
class _Kernel:
    """A call of a kernel that may join others; `form` is None where it reduces nothing."""

    call: Call
    function: Function
    form: Form | None


@dataclass
class _Graph:
    """The kernels of a function by the id of their call, and what reads each expression."""

    kernels: dict[int, _Kernel] = field(default_factory=dict)
    readers: dict[int, list[Expr]] = field(default_factory=dict)

    @staticmethod
    def of(function: Function) -> _Graph:
        found = _Graph(readers={id(function.body): [function]})
        for expr in post_order(function.body, into_functions=False):
            for child in children(expr):
                found.readers.setdefault(id(child), []).append(expr)
            if (kernel := _kernel_of(expr)) is not None:
                found.kernels[id(expr)] = kernel
        return found

    def group_of(self, sink: _Kernel) -> list[_Kernel]:
        """Return the kernels that nothing but `sink` and each other read, of its rows, it first."""
        group, inside, form = [sink], {id(sink.call)}, sink.form
        todo = [sink]
        while todo:
            for given in todo.pop().call.args:
                kernel = self.kernels.get(id(given))
                if kernel is None or id(given) in inside:
                    continue
                if any(id(reader) not in inside for reader in self.readers[id(given)]):
                    continue  # it is looked at again when another of its readers is in
                if kernel.form is not None and form is not None and kernel.form != form:
                    continue
                form = form or kernel.form
                group.append(kernel)
                inside.add(id(given))
                todo.append(kernel)
        return _without_loose(group)


def joined_rows(function: Function, target: Target) -> Function:
    """Return `function` with kernels that reduce the same rows as one, where that is one kernel."""
    graph = _Graph.of(function)
    made: dict[int, tuple[Function, list[Expr]]] = {}
    taken: set[int] = set()
    for number in reversed(graph.kernels):
        if number in taken:
            continue
        group = graph.group_of(graph.kernels[number])
        if len(group) < 2:
            continue
        joined, args = _joined(group)
        if _is_one_kernel(joined, target):
            made[number] = joined, args
            taken |= {id(kernel.call) for kernel in group}
    return _with_calls(function, made) if made else function


def _kernel_of(expr: Expr) -> _Kernel | None:
    """Return the kernel that an expression calls, if it computes elements and reductions alone."""
    if not isinstance(expr, Call) or not isinstance(expr.op, Function) or not is_primitive(expr.op):
        return None
    types = [expr.checked_type, *(param.checked_type for param in expr.op.params)]
    if not all(isinstance(t, TensorType) and _is_known(t) for t in types):
        return None
    form: Form | None = None
    for inner in post_order(expr.op.body):
        if not isinstance(inner, Call):
            continue
        definition = op_registry.call_definition(inner)
        if definition is None:
            return None
        if definition.pattern <= OpPattern.BROADCAST:
            continue
        if inner.op.name not in _REDUCTIONS:
            return None
        shape = inner.args[0].tensor_type.shape
        own = shape, reduced_axes(inner.attrs, len(shape))
        if form is not None and form != own:
            return None
        form = own
    return _Kernel(expr, expr.op, form)


def _is_known(kind: TensorType) -> bool:
    return not any(is_open(n) or n == 0 for n in kind.shape)


def _without_loose(group: list[_Kernel]) -> list[_Kernel]:
    """Return those of a group, the last first, that hold a reduction or read one's result."""
    feeds: set[int] = set()
    for kernel in reversed(group):
        if kernel.form is not None or any(id(given) in feeds for given in kernel.call.args):
            feeds.add(id(kernel.call))
    return [kernel for kernel in group if id(kernel.call) in feeds]


def _joined(group: list[_Kernel]) -> tuple[Function, list[Expr]]:
    """Return a group, the last kernel first, as one kernel, and what it is given."""
    params: dict[int, tuple[Var, Expr]] = {}
    bodies: dict[int, Expr] = {}
    for kernel in reversed(group):
        inside: dict[Any, Expr] = {}
        for param, given in zip(kernel.function.params, kernel.call.args, strict=True):
            if id(given) in bodies:
                inside[param] = bodies[id(given)]
                continue
            own = Var(f"p{len(params)}", param.checked_type)
            inside[param] = params.setdefault(id(given), (own, given))[0]
        bodies[id(kernel.call)] = substitute(kernel.function.body, inside)
    sink = group[0]
    body = bodies[id(sink.call)]
    variables, args = zip(*params.values(), strict=True)
    return Function(variables, body, None, sink.function.attrs), list(args)


def _is_one_kernel(function: Function, target: Target) -> bool:
    """Return whether the schedule of a kernel launches one, which no device refuses."""
    calls = [e for e in post_order(function.body) if isinstance(e, Call)]
    if len(calls) > MAX_DEPTH or len(function.params) >= _MOST_TENSORS:
        return False
    schedule = schedule_primitive(function, target).schedule
    launched = [
        stage for stage in schedule.stages
        if isinstance(stage.op, te.ComputeOp) and stage.attach_type == "root"
    ]  # fmt: skip
    return len(launched) == 1


def _with_calls(function: Function, made: Mapping[int, tuple[Function, list[Expr]]]) -> Function:
    """Return `function` with calls, by their id, replaced by those of other kernels."""
    fresh: dict[int, Expr] = {}

    def new(expr: Expr) -> Expr:
        return fresh.get(id(expr), expr)

    for expr in post_order(function, into_functions=False):
        if id(expr) in made:
            kernel, args = made[id(expr)]
            fresh[id(expr)] = Call(kernel, tuple(new(given) for given in args))
        elif expr is function or not isinstance(expr, Function):
            fresh[id(expr)] = rebuild(expr, new)
    return fresh[id(function)]  # type: ignore[return-value]
