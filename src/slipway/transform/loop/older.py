"""Names of TVM 0.6, before passes were objects: ``tvm.ir_pass``, ``tvm.make``, build_config."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.arith.analyzer import Analyzer
from slipway.errors import LoweringError, did_you_mean
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.custom import register_intrin_lowering
from slipway.ir.function import PrimFunc
from slipway.ir.ops import as_expr
from slipway.ir.stmt_functor import ir_transform, post_order_visit, substitute
from slipway.ir.structural import structural_equal
from slipway.transform.context import PassContext

if TYPE_CHECKING:
    pass


def Simplify(node: Any) -> Any:
    """Return an expression in canonical form."""
    return Analyzer().simplify(as_expr(node))


def MakeAPI(
    stmt: S.Stmt, name: str, arg_list: list[Any], num_unpacked_args: int = 0,
    is_restricted: bool = True,
) -> PrimFunc:  # fmt: skip
    """Return a function of buffers and variables with `stmt` as its body, to be built.

    Its buffers share no memory if `is_restricted`.
    """
    del num_unpacked_args  # every function here has one calling convention
    attrs = (("global_symbol", name), ("noalias", is_restricted))
    return PrimFunc(tuple(arg_list), stmt, (), attrs)


ir_pass = SimpleNamespace(
    MakeAPI=MakeAPI,
    PostOrderVisit=post_order_visit,
    IRTransform=ir_transform,
    Substitute=substitute,
    Simplify=Simplify,
    CanonicalSimplify=Simplify,
    Equal=structural_equal,
)


def For(
    loop_var: E.Var, min: Any, extent: Any, for_type: str, device_api: int, body: S.Stmt
) -> S.For:
    """Return a loop; the device of TVM 0.6's fifth argument says nothing here."""
    return S.For(loop_var, as_expr(min), as_expr(extent), for_type, body)


def _flat(pointer: Any, dtype: str) -> Buffer:
    """Return the memory that a variable points to as one row of elements, of unknown length."""
    buffer_var = as_expr(pointer)
    if not isinstance(buffer_var, E.Var):
        raise LoweringError(f"tir.Load and Store go through a pointer, not {buffer_var}")
    made = _FLAT.setdefault(buffer_var, {})
    if dtype not in made:
        size = E.Var(f"{buffer_var.name}_size", "int32")
        made[dtype] = decl_buffer((size,), dtype, buffer_var.name, buffer_var)
    return made[dtype]


_FLAT: weakref.WeakKeyDictionary[E.Var, dict[str, Buffer]] = weakref.WeakKeyDictionary()


def Load(dtype: str, buffer_var: Any, index: Any, predicate: Any = None) -> E.BufferLoad:
    """Return what lies `index` elements behind a pointer (the node of TVM before 0.10)."""
    _whole(predicate, "Load")
    return E.BufferLoad(_flat(buffer_var, dtypes.with_lanes(dtype, 1)), (as_expr(index),))


def Store(buffer_var: Any, value: Any, index: Any, predicate: Any = None) -> S.BufferStore:
    """Return the store of a value `index` elements behind a pointer (before TVM 0.10)."""
    _whole(predicate, "Store")
    given = as_expr(value)
    flat = _flat(buffer_var, dtypes.with_lanes(given.dtype, 1))
    return S.BufferStore(flat, given, (as_expr(index),))


def _whole(predicate: Any, name: str) -> None:
    if predicate is not None and getattr(as_expr(predicate), "value", 0) != 1:
        raise LoweringError(
            f"tir.{name} has no predicate here: put the access into an IfThenElse, or its value "
            "into if_then_else"
        )


class _Make:
    """``tvm.make``: constructors of nodes, those of today but for `For`."""

    For, Load, Store = staticmethod(For), staticmethod(Load), staticmethod(Store)

    def __getattr__(self, name: str) -> Any:
        for module in (S, E):
            found = getattr(module, name, None)
            if isinstance(found, type):
                return found
        raise AttributeError(f"tvm.make has no node {name!r}; nodes are classes of slipway.tir")


make = _Make()

# Option of TVM 0.6 -> (config key, option of it or "").
_OPTIONS = {
    "auto_unroll_max_step": ("tir.UnrollLoop", "auto_max_step"),
    "auto_unroll_max_depth": ("tir.UnrollLoop", "auto_max_depth"),
    "auto_unroll_max_extent": ("tir.UnrollLoop", "auto_max_extent"),
    "unroll_explicit": ("tir.UnrollLoop", "explicit_unroll"),
    "partition_const_loop": ("tir.LoopPartition", "partition_const_loop"),
    "double_buffer_split_loop": ("tir.InjectDoubleBuffer", "split_loop"),
    "detect_global_barrier": ("tir.detect_global_barrier", ""),
    "instrument_bound_checkers": ("tir.instrument_bound_checkers", ""),
    "disable_vectorize": ("tir.disable_vectorize", ""),
    "disable_assert": ("tir.disable_assert", ""),
    "restricted_func": ("tir.noalias", ""),
}


# Dtypes, which were names of the package.
float16, float32, float64 = "float16", "float32", "float64"
int8, int16, int32, int64 = "int8", "int16", "int32", "int64"
uint8, uint16, uint32, uint64 = "uint8", "uint16", "uint32", "uint64"

_ALWAYS = ("offset_factor", "data_alignment")


def build_config(**options: Any) -> PassContext:
    """Return the PassContext that the options of TVM 0.6 stand for.

    Passes of `add_lower_pass` take and return the statement of a function, as they did there.
    Raises LoweringError for an option that there is not.
    """
    config: dict[str, Any] = {}
    for name, value in options.items():
        if name == "add_lower_pass":
            config["tir.add_lower_pass"] = [(phase, _on_body(own)) for phase, own in value]
            continue
        if name in _ALWAYS:  # buffers of an intrinsic are matched at any place and alignment
            continue
        if name not in _OPTIONS:
            known = [*_OPTIONS, "add_lower_pass"]
            raise LoweringError(
                f"build_config has no option {name!r}.{did_you_mean(name, known)} It has "
                f"{', '.join(known)}"
            )
        key, option = _OPTIONS[name]
        if option:
            config.setdefault(key, {})[option] = value
        else:
            config[key] = value
    return PassContext(config=config)


def _on_body(own: Callable[[S.Stmt], S.Stmt]) -> Callable[[PrimFunc], PrimFunc]:
    def change(func: PrimFunc) -> PrimFunc:
        return func.replace(body=own(func.body))  # type: ignore[no-any-return]

    change.__name__ = getattr(own, "__name__", "own_pass")
    return change


def register_intrin_rule(target: str, intrin: str, f: Any = None, override: bool = False) -> Any:
    """Say what a call of intrinsic `intrin` becomes on targets of kind `target`."""
    return register_intrin_lowering(f"tir.{intrin}", target, f=f, override=override)
