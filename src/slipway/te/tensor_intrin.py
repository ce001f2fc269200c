"""Tensor intrinsics: a hardware operation declared by its meaning and its statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slipway.arguments import function_of
from slipway.errors import ScheduleError
from slipway.ir.buffer import Buffer
from slipway.ir.expr import IterVar, PrimExpr, Var
from slipway.ir.node import Node, node
from slipway.ir.ops import const
from slipway.ir.stmt import Evaluate, Stmt, seq
from slipway.te.operation import ComputeOp
from slipway.te.tensor import Tensor

if TYPE_CHECKING:
    from slipway import te

    pass


@node
class TensorIntrin(Node):
    """An operation (`op`, its meaning) and the statements that do it on given buffers.

    `body` computes the result whole.  For a reduction, `reduce_init` resets the result and
    `reduce_update` adds one more piece to it; either may be None.  With a `reduce_finish`, sums
    that are elsewhere until then get to the result after the last piece.  `buffers` are those of
    `inputs`, then those of the outputs.
    """

    name: str
    op: ComputeOp
    inputs: tuple[Tensor, ...]
    buffers: tuple[Buffer, ...]
    body: Stmt | None
    reduce_init: Stmt | None = None
    reduce_update: Stmt | None = None
    reduce_finish: Stmt | None = None

    def __call__(
        self, *regions: object, reduce_axis: IterVar | Sequence[IterVar] = ()
    ) -> IntrinsicCall:
        """Return a call on regions such as ``A[i, 0:16]``, for a te.compute to return.

        `reduce_axis` are axes outside of the intrinsic's own that it reduces over too.
        """
        axes = tuple(reduce_axis) if isinstance(reduce_axis, (tuple, list)) else (reduce_axis,)
        return IntrinsicCall(self, regions, axes)


@dataclass(frozen=True)
class IntrinsicCall:
    """What a compute returns that an intrinsic computes; te/intrinsic_calls.py checks it."""

    intrin: TensorIntrin
    regions: tuple[object, ...]
    reduce_axis: tuple[IterVar, ...]


def decl_tensor_intrin(
    op: te.Operation,
    fcompute: Callable[..., Any],
    name: str = "tensor_intrin",
    binds: dict[Tensor, Buffer] | None = None,
    scalar_params: Any = None,
    default_buffer_params: dict[str, Any] | None = None,
) -> TensorIntrin:
    """Declare a tensor intrinsic.

    `op` (a compute over placeholders) is the meaning.  ``fcompute(ins, outs)`` gets Buffers and
    returns a statement or call, or (body, reset, update) for reductions, perhaps with a finish.
    `binds` gives tensors Buffers of your own: constant strides there are requirements, variables
    are bound.
    """
    if isinstance(op, Tensor):
        op = op.op
    if not isinstance(op, ComputeOp):
        raise ScheduleError(f"decl_tensor_intrin needs a compute, got {op!r}")
    if scalar_params is not None:
        raise ScheduleError("scalar_params of decl_tensor_intrin are not supported")
    given = dict(binds or {})
    options = dict(default_buffer_params or {})
    inputs = op.input_tensors
    ins = [_complete(given.get(t), t, options) for t in inputs]
    outs = [_complete(given.get(t), t, options) for t in op.outputs]
    made = function_of(fcompute, "decl_tensor_intrin's fcompute", "lambda ins, outs: ...")(
        ins, outs
    )
    parts = list(made) if isinstance(made, (tuple, list)) else [made]
    stmts: list[Stmt | None] = [None if p is None else _statement(p, name) for p in parts]
    stmts += [None] * (4 - len(stmts))
    return TensorIntrin(name, op, inputs, (*ins, *outs), *stmts)


def _complete(buffer: Buffer | None, tensor: Tensor, options: dict[str, Any]) -> Buffer:
    """Give a buffer an offset and strides that can be bound to any place in memory."""
    if buffer is None:
        scope = str(options.get("scope", "global"))
        buffer = Buffer(
            tensor.name, Var(tensor.name, "handle"), tensor.dtype, tensor.shape, (), None, scope
        )
    strides = buffer.strides
    if not strides:
        count = tensor.ndim
        strides = tuple(Var(f"{buffer.name}.stride{d}") for d in range(count))
        if count:
            strides = (*strides[:-1], const(1))
    offset = buffer.elem_offset
    if offset is None:
        offset = Var(f"{buffer.name}.offset")
    return buffer.replace(strides=strides, elem_offset=offset)  # type: ignore[no-any-return]


def _statement(part: Any, name: str) -> Stmt:
    if isinstance(part, PrimExpr):
        return Evaluate(part)
    if isinstance(part, Stmt):
        return part
    if isinstance(part, list):
        return seq(_statement(p, name) for p in part)
    raise ScheduleError(
        f"intrinsic {name!r}: the function must return statements or calls, got {part!r}"
    )
