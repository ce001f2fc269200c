"""What tests of graphs need: a pass on an expression, random arrays, counts of operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.errors import NotAvailableError
from slipway.ir.function import IRModule
from slipway.relay.expr import Call, Expr, Function, Op
from slipway.relay.visit import post_order
from slipway.runtime import ndarray
from slipway.runtime.devices import Device, device
from slipway.runtime.features import enabled
from slipway.transform.graph.infer_type import infer_type


def run_infer_type(expr: Expr) -> Expr:
    """Return `expr` with every part typed; a function stays one, another gives its body."""
    main = infer_type(expr if isinstance(expr, Function) else expr.as_function())
    return main if isinstance(expr, Function) else main.body


def run_opt_pass(expr: Expr, opt_pass: Any, import_prelude: bool = False) -> Expr:
    """Return `expr` after a pass; a function stays one, another expression gives its body."""
    module = IRModule.from_expr(infer_type(IRModule.from_expr(expr)["main"]))  # type: ignore[arg-type]
    main = opt_pass(module)["main"]
    return main if isinstance(expr, Function) else main.body  # type: ignore[no-any-return]


def rand(dtype: str, *shape: int) -> Any:
    """Return an NDArray of numbers in [0, 1)."""
    return ndarray.array(np.random.rand(*shape).astype(dtype))


def count_ops(expr: Expr) -> dict[str, int]:
    """Return how often each operator is called under `expr`, functions inside included."""
    counts: dict[str, int] = {}
    for found in post_order(expr):
        if isinstance(found, Call) and isinstance(found.op, Op):
            counts[found.op.name] = counts.get(found.op.name, 0) + 1
    return counts


def ctx_list() -> list[tuple[str, Device]]:
    """Return (target, device) of the processor and NVIDIA's GPU, where they are (TVM 0.6)."""
    return [(name, device(name, 0)) for name in ("llvm", "cuda") if enabled(name)]


def check_grad(*args: Any, **kwargs: Any) -> None:
    """Raise NotAvailableError: graphs are not differentiated here."""
    raise NotAvailableError(
        "relay.testing.check_grad is not there: there is no differentiation; train in another "
        "framework"
    )
