"""The language of TVMScript, imported as T: what functions of loops and blocks are written with.

::

    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in T.parallel(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + 1.0

A function that is decorated is read, not run: see `slipway.script.parse`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.classic.names import missing
from slipway.errors import ArgumentValueError
from slipway.ir import calls, ops
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer as _Buffer
from slipway.ir.buffer import decl_buffer as _decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.instructions.warp_shuffles import SHUFFLES
from slipway.ir.intrin import of_matrix_unit
from slipway.script.marks import Allocated, BlockAxis, BlockHead, Launched, Loops, Mark, Matched
from slipway.te import math as _math

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.ir.expr import PrimExprLike, ShapeLike


class _BufferType:
    """``T.Buffer(shape, dtype)`` or ``T.Buffer[shape, dtype]``: the type of a parameter."""

    def __call__(self, shape: Any, dtype: str = "float32", **options: Any) -> _Buffer:
        return _declared(shape, dtype, options)

    def __getitem__(self, given: Any) -> _Buffer:
        shape, dtype = given if isinstance(given, tuple) and len(given) == 2 and isinstance(
            given[1], str) else (given, "float32")  # fmt: skip
        return self(shape, dtype)


Buffer = _BufferType()


class _Scalar:
    """A type of scalars that is also the cast to it: ``n: T.int32``, ``T.float32(0)``."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def __call__(self, value: Any = None) -> Any:
        if value is None:
            return Mark("var", (self.dtype,))
        lanes = dtypes.lanes_of(self.dtype)
        if lanes > 1 and isinstance(value, (int, float, bool)):
            return E.Broadcast(ops.const(value, dtypes.with_lanes(self.dtype, 1)), lanes)
        if isinstance(value, (int, float, bool)):
            return ops.const(value, self.dtype)
        return ops.cast(ops.as_expr(value), self.dtype)


