"""The registry of operators: one `OpDefinition` per operator, filled section by section.

An operator's section in ``relay/ops/<family>.py`` reads::

    @node
    class LeakyReluAttrs(Attrs):
        alpha: float = 0.01

    LEAKY_RELU = register_op(
        "nn.leaky_relu", "data", attrs=LeakyReluAttrs, pattern=OpPattern.ELEMWISE,
        doc="max(x, 0) + alpha * min(x, 0).",
    )

    @LEAKY_RELU.type_relation
    def leaky_relu_type(attrs, data): return data

    @LEAKY_RELU.reference
    def leaky_relu_reference(attrs, data): return np.where(data > 0, data, data * attrs.alpha)

    @LEAKY_RELU.compute
    def leaky_relu_compute(attrs, inputs, out_types):
        (x,), m = inputs, te()
        return [m.compute(x.shape, lambda *i: m.max(x(*i), 0.0) + attrs.alpha * m.min(x(*i), 0.0))]

    @LEAKY_RELU.make
    def leaky_relu(data, alpha=0.01): return LEAKY_RELU(data, attrs=LeakyReluAttrs(alpha))

    LEAKY_RELU.sample_case((2, 3), low=-1.0)

The type relation takes the attributes and one type per argument; it raises `BadArgument` naming
the argument at fault.  The reference takes NumPy arrays (a tuple of arrays for a tuple argument);
it defines what the operator means, and serves constant folding, the interpreter and the tests.
The compute takes te tensors (tuples taken apart) and gives te tensors, one per result.
`load_ops` imports every family and rejects an operator with a missing part.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar, TypeGuard, TypeVar

import numpy as np

from slipway import dtypes
from slipway.errors import SlipwayError, TypeInferenceError, did_you_mean
from slipway.ir.node import Node
from slipway.relay import open_dims
from slipway.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    Op,
    Tuple,
    TupleWrapper,
)
from slipway.relay.types import FuncType, TensorType, TupleType, Type, flatten

F = TypeVar("F", bound=Callable[..., Any])


class OpPattern(IntEnum):
    """How an operator may be fused; greater is harder.  The values are classic TVM's."""

    ELEMWISE = 0  # out[i] depends on in[i]
    BROADCAST = 1  # out[i] depends on in[axes of i, in order]
    INJECTIVE = 2  # out[i] depends on in[f(i)]
    COMM_REDUCE = 3  # a reduction; takes elementwise producers
    OUT_ELEMWISE_FUSABLE = 4  # a convolution, say; takes elementwise consumers
    TUPLE = 7  # a Tuple expression
    OPAQUE = 8  # stays alone


class Attrs(Node):
    """Base of the operators' attribute records; each is a `@node` with defaults."""

    __slots__ = ()
    KIND: ClassVar[str] = "relay.Attrs"

    def keys(self) -> list[str]:
        """Return the names of the attributes."""
        return list(self.FIELDS)

    def __getitem__(self, key: str) -> Any:
        if key not in self.FIELDS:
            names = ", ".join(self.FIELDS) or "none"
            raise KeyError(f"there is no attribute {key!r}; there are: {names}")
        return getattr(self, key)

    def get_int(self, key: str) -> int:
        """Return an integer attribute."""
        return int(self[key])

    def get_str(self, key: str) -> str:
        """Return an attribute as text."""
        return str(self[key])

    def get_int_tuple(self, key: str) -> tuple[int, ...]:
        """Return an attribute of several integers."""
        return tuple(int(v) for v in self[key])


class BadArgument(TypeInferenceError):
    """What a type relation raises: the argument (or attribute) at fault, and what is wrong."""

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(f"argument {argument!r} {problem}")


