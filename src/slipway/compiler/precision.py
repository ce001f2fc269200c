"""What a float32 model's products are computed in: `slipway compile --precision`.

- float32: as the model says.
- bfloat16, float16: products in that type, summed in float32 (ToMixedPrecision).
- float16_acc16: products in float16, summed in float16, on targets that compute in it.
- bfloat16x3, bfloat16x6: float32 products as three or six of bfloat16 (`split_products`), on
  targets with a unit for those, and where it takes less time.
- auto: bfloat16 where the target multiplies it faster than float32, else float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.backends.backend import backend_of
from slipway.errors import TargetError, did_you_mean
from slipway.ir.module import IRModule
from slipway.relay.construct import bind
from slipway.target.capability import capability_of
from slipway.transform.graph.conv.fold_scale_axis import fold_scale_axis
from slipway.transform.graph.fold_constant import fold_constant
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.graph.precision.mixed_precision import MISSING_IGNORE, to_mixed_precision
from slipway.transform.graph.precision.split_products import split_products
from slipway.transform.graph.precision.widen_products import FLOAT16, NARROW_SUMS
from slipway.transform.graph.simplify_expr import simplify_expr
from slipway.transform.graph.simplify_inference import simplify_inference

if TYPE_CHECKING:
    from slipway.target import Target

WIDE, AUTO = "float32", "auto"
SPLIT = {"bfloat16x3": 3, "bfloat16x6": 6}
NARROW = "float16_acc16"
PRECISIONS = (WIDE, "bfloat16", FLOAT16, NARROW, *SPLIT, AUTO)


def in_precision(
    module: IRModule, params: dict[str, Any] | None, precision: str, target: Target
) -> tuple[IRModule, dict[str, Any]]:
    """Return a model with its products in `precision`, and the parameters left to bind.

    Outputs keep their types.  Raises TargetError for a precision that is none, or that the target
    has no unit for.
    """
    if precision not in PRECISIONS:
        raise TargetError(
            f"precision {precision!r} is not one of {', '.join(PRECISIONS)}."
            f"{did_you_mean(precision, PRECISIONS)}"
        )
    fast = backend_of(target).fast_types(target)
    if precision == AUTO:
        precision = next(iter(fast), WIDE)
    if precision in SPLIT and fast.get("bfloat16", 0) <= SPLIT[precision]:
        raise TargetError(
            f"precision {precision} takes {SPLIT[precision]} products of bfloat16 for one of "
            f"float32, and {target} has no unit that does them in less time. Choose float32, or a "
            "processor with AMX: -mcpu=sapphirerapids"
        )
    if precision == NARROW and capability_of(target).half != "native":
        raise TargetError(
            f"precision {precision} sums in float16, and {target} does not say that its device "
            "computes in it. Choose float16, which sums in float32, or a processor with fullfp16 "
            "or avx512fp16, or add -supports_float16=1 to the target of a GPU that does"
        )
    if precision == WIDE:
        return module, params or {}
    backend = backend_of(target)
    main: Any = module["main"]
    function: Any = bind(main, params or {})
    for run in (simplify_inference, simplify_expr, fold_constant, fold_scale_axis):
        function = run(infer_type(function))
    function = infer_type(function)
    if precision in SPLIT:
        count = SPLIT[precision]
        split = split_products(function, count, lambda c: backend.gains_in_parts(c, count, target))
        function = fold_constant(infer_type(split))  # the parts of weights are constants
    elif precision == NARROW:
        function = to_mixed_precision(function, FLOAT16, MISSING_IGNORE, True, sums=FLOAT16)
        function = function.with_attr(NARROW_SUMS, 1)
    else:
        function = to_mixed_precision(function, precision, MISSING_IGNORE, keep_output_dtype=True)
    return module.update("main", function), {}
