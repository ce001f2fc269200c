"""`relay.quantize.quantize`: the steps, from a real module to one that computes with integers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from slipway.compiler.quantize.calibrate import magnitudes
from slipway.compiler.quantize.config import QConfig, current_qconfig
from slipway.compiler.quantize.plan import Plan, make_plan
from slipway.errors import ArgumentTypeError
from slipway.ir.function import IRModule
from slipway.relay import op_registry
from slipway.relay.construct import bind
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import const
from slipway.relay.visit import post_order, rebuild
from slipway.transform.context import PassContext
from slipway.transform.graph.classic import (
    CanonicalizeOps,
    ConvertLayout,
    FoldConstant,
    FoldScaleAxis,
    InferType,
    SimplifyInference,
)
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.graph.integers.integer_arithmetic import integer_arithmetic
from slipway.transform.graph.pipeline import main_function
from slipway.transform.manager import Sequential


def quantize(
    mod: IRModule | Function,
    params: Mapping[str, Any] | None = None,
    dataset: Iterable[Mapping[str, Any]] | None = None,
) -> IRModule:
    """Return a module whose products run on int8, as the `qconfig` around says.

    `params` are bound first.  `dataset` holds typical inputs, a dictionary of arrays each; the
    modes "kl_divergence" and "percentile" need it.  Inputs and results stay real.
    """
    config = current_qconfig()
    if isinstance(mod, Function):
        mod = IRModule.from_expr(mod)
    if not isinstance(mod, IRModule):
        raise ArgumentTypeError(
            f"quantize takes a module, as relay.frontend.from_onnx gives, not {type(mod).__name__}"
        )
    module = prerequisite_optimize(mod, params)
    function = infer_type(main_function(module))
    plan = make_plan(function, config)
    limits = magnitudes(function, plan, config, dataset)
    made = infer_type(_stored(function, plan, limits, config))
    if not config.do_simulation:
        made = integer_arithmetic(made)
    with PassContext(opt_level=3):
        return FoldConstant()(module.update("main", made))  # type: ignore[no-any-return]


def prerequisite_optimize(mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
    """Bind parameters, fold normalisation into weights, and bring convolutions to NCHW."""
    if params:
        mod = mod.update("main", bind(main_function(mod), params))
    steps = [
        InferType(), SimplifyInference(), FoldConstant(),
        ConvertLayout({name: [layout, "default"] for name, layout in _LAYOUTS.items()}),
        FoldScaleAxis(), CanonicalizeOps(), FoldConstant(),
    ]  # fmt: skip
    with PassContext(opt_level=3):
        return Sequential(steps)(mod)  # type: ignore[no-any-return]


_LAYOUTS = {"nn.conv1d": "NCW", "nn.conv2d": "NCHW", "nn.conv3d": "NCDHW"}


def _stored(
    function: Function, plan: Plan, limits: Mapping[int, float], config: QConfig
) -> Function:
    """Return `function` with each stored value and each weight rounded to what its integers say."""
    products = {id(p) for p in plan.products}
    stored = {id(v): limits[id(plan.root(v))] for v in plan.stored}
    done: dict[int, Expr] = {}
    for expr in post_order(function.body, into_functions=False):
        fresh: Any = rebuild(expr, lambda child: done[id(child)])
        with op_registry.span(getattr(expr, "span", "")):
            if id(expr) in products:
                assert isinstance(expr, Call)
                weight = _weight(expr.args[1], config)
                fresh = Call(fresh.op, (fresh.args[0], weight), fresh.attrs, fresh.span)
            if id(expr) in stored:
                fresh = _rounded(fresh, stored[id(expr)], config)
        done[id(expr)] = fresh
    return Function(function.params, done[id(function.body)], None, function.attrs)


def _weight(weight: Expr, config: QConfig) -> Expr:
    """Return a constant weight as its integers say it, all with one scale."""
    assert isinstance(weight, Constant)
    largest = float(np.abs(weight.array).max(initial=0.0))
    if largest > 0 and config.weight_scale == "power2":
        largest = 2.0 ** math.ceil(math.log2(largest))
    scale, most = _scale(largest, config.nbit_weight)
    whole = np.clip(np.round(weight.array / scale), -most, most)
    if config.do_simulation:
        return const((whole * scale).astype(np.float32))
    return op_registry.make("qnn.dequantize")(  # type: ignore[no-any-return]
        const(whole.astype(np.int8)), const(scale), const(np.int32(0))
    )


def _rounded(value: Expr, largest: float, config: QConfig) -> Any:
    """Return `value` as integers say it: multiples of a scale, within bounds."""
    scale, most = _scale(largest, config.nbit_input)
    bound = float(scale) * most
    make = op_registry.make
    clipped = make("clip")(value, -bound, bound)
    if not config.do_simulation:
        zero = const(np.int32(0))
        whole = make("qnn.quantize")(clipped, const(scale), zero, out_dtype="int8")
        return make("qnn.dequantize")(whole, const(scale), zero)
    steps = make("round")(make("divide")(clipped, const(scale)))
    return make("multiply")(steps, const(scale))


def _scale(largest: float, bits: int) -> tuple[np.float32, int]:
    """Return the scale of integers of so many bits, and the largest of them."""
    levels = 2 ** (bits - 1)
    scale = np.float32(largest / levels)
    # One of zeros, or of numbers too small for a scale, has any.
    return (scale if scale > 0 else np.float32(1.0)), levels - 1


__all__ = ["prerequisite_optimize", "quantize"]
