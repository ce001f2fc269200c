"""Scalar and vector expressions of the loop language.

The whole grammar (d = dtype, n = lanes)::

    e = Var(name, d) | IntImm(d, v) | FloatImm(d, v) | StringImm(v)
      | Cast(d, e)
      | Add(e, e) | Sub(e, e) | Mul(e, e)          wrap on integer overflow
      | Div(e, e) | Mod(e, e)                      truncate toward zero; floats: / and fmod
      | FloorDiv(e, e) | FloorMod(e, e)            round toward minus infinity
      | Min(e, e) | Max(e, e)
      | EQ | NE | LT | LE | GT | GE (e, e) -> bool
      | And(e, e) | Or(e, e) | Not(e)              bool, both sides may be evaluated
      | Select(cond, e, e)                         both sides may be evaluated
      | BufferLoad(buffer, (e, ...))
      | ProducerLoad(tensor, (e, ...))             only before lowering: element of a te.Tensor
      | Ramp(base, stride, n) | Broadcast(e, n) | Shuffle((e, ...), (i, ...))
      | Let(var, e, body)
      | Call(d, op, (e, ...))                      op: a name from ir.intrin, or an extern symbol
      | Reduce(combiner, (source, ...), (axis, ...), cond, value_index, init)   only in te

Both sides of a binary node have one dtype; `ir.ops` inserts the casts.  ``a == b`` between
expressions builds an `EQ`, whose truth value is identity, so that nodes still work as
dictionary keys; compare across variables with `structural_equal`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from slipway import dtypes
from slipway.errors import LoweringError
from slipway.ir.node import Node, node
from slipway.ir.operators import BUILDERS, ExprOperators

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from slipway.ir.buffer import Buffer


class PrimExpr(ExprOperators, Node):
    """Base of all expressions; `dtype` is a string such as "float32x8".

    A class whose dtype follows from its operands sets it on construction (it is not one of FIELDS).
    """

    __slots__ = ("dtype",)
    dtype: str

    def __bool__(self) -> bool:
        raise LoweringError(
            f"the expression {self} has no truth value while a program is being built; "
            "use te.if_then_else or Select for a choice, te.all / te.any instead of and / or"
        )

    @property
    def lanes(self) -> int:
        """Number of vector lanes; 1 for a scalar."""
        return dtypes.lanes_of(self.dtype)


_set_dtype = PrimExpr.dtype.__set__  # type: ignore[misc,attr-defined]


@node
class Var(PrimExpr):
    """A named scalar (a loop variable, a parameter, a symbolic size).  Unique by identity."""

    name: str
    dtype: str = "int32"


@node
class SizeVar(Var):
    """A Var known to be at least `low`: a symbolic shape; at most `high`, where that is not -1."""

    low: int = 0
    high: int = -1


@node
class IntImm(PrimExpr):
    """An integer or truth constant."""

    dtype: str
    value: int

    def __bool__(self) -> bool:
        return self.value != 0

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value


@node
class FloatImm(PrimExpr):
    """A floating point constant, kept as a Python float."""

    dtype: str
    value: float

    def __bool__(self) -> bool:
        return self.value != 0.0

    def __float__(self) -> float:
        return self.value


@node
class StringImm(PrimExpr):
    """A string constant; only an argument of calls and a value of attributes."""

    value: str
    dtype: str = "handle"


@node
class Cast(PrimExpr):
    """`value` converted to `dtype`: float to int truncates, int to int wraps."""

    dtype: str
    value: PrimExpr


class BinaryOp(PrimExpr):
    """Base of the arithmetic binary nodes: both operands and the result share one dtype."""

    __slots__ = ()
    a: PrimExpr
    b: PrimExpr

    def __post_init__(self) -> None:
        a, b = self.a, self.b
        if not (isinstance(a, PrimExpr) and isinstance(b, PrimExpr)):
            _take_plain(self, "a", "b")
            a, b = self.a, self.b
        dtype = a.dtype
        if dtype is not b.dtype:  # one call less: loops are made of these nodes
            _check_operands(self)
        _set_dtype(self, dtype)


class CmpOp(PrimExpr):
    """Base of the comparisons: bool, with the operands' lanes."""

    __slots__ = ()
    a: PrimExpr
    b: PrimExpr

    def __post_init__(self) -> None:
        if not (isinstance(self.a, PrimExpr) and isinstance(self.b, PrimExpr)):
            _take_plain(self, "a", "b")
        _check_operands(self)
        _set_dtype(self, dtypes.with_lanes("bool", dtypes.lanes_of(self.a.dtype)))


def _take_plain(self: Any, first: str, second: str) -> None:
    """Let scripts write numbers and axes where a node has two operands: tir.Max(x, 0.0)."""
    a, b = BUILDERS.match(getattr(self, first), getattr(self, second))
    getattr(type(self), first).__set__(self, a)
    getattr(type(self), second).__set__(self, b)


def _take_number(self: Any, name: str) -> None:
    """Let scripts write a number, or an axis, where a node has one operand: tir.Not(True)."""
    value = getattr(self, name)
    if not isinstance(value, PrimExpr):
        getattr(type(self), name).__set__(self, BUILDERS.as_expr(value))


