"""Tensor expressions and their schedules: the names live in the modules beside it."""

from slipway.lazy import by_module, offer

_HOMES = by_module(
    {
        "slipway.ir.expr": "IterVar Reduce Select SizeVar Var",
        "slipway.ir.ops": (
            "cast floordiv floormod highest if_then_else infinity lowest max_value min_value "
            "select truncdiv truncmod"
        ),
        "slipway.te.declare": (
            "compute const extern placeholder scan size_var tag_scope thread_axis var"
        ),
        "slipway.te.derivatives": "gradient",
        "slipway.te.lowering": "lower",
        "slipway.te.math": (
            "abs acos acosh asin asinh atan atan2 atanh ceil clz copysign cos cosh div erf "
            "exp exp2 exp10 floor fma fmod indexdiv indexmod isfinite isinf isnan ldexp log "
            "log1p log2 log10 multiply_high nearbyint popcount pow power q_multiply_shift "
            "round rsqrt sigmoid sin sinh sqrt tan tanh to_integer trunc"
        ),
        "slipway.te.operation": "ComputeOp ExternOp Operation PlaceholderOp ScanOp",
        "slipway.te.reduction": (
            "all any comm_reducer max max_of_numbers min prod reduce_axis sum"
        ),
        "slipway.te.schedule": "Schedule create_schedule",
        "slipway.te.stage": "Stage",
        "slipway.te.tensor": "Tensor TensorSlice",
        "slipway.te.tensor_intrin": "TensorIntrin decl_tensor_intrin",
        "slipway.te.tracing": "trace",
        "slipway.blocks.from_te": "create_prim_func",
    }
) | {
    "hybrid": "slipway.script.hybrid_names",
    "operation": "slipway.te.operation",
    "schedule": "slipway.te.schedule",
    "tensor": "slipway.te.tensor",
}
LATE = {"Broadcasting": ("slipway.topi.elementwise",)}  # what `a + b` of whole tensors is
_HOMES["Range"] = "slipway.arith.script_range:ScriptRange"
__all__ = list(_HOMES)  # what `from slipway.te import *` brings
__getattr__, __dir__ = offer(__name__, _HOMES)