handle = _Scalar("handle")
boolean = _Scalar("bool")
int8, int16, int32, int64 = (_Scalar(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_Scalar(f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = (_Scalar(f"float{n}") for n in (16, 32, 64))


def var(dtype: str = "int32") -> Mark:
    """Return a new variable, of a symbolic shape for example."""
    return Mark("var", (dtypes.canonical(dtype),))


def match_buffer(param: Any, shape: ShapeLike, dtype: str = "float32", **options: Any) -> Matched:
    """Describe the tensor that is passed at a parameter of type T.handle."""
    return Matched(param, _declared(shape, dtype, options))


_BUFFER_OPTIONS = ("data", "strides", "elem_offset", "scope", "align", "offset_factor",
                   "axis_separators")  # fmt: skip


def _declared(shape: ShapeLike, dtype: str, options: dict[str, Any]) -> _Buffer:
    """Return a buffer of the options that classic TVMScript writes; -1 and None are the usual."""
    usual: tuple[Any, ...] = (None, -1, 0, "", [], ())
    kept = {k: v for k, v in options.items() if k in _BUFFER_OPTIONS and not _is_in(v, usual)}
    if isinstance(kept.get("data"), _Buffer):  # what T.allocate gave
        kept = {"scope": kept["data"].scope, **kept, "data": kept["data"].data}
    if "offset_factor" in kept and options.get("elem_offset") is None:
        kept["elem_offset"] = E.Var("elem_offset")  # where it begins is the caller's
    if "align" in kept:
        kept["data_alignment"] = kept.pop("align")
    return _decl_buffer(shape, dtype, "buffer", **kept)


def _is_in(value: Any, usual: tuple[Any, ...]) -> bool:
    return not isinstance(value, E.PrimExpr) and value in usual


def decl_buffer(
    shape: ShapeLike, dtype: str = "float32", data: E.Var | None = None, **options: Any
) -> _Buffer | Allocated:
    """Return a view of the memory that `data` points to; without it, memory of the function's."""
    if data is None:
        return alloc_buffer(shape, dtype, **options)
    return _declared(shape, dtype, {"data": data, **options})


buffer_decl = decl_buffer  # of TVM 0.8 and 0.10


def alloc_buffer(shape: ShapeLike, dtype: str = "float32", **options: Any) -> Allocated:
    """Return memory of the function's own."""
    return Allocated(_declared(shape, dtype, options))


def allocate(
    extents: ShapeLike, dtype: str = "float32", scope: str = "global", *_: object, **__: object
) -> Allocated:
    """Return memory of the function's own, which is read and written, or given to a view."""
    return Allocated(_declared(extents, dtype, {"scope": scope}))


def env_thread(thread_tag: str) -> Mark:
    """Return an axis of threads, "threadIdx.x" say, which `launch_thread` gives its extent."""
    return Mark("env_thread", (thread_tag,))


def launch_thread(thread: E.Var | str, extent: PrimExprLike) -> Launched:
    """Run what follows, or what stands inside of it, in `extent` threads along an axis."""
    return Launched(thread, extent)


def attr(node: object, attr_key: str, value: object) -> Mark:
    """Note something of what follows, or stands inside of it."""
    return Mark("attr", (node, attr_key, value))


def serial(
    begin: PrimExprLike,
    end: PrimExprLike | None = None,
    annotations: Mapping[str, object] | None = None,
) -> Loops:
    """Loop from `begin` to `end`, or from 0 to `begin`."""
    return _loop(begin, end, S.ForKind.SERIAL, annotations)


def parallel(
    begin: PrimExprLike,
    end: PrimExprLike | None = None,
    annotations: Mapping[str, object] | None = None,
) -> Loops:
    """Loop whose steps are shared among threads."""
    return _loop(begin, end, S.ForKind.PARALLEL, annotations)


def vectorized(
    begin: PrimExprLike,
    end: PrimExprLike | None = None,
    annotations: Mapping[str, object] | None = None,
) -> Loops:
    """Loop whose steps are lanes of vectors."""
    return _loop(begin, end, S.ForKind.VECTORIZED, annotations)


def unroll(
    begin: PrimExprLike,
    end: PrimExprLike | None = None,
    annotations: Mapping[str, object] | None = None,
) -> Loops:
    """Loop that is unrolled."""
    return _loop(begin, end, S.ForKind.UNROLLED, annotations)


def thread_binding(
    begin: PrimExprLike,
    end: PrimExprLike | str | None = None,
    thread: str = "",
    annotations: Mapping[str, object] | None = None,
) -> Loops:
    """Loop each step of which is a thread: from `begin` to `end`, or ``(extent, thread)``."""
    if isinstance(end, str):
        thread, end = end, None
    if not thread:
        raise ArgumentValueError(
            'thread_binding needs an axis of threads: T.thread_binding(64, thread="threadIdx.x")'
        )
    made = _loop(begin, end, S.ForKind.THREAD, annotations)
    return Loops(made.extents, made.kind, made.begin, thread, made.annotations)


def _loop(begin: Any, end: Any, kind: str, annotations: Any) -> Loops:
    first, extent = (0, begin) if end is None else (begin, ops.sub(end, begin))
    return Loops((extent,), kind, first, annotations=tuple((annotations or {}).items()))


def grid(*extents: PrimExprLike) -> Loops:
    """Nested serial loops."""
    return Loops(extents)


def block(name: str = "") -> BlockHead:
    """Open a block."""
    return BlockHead(name)


def init() -> Mark:
    """Open what a block does before the first step of its reduced axes."""
    return Mark("init")


class _AxisKinds:
    @staticmethod
    def spatial(dom: Any, value: PrimExprLike, dtype: str = "int32") -> BlockAxis:
        """An axis whose steps are independent."""
        return BlockAxis(dom, "data", value)

    @staticmethod
    def reduce(dom: Any, value: PrimExprLike, dtype: str = "int32") -> BlockAxis:
        """An axis that is reduced over."""
        return BlockAxis(dom, "reduce", value)

    @staticmethod
    def opaque(dom: Any, value: PrimExprLike, dtype: str = "int32") -> BlockAxis:
        """An axis of which nothing is known."""
        return BlockAxis(dom, "opaque", value)

    @staticmethod
    def scan(dom: Any, value: PrimExprLike, dtype: str = "int32") -> BlockAxis:
        """An axis whose steps run in order."""
        return BlockAxis(dom, "ordered", value)

    S, R = spatial, reduce

    @staticmethod
    def remap(kinds: str, values: Sequence[Any]) -> Mark:
        """Axes that are loop variables themselves, a letter S or R for each."""
        return Mark("remap", (kinds, tuple(values)))


axis = _AxisKinds()


def where(condition: PrimExprLike) -> Mark:
    """Say where a block runs."""
    return Mark("where", (condition,))


def reads(*regions: object) -> Mark:
    """Say what a block reads, where its body does not show it: calls that take a buffer's data."""
    return Mark("reads", regions)


def writes(*regions: object) -> Mark:
    """Say what a block writes, where its body does not show it."""
    return Mark("writes", regions)


def func_attr(attrs: dict[str, Any]) -> Mark:
    """Give the function attributes; a constant, ``T.bool(True)`` say, is its value."""
    return Mark("func_attr", ({name: _plain(value) for name, value in attrs.items()},))


def _plain(value: Any) -> Any:
    if not isinstance(value, E.IntImm | E.FloatImm):
        return value
    return bool(value.value) if value.dtype == "bool" else value.value


def block_attr(attrs: dict[str, Any]) -> Mark:
    """Give the block annotations."""
    return Mark("block_attr", (attrs,))


def preflattened_buffer(
    buffer: _Buffer, shape: Sequence[PrimExprLike], dtype: str | None = None, **_: object
) -> Mark:
    """Say that the caller passes a parameter as a tensor of `shape`; the body reads it flat."""
    return Mark("preflattened", (buffer, tuple(shape), dtype or buffer.dtype))


def evaluate(value: PrimExprLike) -> S.Stmt:
    """Evaluate an expression for its effect."""
    return S.Evaluate(ops.as_expr(value))


def cast(value: PrimExprLike, dtype: str) -> E.PrimExpr:
    """Convert a value."""
    return ops.cast(ops.as_expr(value), dtypes.canonical(dtype))


def Cast(dtype: str, value: PrimExprLike) -> E.PrimExpr:
    """Convert a value, in the order in which TVM prints it."""
    return cast(value, dtype)


def Select(
    condition: PrimExprLike, true_value: PrimExprLike, false_value: PrimExprLike
) -> E.PrimExpr:
    """Choose between two values, both of which may be computed."""
    return E.Select(ops.as_expr(condition), *ops.match(true_value, false_value))


def likely(condition: PrimExprLike, dtype: str = "bool") -> E.PrimExpr:
    """Mark a condition as mostly true; `dtype` can only be bool."""
    if dtype != "bool":
        raise ArgumentValueError(f"T.likely of a condition is bool, not {dtype}")
    return E.Call("bool", "likely", (ops.as_expr(condition),))


def ramp(base: PrimExprLike, stride: PrimExprLike, lanes: int) -> E.PrimExpr:
    """Return a vector of equal steps."""
    return E.Ramp(ops.as_expr(base), ops.as_expr(stride), int(lanes))


def broadcast(value: PrimExprLike, lanes: int) -> E.PrimExpr:
    """Return a vector of one value."""
    return E.Broadcast(ops.as_expr(value), int(lanes))


def prim_func(function: Callable[..., Any] | None = None, **_: Any) -> Any:
    """Decorator: return the Python function as a function of loops."""
    read = READERS["prim_func"]
    return read if function is None else read(function)


# `script.parse`, which reads what is written with this module, enters its function when loaded.
READERS: dict[str, Callable[..., Any]] = {}


def _typed(made: Callable[..., E.PrimExpr]) -> Callable[..., E.PrimExpr]:
    """Return a function that takes the dtype of its result by name, too, as before TVM 0.11."""

    @functools.wraps(made)
    def call(*args: Any, dtype: str | None = None) -> E.PrimExpr:
        found = ops.as_expr(made(*args))
        return found if dtype is None else ops.cast(found, dtypes.canonical(dtype))

    return call


floordiv, floormod, truncdiv, truncmod = ops.floordiv, ops.floormod, ops.truncdiv, ops.truncmod
min, max, min_value, max_value = ops.minimum, ops.maximum, ops.min_value, ops.max_value
infinity = ops.infinity
if_then_else, bitwise_and = _typed(ops.if_then_else), _typed(ops.bitwise_and)
exp, log, sqrt, rsqrt, tanh, sigmoid = (_typed(getattr(_math, n)) for n in (
    "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid"))  # fmt: skip
sin, cos, erf, floor, ceil, trunc, abs, power, pow = (_typed(getattr(_math, n)) for n in (
    "sin", "cos", "erf", "floor", "ceil", "trunc", "abs", "power", "pow"))  # fmt: skip
fabs, fmod, log2, popcount, clz, round, nearbyint = (_typed(getattr(_math, n)) for n in (
    "abs", "fmod", "log2", "popcount", "clz", "round", "nearbyint"))  # fmt: skip
const, call_intrin = ops.const, ops.call_intrin
call_packed, ceildiv, address_of = calls.call_packed, calls.ceildiv, calls.address_of


def _either_way(made: Callable[..., E.PrimExpr]) -> Callable[..., E.PrimExpr]:
    """Return a function that takes the dtype in front, or by name as before TVM 0.11."""

    def call(*args: Any, dtype: str | None = None) -> E.PrimExpr:
        return made(*args) if dtype is None else made(dtype, *args)

    return call


call_extern, call_pure_extern = map(_either_way, (calls.call_extern, calls.call_pure_extern))
call_llvm_intrin, call_llvm_pure_intrin = map(
    _either_way, (calls.call_llvm_intrin, calls.call_llvm_pure_intrin)
)
reinterpret, vectorcombine = _either_way(calls.reinterpret), _either_way(calls.vectorcombine)
vectorlow, vectorhigh = _either_way(calls.vectorlow), _either_way(calls.vectorhigh)


def _shuffle(name: str) -> Callable[..., E.PrimExpr]:
    """Return a shuffle, whose result is of the value's type."""

    def call(mask: PrimExprLike, value: PrimExprLike, *positions: PrimExprLike) -> E.PrimExpr:
        return ops.call_intrin(ops.as_expr(value).dtype, name, mask, value, *positions)

    return _typed(call)


tvm_warp_shuffle, tvm_warp_shuffle_up, tvm_warp_shuffle_down = map(_shuffle, SHUFFLES)


def tvm_warp_activemask(dtype: str = "uint32") -> E.PrimExpr:
    """Return a bit for each thread of the warp that comes here."""
    return ops.call_intrin(dtypes.canonical(dtype), "warp_activemask")


def tvm_storage_sync(scope: str, *_: object, dtype: str = "int32") -> E.PrimExpr:
    """Return a barrier of a block's threads; a scope has what they have written there in order."""
    return ops.call_intrin(dtype, "storage_sync", E.StringImm(scope))


def llvm_lookup_intrinsic_id(name: str) -> str:
    """Return what names an LLVM intrinsic in a call: its name."""
    return name


def type_annotation(dtype: str) -> E.PrimExpr:
    """Return what `tvm_access_ptr` takes in front, as an expression of a dtype."""
    return E.Call(dtypes.canonical(dtype), "type_annotation", ())


def tvm_access_ptr(
    ptype: E.PrimExpr, data: E.Var, offset: PrimExprLike, extent: PrimExprLike,
    rw_mask: PrimExprLike, dtype: str = "handle",
) -> E.PrimExpr:  # fmt: skip
    """Return a pointer to what is `offset` elements into memory, as Buffer.access_ptr does."""
    del ptype, extent
    return E.Call(dtype, "access_ptr", (data, ops.as_expr(offset), ops.as_expr(rw_mask)))


def _matrix_unit(name: str) -> Callable[..., E.PrimExpr]:
    def call(*args: Any, dtype: str = "handle") -> E.PrimExpr:
        return E.Call(dtype, name, tuple(map(ops.as_expr, args)))

    return call


def __getattr__(name: str) -> Any:
    if name == "bool":  # of this module it is Python's
        return boolean
    if of_matrix_unit(name):
        return _matrix_unit(name)
    if _VECTORS.fullmatch(name):
        return _Scalar(name)
    if name in _FUNCTIONS:
        return _typed(next(getattr(m, name) for m in (_math, ops, calls) if hasattr(m, name)))
    raise AttributeError(missing(__name__, name, list(globals())))


# Functions of `tir` that are T's, too, beside those above.
_FUNCTIONS = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_not", "bitwise_or",
    "bitwise_xor", "copysign", "cosh", "exp10", "exp2", "indexdiv", "indexmod", "isfinite",
    "isinf", "isnan", "ldexp", "log10", "log1p", "q_multiply_shift", "ret", "shift_left",
    "shift_right", "sinh", "tan",
)  # fmt: skip
_VECTORS = re.compile(r"(u?int(8|16|32|64)|float(16|32|64)|bool)x\d+")

Var, PrimFuncType = E.Var, PrimFunc
