"""The weights of a dense layer as the threads of a GPU read them: columns beside each other.

``nn.dense`` multiplies by rows of weights.  Threads compute neighbouring columns of its result, so
at each step of the sum they read elements that are a whole row apart.  Weights that are constants
are transposed when the model is compiled::

    nn.dense(%x, w)  ->  nn.matmul(%x, transpose(w))

and a thread reads its columns, and a block those of its threads, from one piece of memory.  Where
threads run in step, panels in shared memory do that (`schedules/shared.py`).
"""

from __future__ import annotations

from slipway import dtypes
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import rewrite
from slipway.target.gpu_costs import ANY_GPU


def transposed_weights(function: Function) -> Function:
    """Return `function` with dense layers of constant weights as products of matrices."""
    return rewrite(function, _rule)  # type: ignore[no-any-return]


def _rule(call: Expr) -> Expr | None:
    if not is_call_of(call, "nn.dense") or not isinstance(call.args[1], Constant):
        return None
    data, weight = (argument.tensor_type for argument in call.args)
    if data.rank != 2 or data.dtype != weight.dtype or not dtypes.is_float(data.dtype):
        return None
    rows = data.shape[0]
    if (
        not isinstance(rows, int)
        or rows < ANY_GPU.transposed_rows
        or weight.shape[1] < ANY_GPU.transposed_depth
    ):
        return None
    attrs = call.attrs
    with op_registry.span(call.span):
        columns: Call = op_registry.make("transpose")(call.args[1], axes=(1, 0))
        made: Call = op_registry.make("nn.matmul")(call.args[0], columns, out_dtype=attrs.out_dtype)
    return made