@dataclass
class SampleCase:
    """Arguments to test an operator with: shapes (a list of shapes for a tuple), dtypes, attrs.

    `low` and `high` bound the random values; `make` overrides the random arrays.
    """

    shapes: tuple[Any, ...]
    attrs: Any = None
    dtypes: tuple[str, ...] = ()
    low: float = -2.0
    high: float = 2.0
    make: Callable[[np.random.Generator], Sequence[Any]] | None = None

    def arrays(self, seed: int = 0) -> list[Any]:
        """Return deterministic arguments for the reference."""
        rng = np.random.default_rng(seed)
        if self.make is not None:
            return list(self.make(rng))
        kinds = self.dtypes or ("float32",) * len(self.shapes)
        return [
            tuple(self._array(rng, s, kind) for s in shape)
            if isinstance(shape, list)
            else self._array(rng, shape, kind)
            for shape, kind in zip(self.shapes, kinds, strict=True)
        ]

    def _array(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
        if dtype == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if dtype.startswith(("int", "uint")):
            low = max(self.low, 0) if dtype.startswith("uint") else self.low
            return rng.integers(int(low), int(self.high) + 1, shape).astype(dtype)
        return rng.uniform(self.low, self.high, shape).astype(dtype)


@dataclass(frozen=True)
class Ways:
    """Two calls that compute the same; `condition`, a formula of open sizes, is true for `one`."""

    condition: Any  # a PrimExpr
    one: Call
    other: Call


@dataclass(eq=False)
class OpDefinition:
    """Everything the compiler knows about one operator."""

    name: str
    arguments: tuple[str, ...]  # a name that ends in "..." takes a tuple
    attrs_type: type[Attrs] | None
    pattern: OpPattern
    flops_per_element: float
    doc: str
    op: Op = field(init=False)
    relation_function: Callable[..., Type] | None = None
    implied_function: Callable[..., Sequence[Type | None]] | None = None
    reference_function: Callable[..., Any] | None = None
    compute_function: Callable[..., Any] | None = None
    make_function: Callable[..., Any] | None = None
    flops_function: Callable[..., float] | None = None
    work_function: Callable[..., float] | None = None
    reads_function: Callable[..., Sequence[int]] | None = None
    ways_function: Callable[..., Ways] | None = None
    cases: list[SampleCase] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.op = Op(self.name)

    # -- the parts of a section --------------------------------------------------------------

    def type_relation(self, function: F) -> F:
        """Decorator: set the type rule, ``f(attrs, *types) -> type``."""
        self.relation_function = function
        return function

    def implies(self, function: F) -> F:
        """Decorator: set what the operator says of arguments without a type, as of a weight.

        ``f(attrs, data, *types) -> types``: data is typed, and None stays where nothing tells.
        """
        self.implied_function = function
        return function

    def reference(self, function: F) -> F:
        """Decorator: set the NumPy meaning, ``f(attrs, *arrays) -> array or tuple of arrays``."""
        self.reference_function = function
        return function

    def compute(self, function: F) -> F:
        """Decorator: set the te expression, ``f(attrs, tensors, out_types) -> [tensor]``."""
        self.compute_function = function
        return function

    def make(self, function: F) -> F:
        """Decorator: set the Python function that users call, with its classic signature."""
        self.make_function = function
        return function

    def flops(self, function: F) -> F:
        """Decorator: set the operation count, ``f(attrs, in_types, out_type) -> number``."""
        self.flops_function = function
        return function

    def work(self, function: F) -> F:
        """Decorator: set what the algorithm executes, ``f(attrs, in_types, out_type) -> number``.

        In multiply-adds, which count two; products that a packed form sums in one step count once.
        Where it is not what `flops` counts by definition.
        """
        self.work_function = function
        return function

    def reads(self, function: F) -> F:
        """Decorator: set the bytes read of each argument, ``f(attrs, in_types, out_type)``.

        Without it every argument is read as a whole.
        """
        self.reads_function = function
        return function

    def ways(self, function: F) -> F:
        """Decorator: set what open sizes choose when a model runs, ``f(attrs, args, out_type)``.

        A kernel has both calls of the `Ways`; elsewhere the other one stands for the operator.
        """
        self.ways_function = function
        return function

    def sample_case(self, *shapes: Any, attrs: Attrs | None = None, **options: Any) -> None:
        """Add arguments to test with; see `SampleCase`."""
        if attrs is None and self.attrs_type is not None:
            attrs = self.attrs_type()
        self.cases.append(SampleCase(shapes, attrs, **options))

    # -- use -----------------------------------------------------------------------------------

    def __call__(self, *args: Any, attrs: Attrs | None = None, span: str = "") -> Call:
        """Return the call of this operator on expressions."""
        if attrs is None and self.attrs_type is not None:
            attrs = self.attrs_type()
        return Call(self.op, tuple(as_expr(a) for a in args), attrs, span or current_span())

    def infer(self, attrs: Attrs | None, types: Sequence[Type]) -> Type:
        """Return the result type.  Raises TypeInferenceError naming the argument at fault."""
        if len(types) != len(self.arguments):
            raise TypeInferenceError(
                f"takes {len(self.arguments)} arguments ({', '.join(self.arguments)}), "
                f"got {len(types)}"
            )
        for name, given in zip(self.arguments, types, strict=True):
            if name.endswith("..."):
                if not isinstance(given, TupleType):
                    raise BadArgument(name[:-3], f"must be a tuple of tensors, got {given}")
            elif not isinstance(given, TensorType):
                raise BadArgument(name, f"must be a tensor, got {given}")
        if self.name not in MOVES:
            for name, given in zip(self.arguments, types, strict=True):
                for leaf in (given,) if isinstance(given, TensorType) else flatten(given):
                    if dtypes.is_carried(leaf.dtype):
                        raise BadArgument(
                            name.removesuffix("..."),
                            f"holds {leaf.dtype}, which can be moved and converted but not "
                            "computed with: cast it first",
                        )
        assert self.relation_function is not None
        return self.relation_function(attrs, *types)

    def implied(self, types: Sequence[Type | None], attrs: Attrs | None) -> Sequence[Type | None]:
        """Return the arguments' types, with those that the operator implies in place of None."""
        known = len(types) == len(self.arguments) and isinstance(types[0], TensorType)
        if self.implied_function is None or not known:
            return types
        return self.implied_function(attrs, *types)

    def evaluate(self, attrs: Attrs | None, *arrays: Any) -> Any:
        """Run the NumPy reference."""
        assert self.reference_function is not None
        with np.errstate(all="ignore"):
            return self.reference_function(attrs, *arrays)

    def count_flops(self, attrs: Attrs | None, in_types: Sequence[Type], out_type: Type) -> float:
        """Return the arithmetic operations of one call (a multiply-add counts two)."""
        if self.flops_function is not None:
            return self.flops_function(attrs, in_types, out_type)
        return self.flops_per_element * sum(t.size for t in flatten(out_type))

    def count_work(self, attrs: Attrs | None, in_types: Sequence[Type], out_type: Type) -> float:
        """Return what one call executes: two for each multiply-add of its algorithm."""
        count = self.work_function or self.count_flops
        return count(attrs, in_types, out_type)

    def count_reads(
        self, attrs: Attrs | None, in_types: Sequence[Type], out_type: Type
    ) -> Sequence[int]:
        """Return the bytes that one call reads of each argument."""
        if self.reads_function is not None:
            return self.reads_function(attrs, in_types, out_type)
        return [sum(t.size_bytes for t in flatten(type_)) for type_ in in_types]

    def missing_parts(self) -> list[str]:
        """Return the names of the parts that this section lacks."""
        parts = {
            "doc": self.doc,
            "type_relation": self.relation_function,
            "reference": self.reference_function,
            "compute": self.compute_function,
            "make": self.make_function,
            "sample_case": self.cases,
        }
        return [name for name, part in parts.items() if not part]


# Operators that take the carried dtypes (see `dtypes.is_carried`): casts, and what moves elements.
MOVES = frozenset([
    "broadcast_to", "cast", "concatenate", "copy", "expand_dims", "full", "gather", "gather_nd",
    "nn.batch_flatten", "reinterpret", "repeat", "reshape", "reverse", "split", "squeeze", "stack",
    "strided_slice", "take", "tile", "transpose", "where",
])  # fmt: skip
# Up to BROADCAST, but an attribute or an operand of theirs speaks of certain axes or of a shape.
OF_CERTAIN_AXES = frozenset([
    "broadcast_to", "expand_dims", "full", "nn.batch_norm", "nn.bias_add", "nn.prelu",
    "qnn.contrib_rescale_high", "qnn.lookup", "qnn.normalize", "qnn.rescale",
])  # fmt: skip
OPS: dict[str, OpDefinition] = {}
DYN_OPS: dict[str, OpDefinition] = {}  # of run-time sizes: they have a static form, and no compute
_PER_THREAD = threading.local()


@contextmanager
def span(name: str) -> Iterator[None]:
    """Within the block, new calls of this thread belong to the model's node `name`."""
    outer, _PER_THREAD.span = current_span(), name
    try:
        yield
    finally:
        _PER_THREAD.span = outer


def current_span() -> str:
    """Return the model's node that new calls of this thread belong to, "" for none."""
    return getattr(_PER_THREAD, "span", "")


FAMILIES = (
    "nn.activation", "qnn.affine", "annotation", "nn.attention", "tensor.binary",
    "nn.block_dense", "packed.block_dense", "packed.blocked", "packed.blocked_conv",
    "nn.expert_dense", "packed.expert_dense", "nn.cached_conv",
    "nn.cached_attention", "packed.columns", "control", "qnn.conv", "nn.conv", "nn.conv_transpose",
    "packed.conv_by_size", "tensor.create", "nn.dense", "image.detection", "packed.dot_pairs",
    "tensor.index", "packed.interleave", "tensor.join", "nn.float_parts", "nn.norm", "nn.pad",
    "nn.pool", "qnn.pool", "packed.qnn_depthwise_packed", "random", "nn.correlation",
    "nn.pool_grad",
    "packed.qnn_packed", "packed.qnn_winograd", "recurrence", "tensor.reduce", "image.regions",
    "image.region_samples",
    "tensor.repeat", "qnn.rescale", "qnn.rescale_high", "image.resize", "nn.rotary",
    "qnn.rsqrt", "image.sample", "tensor.scan", "tensor.scatter", "tensor.shape", "nn.softmax",
    "tensor.sized", "qnn.softmax", "tensor.sort", "vision.suppression", "qnn.table", "tensor.unary",
    "tensor.update", "packed.winograd", "packed.winograd_images", "packed.winograd_frames",
    "qnn.words",
    "tensor.einsum", "tensor.indexing", "tensor.sets", "tensor.sparse_tensors", "tensor.spectral",
)  # fmt: skip
_loaded = False


def register_op(
    name: str,
    *arguments: str,
    attrs: type[Attrs] | None = None,
    pattern: OpPattern,
    flops_per_element: float = 0.0,
    doc: str,
) -> OpDefinition:
    """Enter an operator into the registry; the sections of `relay.ops` call this on import."""
    if name in OPS:
        raise ValueError(f"the operator {name!r} is registered twice")
    OPS[name] = OpDefinition(name, arguments, attrs, pattern, flops_per_element, doc)
    return OPS[name]


def load_ops() -> dict[str, OpDefinition]:
    """Import every family and return the complete registry."""
    global _loaded
    if not _loaded and not getattr(_PER_THREAD, "loads", False):
        _PER_THREAD.loads = True
        try:
            for family in FAMILIES:
                importlib.import_module(f"slipway.relay.ops.{family}")
        finally:
            _PER_THREAD.loads = False
        if any(map(_is_being_imported, FAMILIES)):
            return OPS  # by this thread: a section that uses operators while it is read
        incomplete = {n: parts for n, d in OPS.items() if (parts := d.missing_parts())}
        if incomplete:
            raise RuntimeError(f"incomplete operator sections: {incomplete}")
        for definition in OPS.values():  # "max_pool2d", not the function that made it
            function = definition.make_function
            assert function is not None  # it is one of the parts
            function.__qualname__ = function.__name__
        _loaded = True
    return OPS


class UnknownOperator(SlipwayError, KeyError):
    """A name that no operator has; a KeyError, as looking it up has always been."""

    def __str__(self) -> str:
        return str(self.args[0])


def _is_being_imported(family: str) -> bool:
    module = sys.modules.get(f"slipway.relay.ops.{family}")
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def get(name: str) -> OpDefinition:
    """Return the definition of operator `name`.  Raises UnknownOperator with a suggestion."""
    definition = OPS.get(name) or DYN_OPS.get(name)
    # Before all are loaded, another thread may be in the middle of the operator's section.
    if definition is None or (not _loaded and name in OPS and definition.missing_parts()):
        definition = load_ops().get(name) or DYN_OPS.get(name)
    if definition is None:
        raise UnknownOperator(
            f"there is no operator {name!r}.{did_you_mean(name, [*OPS, *DYN_OPS])}"
        )
    return definition


def make(name: str) -> Callable[..., Any]:
    """Return the Python function of operator `name`."""
    function = get(name).make_function
    assert function is not None
    return function


def as_expr(value: Any, dtype: str | None = None) -> Expr:
    """Return `value` as an expression: a list becomes a Tuple, a number or array a Constant."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, TupleWrapper):
        return value.astuple()
    if isinstance(value, (tuple, list)) and any(isinstance(v, (Expr, TupleWrapper)) for v in value):
        return Tuple(tuple(as_expr(v) for v in value))
    return const(value, dtype)


def const(value: Any, dtype: str | None = None) -> Constant:
    """Return a Constant; Python numbers are int32, float32 or bool unless `dtype` is given."""
    given_dtype = dtype
    if value is None:
        raise TypeInferenceError("relay.const: None is no value; give a number or an array")
    if hasattr(value, "numpy") and not isinstance(value, np.ndarray):
        value = value.numpy()
    try:
        if dtype is None and not hasattr(value, "dtype"):
            kind = np.asarray(value).dtype.kind
            dtype = {"f": "float32", "i": "int32", "b": "bool"}.get(kind)
        array = np.asarray(value, dtype)
    except OverflowError:
        default = "" if given_dtype is not None else ", which is the default: give dtype="
        raise TypeInferenceError(f"relay.const: {value!r} does not fit {dtype}{default}") from None
    except (TypeError, ValueError) as error:
        raise TypeInferenceError(
            f"relay.const: {value!r} is no number or array of {dtype or 'one dtype'} ({error})"
        ) from None
    return Constant(array)


def infer_call(call: Call) -> Type | None:
    """Return the type of `call`; None for a module function, and while its arguments have none.

    An operator may imply types of arguments.  Raises TypeInferenceError with the operator and the
    model node in front.
    """
    types = [argument._type for argument in call.args if argument._type is not None]
    if len(types) < len(call.args):
        if not isinstance(call.op, Op):
            return None
        implied = get(call.op.name).implied([argument._type for argument in call.args], call.attrs)
        types = [type_ for type_ in implied if type_ is not None]
        if len(types) < len(call.args):
            return None
    if isinstance(call.op, Op):
        try:
            return _infer_operator(call, types)
        except TypeInferenceError as error:
            where = f" (node {call.span!r})" if call.span else ""
            raise TypeInferenceError(f"{call.op.name}{where}: {error}") from None
    # A GlobalVar may have a type; where it has none, the module knows.
    if isinstance(call.op, Expr):
        function_type = call.op.type
    elif isinstance(call.op, GlobalVar):
        function_type = call.op.function_type
    else:  # of a damaged document
        raise TypeInferenceError(f"a {type(call.op).__name__} is called, which is no function")
    if function_type is None:
        return None
    if not isinstance(function_type, FuncType):
        raise TypeInferenceError(f"cannot call a value of type {function_type}")
    if tuple(types) != function_type.arg_types:
        wanted = ", ".join(str(t) for t in function_type.arg_types)
        given = ", ".join(str(t) for t in types)
        raise TypeInferenceError(f"a function over ({wanted}) is called with ({given})")
    return function_type.ret_type


def _infer_operator(call: Call, types: list[Type]) -> Type:
    definition = get(call.op.name)
    if definition.attrs_type is not None and not isinstance(call.attrs, definition.attrs_type):
        raise TypeInferenceError(
            f"its attributes are {call.attrs!r}, not {definition.attrs_type.__name__}"
        )
    if any(open_dims.has_open(t) for t in types):
        return open_dims.infer_open(lambda t: definition.infer(call.attrs, t), types, call.attrs)
    return definition.infer(call.attrs, types)


def call_definition(expr: Expr) -> OpDefinition | None:
    """Return the definition of the operator that `expr` calls, or None."""
    if isinstance(expr, Call) and isinstance(expr.op, Op):
        return get(expr.op.name)
    return None


def is_call_of(expr: object, *names: str) -> TypeGuard[Call]:
    """Return whether `expr` is a call of one of the named operators."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in names


def is_pointwise(call: Call) -> bool:
    """Return whether a call of an operator means the same on operands of any other equal layout.

    Its operands broadcast as NumPy's do, and neither they nor its attributes name an axis.
    """
    definition = get(call.op.name)
    if definition.pattern > OpPattern.BROADCAST or call.op.name in OF_CERTAIN_AXES:
        return False
    if call.op.name in ("qnn.quantize", "qnn.dequantize"):
        return all(a.tensor_type.rank == 0 for a in call.args[1:])  # one scale, not one per channel
    return isinstance(call.type, TensorType)


def is_primitive(expr: Expr) -> bool:
    """Return whether `expr` is a function made by FuseOps: one kernel."""
    return isinstance(expr, Function) and bool(expr.attr("Primitive"))
