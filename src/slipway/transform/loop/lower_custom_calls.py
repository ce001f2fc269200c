"""Calls of the user's own intrinsics, replaced by what their rules say for the target.

before: ``B[i] = mylog(A[i])``
after:  ``B[i] = log(A[i])``  with ``register_intrin_lowering("tir.mylog", "llvm", f=...)``

Functions of CUDA's mathematics by name (``call_pure_extern("float32", "__expf", x)``) become the
intrinsics of Slipway, which compute the same on every device.
"""

from __future__ import annotations

from slipway.ir.custom import has_rules, lowered
from slipway.ir.expr import Call, StringImm
from slipway.ir.function import PrimFunc
from slipway.ir.node import Node
from slipway.ir.visit import rewrite_bottom_up, walk

CUDA_KINDS = ("cuda", "nvptx")
EXTERN = ("call_extern", "call_pure_extern")
_SAME = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos", "cosh",
    "erf", "exp", "exp10", "exp2", "expm1", "fabs", "floor", "fmod", "log", "log10", "log1p",
    "log2", "nearbyint", "pow", "round", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
# name in CUDA C, for float64 -> intrinsic; those for float32 end in "f", and the fast ones begin
# with "__" besides.
CUDA_MATH = {name: name for name in _SAME}
FAST = ("cos", "exp", "exp10", "log", "log10", "log2", "pow", "sin", "tan")
CUDA_MATH |= {f"{name}f": intrinsic for name, intrinsic in list(CUDA_MATH.items())}
CUDA_MATH |= {f"__{name}f": CUDA_MATH[name] for name in FAST}


def lower_custom_calls(func: PrimFunc) -> PrimFunc:
    """Return `func` with the rules registered for its target's kind applied to its calls."""
    target = func.attr("target")
    if target is None:
        return func
    kind = target.kind.name
    named = kind in CUDA_KINDS and any(
        isinstance(node, Call) and node.op in EXTERN for node in walk(func.body)
    )
    if not named and not has_rules():
        return func

    def rule(node: Node) -> Node | None:
        if not isinstance(node, Call):
            return None
        made = lowered(node, kind)
        if kind in CUDA_KINDS:
            found = cuda_math(node if made is None else made)
            return made if found is None else found
        return made

    changed: PrimFunc = func.replace(body=rewrite_bottom_up(func.body, rule))
    return changed


def cuda_math(node: Node) -> Call | None:
    """Return the intrinsic that a call of a function of CUDA's stands for; None for any other."""
    if not (isinstance(node, Call) and node.op in EXTERN):
        return None
    function, *args = node.args
    name = function.value if isinstance(function, StringImm) else ""
    intrinsic = CUDA_MATH.get(name)
    if intrinsic is None or {a.dtype for a in args} != {node.dtype}:
        return None
    return Call(node.dtype, intrinsic, tuple(args))