def _check_operands(self: Any) -> None:
    if self.a.dtype != self.b.dtype:
        raise LoweringError(
            f"{type(self).__name__} of {self.a.dtype} and {self.b.dtype}: both sides must have "
            f"one dtype; cast one side ({self.a} , {self.b})"
        )


@node
class Add(BinaryOp):
    """a + b."""

    a: PrimExpr
    b: PrimExpr


@node
class Sub(BinaryOp):
    """a - b."""

    a: PrimExpr
    b: PrimExpr


@node
class Mul(BinaryOp):
    """a * b."""

    a: PrimExpr
    b: PrimExpr


@node
class Div(BinaryOp):
    """a / b; integers truncate toward zero."""

    a: PrimExpr
    b: PrimExpr


@node
class Mod(BinaryOp):
    """The remainder of Div: it has the sign of a."""

    a: PrimExpr
    b: PrimExpr


@node
class FloorDiv(BinaryOp):
    """The largest integer not above a / b."""

    a: PrimExpr
    b: PrimExpr


@node
class FloorMod(BinaryOp):
    """a - b * FloorDiv(a, b): it has the sign of b."""

    a: PrimExpr
    b: PrimExpr


@node
class Min(BinaryOp):
    """The smaller of a and b; with a NaN operand, b (as x86 minps)."""

    a: PrimExpr
    b: PrimExpr


@node
class Max(BinaryOp):
    """The greater of a and b; with a NaN operand, b (as x86 maxps)."""

    a: PrimExpr
    b: PrimExpr


@node
class EQ(CmpOp):
    """a == b; ``bool(a == b)`` is ``a is b``."""

    a: PrimExpr
    b: PrimExpr

    def __bool__(self) -> bool:
        return self.a is self.b


@node
class NE(CmpOp):
    """a != b; ``bool(a != b)`` is ``a is not b``."""

    a: PrimExpr
    b: PrimExpr

    def __bool__(self) -> bool:
        return self.a is not self.b


@node
class LT(CmpOp):
    """a < b."""

    a: PrimExpr
    b: PrimExpr


@node
class LE(CmpOp):
    """a <= b."""

    a: PrimExpr
    b: PrimExpr


@node
class GT(CmpOp):
    """a > b."""

    a: PrimExpr
    b: PrimExpr


@node
class GE(CmpOp):
    """a >= b."""

    a: PrimExpr
    b: PrimExpr


@node
class And(CmpOp):
    """a and b, on bool; both sides may be evaluated."""

    a: PrimExpr
    b: PrimExpr


@node
class Or(CmpOp):
    """a or b, on bool; both sides may be evaluated."""

    a: PrimExpr
    b: PrimExpr


@node
class Not(PrimExpr):
    """The opposite of a, on bool."""

    a: PrimExpr

    def __post_init__(self) -> None:
        _take_number(self, "a")
        _set_dtype(self, self.a.dtype)


@node
class Select(PrimExpr):
    """`true_value` where `condition` holds, else `false_value`; both may be evaluated."""

    condition: PrimExpr
    true_value: PrimExpr
    false_value: PrimExpr

    def __post_init__(self) -> None:
        if not (isinstance(self.true_value, PrimExpr) and isinstance(self.false_value, PrimExpr)):
            _take_plain(self, "true_value", "false_value")
        _set_dtype(self, self.true_value.dtype)


@node
class BufferLoad(PrimExpr):
    """The element of `buffer` at `indices`; a last index with lanes loads a vector."""

    buffer: Buffer
    indices: tuple[PrimExpr, ...]

    def __post_init__(self) -> None:
        if not all(isinstance(i, PrimExpr) for i in self.indices):
            indices = tuple(BUILDERS.as_expr(i) for i in self.indices)
            BufferLoad.indices.__set__(self, indices)  # type: ignore[attr-defined]
        lanes = dtypes.lanes_of(self.indices[-1].dtype) if self.indices else 1
        dtype = self.buffer.dtype
        if lanes != 1:
            dtype = dtypes.with_lanes(dtype, lanes * dtypes.lanes_of(dtype))
        _set_dtype(self, dtype)

    @property
    def buffer_var(self) -> Var:
        """The pointer to the buffer's memory (the classic name)."""
        return self.buffer.data


@node
class ProducerLoad(PrimExpr):
    """The element of te tensor `producer` at `indices`; gone after te lowering."""

    producer: Any
    indices: tuple[PrimExpr, ...]

    def __post_init__(self) -> None:
        _set_dtype(self, str(self.producer.dtype))


@node
class Ramp(PrimExpr):
    """The vector base, base + stride, ..., with `num_lanes` lanes."""

    base: PrimExpr
    stride: PrimExpr
    num_lanes: int

    def __post_init__(self) -> None:
        if not (isinstance(self.base, PrimExpr) and isinstance(self.stride, PrimExpr)):
            _take_plain(self, "base", "stride")
        _set_dtype(self, dtypes.with_lanes(self.base.dtype, self.num_lanes))


