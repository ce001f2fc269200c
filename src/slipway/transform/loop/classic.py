"""``tir.transform``: loop passes under their classic names, to be called on a module or function.

::

    mod = tir.transform.Simplify()(mod)
    mod = transform.Sequential([tir.transform.StorageFlatten(64), my_pass])(mod)

Of classic TVM's passes those are here that are a step of this compiler too.  The others prepare
code for a GPU or a calling convention, which backends do here when they emit code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from slipway.errors import LoweringError
from slipway.ir import stmt as S
from slipway.ir.function import IRModule, PrimFunc
from slipway.ir.visit import rewrite_bottom_up
from slipway.target import Target
from slipway.transform.context import PassContext
from slipway.transform.loop.flatten_storage import flatten_storage
from slipway.transform.loop.inject_double_buffer import inject_double_buffer
from slipway.transform.loop.inject_prefetch import inject_prefetch
from slipway.transform.loop.loop_partition import loop_partition
from slipway.transform.loop.remove_assertions import remove_assertions
from slipway.transform.loop.remove_unused import remove_unused
from slipway.transform.loop.simplify import simplify
from slipway.transform.loop.storage_rewrite import storage_rewrite
from slipway.transform.loop.unroll_loop import unroll_loop
from slipway.transform.loop.vectorize_loop import vectorize_loop
from slipway.transform.manager import Pass, PrimFuncPass, Setting, may_be_required, pass_of

if TYPE_CHECKING:
    from slipway.target.target import TargetLike


Change = Callable[[PrimFunc], PrimFunc]


def on_loops(name: str, change: Change, opt_level: int = 0) -> PrimFuncPass:
    """Return a function over loops as a pass over a function, or every one of a module."""
    return prim_func_pass(lambda func, mod, ctx: change(func), opt_level, name)  # type: ignore[no-any-return]


def prim_func_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Make a pass of ``f(func, module, context) -> func``, or of a class.

    A decorator, or called as one.  A class has ``transform_function``; calling it makes the pass.
    """

    def over(run: Any, title: str) -> Pass:
        def change(func: PrimFunc, module: IRModule, setting: Setting) -> PrimFunc:
            made = run(func, module, setting.context)
            if not isinstance(made, PrimFunc):
                raise LoweringError(
                    f"the pass {title!r} must return a PrimFunc, got a {type(made).__name__}"
                )
            return made

        def whole(node: Any, setting: Setting) -> Any:
            if isinstance(node, PrimFunc):
                return change(node, IRModule(((node.name, node),)), setting)
            for key, func in node.items():
                if isinstance(func, PrimFunc):
                    made = change(func, node, setting)
                    if not isinstance(made, PrimFunc):
                        raise LoweringError(
                            f"the pass {title!r} returned {made!r}, which is no function of loops"
                        )
                    node = node if made is func else node.update(key, made)
            return node

        return PrimFuncPass(title, opt_level or 0, whole, required=required or (), by_user=True)

    def make(given: Any) -> Any:
        return pass_of(given, name, "transform_function", over)

    return make if pass_func is None else make(pass_func)


def Apply(ftransform: Change) -> Pass:
    """Run a function of the caller's on every loop function."""
    return on_loops("Apply", ftransform)


def Filter(fcond: Callable[[PrimFunc], bool]) -> Pass:
    """Leave out the loop functions for which `fcond` is False."""

    def run(module: IRModule, setting: Setting) -> IRModule:
        kept = {k: f for k, f in module.items() if not isinstance(f, PrimFunc) or fcond(f)}
        return IRModule.from_functions(kept)

    return Pass("Filter", 0, run)


def BindTarget(target: TargetLike) -> Pass:
    """Give every loop function its target."""
    chosen = Target(target)
    return on_loops("BindTarget", lambda func: func.with_attr("target", chosen))


def Simplify() -> Pass:
    """Put expressions into canonical form under the bounds of the loops around them."""
    return on_loops("Simplify", simplify)


def StorageFlatten(cache_line_size: int = 64, create_bound_attribute: bool = False) -> Pass:
    """Make every buffer one-dimensional; lines of a cache play no part in it.

    Raises LoweringError for `create_bound_attribute`: no pass reads such bounds.
    """
    if create_bound_attribute:
        raise LoweringError(
            "StorageFlatten: there are no attributes of bounds here, and no pass that checks them; "
            "leave create_bound_attribute away"
        )
    return on_loops("StorageFlatten", flatten_storage)


def FlattenBuffer() -> Pass:
    """Make every buffer one-dimensional."""
    return on_loops("FlattenBuffer", flatten_storage)


def VectorizeLoop(enable_vectorize: bool = True) -> Pass:
    """Write vectorized loops as operations on vectors; without `enable_vectorize` serially."""
    if enable_vectorize:
        return on_loops("VectorizeLoop", vectorize_loop)
    return on_loops("VectorizeLoop", lambda func: _with_kinds(func, S.ForKind.VECTORIZED))


def ConvertForLoopsToSerial() -> Pass:
    """Let parallel and vectorized loops run serially."""
    return on_loops(
        "ConvertForLoopsToSerial",
        lambda func: _with_kinds(func, S.ForKind.VECTORIZED, S.ForKind.PARALLEL),
    )


def _with_kinds(func: PrimFunc, *serial: str) -> PrimFunc:
    """Return a function whose loops of the named kinds are serial ones."""

    def rule(node: Any) -> Any:
        if isinstance(node, S.For) and node.kind in serial:
            return node.replace(kind=S.ForKind.SERIAL)
        return None

    return func.replace(body=rewrite_bottom_up(func.body, rule))  # type: ignore[no-any-return]


def UnrollLoop() -> Pass:
    """Expand loops that are marked, and those that the option "tir.UnrollLoop" asks for."""
    return on_loops("UnrollLoop", unroll_loop)


def LoopPartition() -> Pass:
    """Divide loops where a condition inside them changes, if the options ask for it."""
    return on_loops("LoopPartition", loop_partition)


def InjectPrefetch() -> Pass:
    """Write prefetches as the statements they stand for."""
    return on_loops("InjectPrefetch", inject_prefetch)


def InjectDoubleBuffer() -> Pass:
    """Give buffers that are marked their second half."""
    return on_loops("InjectDoubleBuffer", inject_double_buffer)


def StorageRewrite() -> Pass:
    """Let buffers whose live ranges do not overlap share memory."""
    return on_loops("StorageRewrite", storage_rewrite)


def RemoveNoOp() -> Pass:
    """Drop statements without effect and buffers that nobody reads."""
    return on_loops("RemoveNoOp", remove_unused)


def SkipAssert() -> Pass:
    """Leave assertions out."""
    return on_loops("SkipAssert", remove_assertions)


__all__ = [
    "Apply", "BindTarget", "ConvertForLoopsToSerial", "Filter", "FlattenBuffer",
    "InjectDoubleBuffer", "InjectPrefetch", "LoopPartition", "PassContext", "PrimFuncPass",
    "RemoveNoOp", "Simplify", "SkipAssert", "StorageFlatten", "StorageRewrite", "UnrollLoop",
    "VectorizeLoop", "prim_func_pass",
]  # fmt: skip


may_be_required(
    Simplify, StorageFlatten, FlattenBuffer, VectorizeLoop, UnrollLoop, LoopPartition,
    InjectPrefetch, InjectDoubleBuffer, StorageRewrite, RemoveNoOp, prefix="tir.",
)  # fmt: skip