@node
class Broadcast(PrimExpr):
    """`value` repeated in `num_lanes` lanes."""

    value: PrimExpr
    num_lanes: int

    def __post_init__(self) -> None:
        _take_number(self, "value")
        inner = dtypes.lanes_of(self.value.dtype)
        _set_dtype(self, dtypes.with_lanes(self.value.dtype, inner * self.num_lanes))


@node
class Shuffle(PrimExpr):
    """Lanes picked, by constant position, from the concatenation of `vectors`."""

    vectors: tuple[PrimExpr, ...]
    indices: tuple[int, ...]

    def __post_init__(self) -> None:
        if type(self.vectors) is not tuple or type(self.indices) is not tuple:
            object.__setattr__(self, "vectors", tuple(map(BUILDERS.as_expr, self.vectors)))
            object.__setattr__(self, "indices", tuple(int(i) for i in self.indices))
        _set_dtype(self, dtypes.with_lanes(self.vectors[0].dtype, len(self.indices)))


@node
class Let(PrimExpr):
    """`body`, in which `var` stands for `value`."""

    var: Var
    value: PrimExpr
    body: PrimExpr

    def __post_init__(self) -> None:
        _set_dtype(self, self.body.dtype)


def plain_name(name: str) -> str:
    """Return an intrinsic's name without the "tir." that classic scripts write."""
    return name.removeprefix("tir.")


class OpName(str):
    """The operator of a call: a text that has a `name` with "tir." in front, for scripts."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name as classic scripts write it."""
        return f"tir.{plain_name(self)}"


@node
class Call(PrimExpr):
    """A call of the intrinsic or extern function named `op`."""

    dtype: str
    op: str
    args: tuple[PrimExpr, ...]

    def __post_init__(self) -> None:
        if type(self.args) is not tuple:  # as a script writes it: a list, with numbers in it
            object.__setattr__(self, "args", tuple(map(BUILDERS.as_expr, self.args)))
            op = str(self.op).removeprefix("tir.").removeprefix("tvm_")
            object.__setattr__(self, "op", op)
            if self.dtype is None:  # of a call for its effect
                object.__setattr__(self, "dtype", "int32")
        if type(self.op) is not OpName:
            object.__setattr__(self, "op", OpName(self.op))

    @property
    def name(self) -> str:
        """What is called, under the name that the field had in TVM 0.6."""
        return self.op


@node
class CommReducer(Node):
    """A commutative reduction: `result` combines `lhs` and `rhs`; `identity` starts it.

    All four are tuples of one length: the number of values reduced together.
    """

    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    result: tuple[PrimExpr, ...]
    identity: tuple[PrimExpr, ...]


@node
class IterVar(ExprOperators, Node):
    """An axis: `var` runs over [dom.min, dom.min + dom.extent); `kind` says how it may be used.

    Kinds: "data" (parallel), "reduce", "ordered" (scan), "thread", "opaque" (split or fused).
    `dom` may be None for a thread axis whose extent is inferred.
    """

    dom: Range | None
    var: Var
    kind: str = "data"
    thread_tag: str = ""

    # Kinds under their classic names; the last four are those of loops in a schedule.
    DataPar: ClassVar[str] = "data"
    ThreadIndex: ClassVar[str] = "thread"
    CommReduce: ClassVar[str] = "reduce"
    Ordered: ClassVar[str] = "ordered"
    DimInfo: ClassVar[str] = "opaque"
    Unrolled: ClassVar[str] = "unrolled"
    Vectorized: ClassVar[str] = "vectorized"
    Parallelized: ClassVar[str] = "parallel"
    Tensorized: ClassVar[str] = "tensorized"

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.var.name

    @property
    def dtype(self) -> str:
        """The variable's dtype."""
        return self.var.dtype

    @property
    def extent(self) -> PrimExpr:
        """The number of steps."""
        assert self.dom is not None
        return self.dom.extent


@node
class Range(Node):
    """The half-open interval [min, min + extent)."""

    min: PrimExpr
    extent: PrimExpr

    @staticmethod
    def of(extent: Any) -> Range:
        """Return [0, extent)."""
        size = BUILDERS.as_expr(extent)
        return Range(BUILDERS.const(0, size.dtype), size)


@node
class Reduce(PrimExpr):
    """The reduction of `source` over `axis`, where `condition` holds; only inside te.compute."""

    combiner: CommReducer
    source: tuple[PrimExpr, ...]
    axis: tuple[IterVar, ...]
    condition: PrimExpr
    value_index: int = 0
    init: tuple[PrimExpr, ...] = ()

    def __post_init__(self) -> None:
        _set_dtype(self, self.source[self.value_index].dtype)


class SupportsPrimExpr(Protocol):
    """A value that stands for an expression: a tensor without dimensions, say."""

    def as_prim_expr(self) -> PrimExpr:
        """Return the expression."""
        ...


# What `ops.as_expr` takes: whatever may stand where an expression is asked for.
PrimExprLike: TypeAlias = "PrimExpr | IterVar | SupportsPrimExpr | np.generic | float | str"
ShapeLike: TypeAlias = "PrimExprLike | Sequence[PrimExprLike]"
