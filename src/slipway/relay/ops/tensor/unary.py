"""Elementwise operators of one argument: mathematics, rounding, tests, casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.ir import ops
from slipway.ir.intrin import INTRINSICS
from slipway.ir.node import node
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpDefinition, OpPattern, register_op
from slipway.relay.ops.checks import need_float, need_integral, need_number
from slipway.relay.ops.tensor import small_types
from slipway.relay.ops.tensor.tensors import elementwise, te
from slipway.relay.types import TensorType, Type
from slipway.runtime.ndarray import numpy_dtype

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike


def _erf(x: np.ndarray[Any, Any]) -> Any:
    reference = INTRINSICS["erf"].reference
    assert reference is not None
    return reference(x)


def _sigmoid(x: Array) -> Any:
    return np.where(
        x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x)))
    )


def _number(data: TensorType) -> TensorType:
    need_number("data", data)
    return data


def _real(data: TensorType) -> TensorType:
    need_float("data", data)
    return data


def _truth_of_number(data: TensorType) -> TensorType:
    need_number("data", data)
    return TensorType(data.shape, "bool")


def _function(
    name: str,
    result: Callable[[TensorType], TensorType],
    reference: Callable[[Any], Any],
    element: Callable[[Any, Any], Any],
    flops: float = 1,
    says: str = "{name} of each element.",
) -> OpDefinition:
    """Register a function of each element; `element` takes te and its value.

    The reference's values are brought to the dtype of the `result` that the data's type gives.
    """
    definition = register_op(
        name, "data", pattern=OpPattern.ELEMWISE, flops_per_element=flops,
        doc=says.format(name=name),
    )  # fmt: skip

    @definition.type_relation
    def relation(attrs: None, data: TensorType) -> Type:
        return result(data)

    @definition.reference
    def evaluate(attrs: None, data: Array) -> Any:
        found = np.asarray(reference(data))
        return found if found.dtype == bool else found.astype(data.dtype)

    @definition.compute
    def compute(attrs: None, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
        (x,) = inputs
        return [elementwise(f"T_{name}", x.shape, lambda *i: element(te(), x(*i)))]

    @definition.make
    def make(data: ExprLike) -> Call:
        return definition(data)

    make.__name__, make.__doc__ = name, definition.doc
    return definition


def _float_math(
    name: str, reference: Callable[..., Any], flops: float, low: float, high: float
) -> Any:
    """Register a function of real numbers: floating point in, the same type out."""
    made = _function(name, _real, reference, lambda t, x: getattr(t, name)(x), flops)
    made.sample_case((2, 3, 5), low=low, high=high)
    made.sample_case((7,), low=low, high=high)
    return made.make_function


exp = _float_math("exp", np.exp, 8, -4, 4)
log = _float_math("log", np.log, 8, 0.1, 5)
log2 = _float_math("log2", np.log2, 8, 0.1, 5)
log10 = _float_math("log10", np.log10, 8, 0.1, 5)
sqrt = _float_math("sqrt", np.sqrt, 1, 0, 9)
rsqrt = _float_math("rsqrt", lambda x: 1 / np.sqrt(x), 2, 0.1, 9)
tanh = _float_math("tanh", np.tanh, 8, -4, 4)
sigmoid = _float_math("sigmoid", _sigmoid, 8, -6, 6)
erf = _float_math("erf", _erf, 8, -3, 3)
sin = _float_math("sin", np.sin, 8, -4, 4)
cos = _float_math("cos", np.cos, 8, -4, 4)
tan = _float_math("tan", np.tan, 8, -1.2, 1.2)
asin = _float_math("asin", np.arcsin, 8, -1, 1)
acos = _float_math("acos", np.arccos, 8, -1, 1)
atan = _float_math("atan", np.arctan, 8, -4, 4)
sinh = _float_math("sinh", np.sinh, 8, -2, 2)
cosh = _float_math("cosh", np.cosh, 8, -2, 2)
asinh = _float_math("asinh", np.arcsinh, 8, -4, 4)
acosh = _float_math("acosh", np.arccosh, 8, 1, 4)
atanh = _float_math("atanh", np.arctanh, 8, -0.9, 0.9)


def _round_to_integer(name: str, reference: Callable[..., Any], intrinsic: str) -> Any:
    """Register a rounding; integers come back as they are."""

    def evaluate(data: Array) -> Any:
        return reference(data) if dtypes.is_float(data.dtype.name) else data

    def element(t: PrimExpr, x: PrimExpr) -> Any:
        return getattr(t, intrinsic)(x) if dtypes.is_float(x.dtype) else x

    says = "{name} of each element, in the same dtype."
    made = _function(name, _number, evaluate, element, says=says)
    made.sample_case((2, 3, 5), low=-3, high=3)
    return made.make_function


floor = _round_to_integer("floor", np.floor, "floor")
ceil = _round_to_integer("ceil", np.ceil, "ceil")
trunc = _round_to_integer("trunc", np.trunc, "trunc")
# Halves go to the even neighbour, as ONNX Round and NumPy have it; C round() differs.
round_ = _round_to_integer("round", np.rint, "nearbyint")


def _signed(name: str, reference: Callable[..., Any], element: Callable[[Any, Any], Any]) -> Any:
    """Register a function of any number type."""
    made = _function(name, _number, reference, element)
    made.sample_case((2, 3, 5))
    made.sample_case((4, 3), dtypes=("int32",), low=-5, high=5)
    specials = np.array([1.0, -2.5, np.nan, np.inf, -np.inf, 0.0], np.float32)
    made.sample_case((6,), make=lambda rng: [specials])
    return made.make_function


def _sign(te_: Any, x: Any) -> Any:
    zero, one, minus = (te_.const(v, x.dtype) for v in (0, 1, -1))
    if dtypes.is_uint(x.dtype):
        return te_.select(x > zero, one, zero)
    return te_.select(x > zero, one, te_.select(x < zero, minus, te_.abs(x)))  # 0, or NaN


def _absolute(te_: Any, x: Any) -> Any:
    if dtypes.is_uint(x.dtype):
        return x
    if dtypes.is_float(x.dtype):
        return te_.abs(x)
    return te_.select(x < te_.const(0, x.dtype), te_.const(0, x.dtype) - x, x)


# From -0.0, so that of a zero the sign changes too.
negative = _signed("negative", np.negative, lambda t, x: t.const(-0.0, x.dtype) - x)
abs_ = _signed("abs", np.abs, _absolute)
sign = _signed("sign", np.sign, _sign)


def _float_test(
    name: str, reference: Callable[..., Any], element: Callable[[Any, Any], Any]
) -> Any:
    """Register a test of each element, which integers pass or fail as they are finite numbers."""
    says = f"Whether each element {name.replace('is', 'is ')}."

    def of_number(t: Any, x: Any) -> Any:
        return element(t, x) if dtypes.is_float(x.dtype) else t.const(name == "isfinite", "bool")

    made = _function(name, _truth_of_number, reference, of_number, says=says)
    made.sample_case((2, 3), dtypes=("int32",), low=-5, high=5)
    specials = np.array([1.0, -2.5, np.nan, np.inf, -np.inf, 0.0], np.float32)
    made.sample_case((6,), make=lambda rng: [specials])
    return made.make_function


# Through intrinsics: `x != x` would be folded away where code is generated without NaNs in mind.
isnan = _float_test("isnan", np.isnan, lambda t, x: t.isnan(x))
isinf = _float_test("isinf", np.isinf, lambda t, x: t.isinf(x))
isfinite = _float_test("isfinite", np.isfinite, lambda t, x: t.isfinite(x))


LOGICAL_NOT = register_op(
    "logical_not", "data", pattern=OpPattern.ELEMWISE, flops_per_element=1,
    doc="The opposite truth value.",
)  # fmt: skip


@LOGICAL_NOT.type_relation
def _logical_not_type(attrs: None, data: TensorType) -> Type:
    return TensorType(data.shape, "bool")


@LOGICAL_NOT.reference
def _logical_not_reference(attrs: None, data: Array) -> Any:
    return np.logical_not(data)


@LOGICAL_NOT.compute
def _logical_not_compute(attrs: None, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    (x,) = inputs
    zero = te().const(0, x.dtype)
    if x.dtype == "bool":
        return [elementwise("T_logical_not", x.shape, lambda *i: ops.logical_not(x(*i)))]
    return [elementwise("T_logical_not", x.shape, lambda *i: ops.equal(x(*i), zero))]


@LOGICAL_NOT.make
def logical_not(data: ExprLike) -> Call:
    """Return the opposite truth value of each element."""
    return LOGICAL_NOT(data)


LOGICAL_NOT.sample_case((2, 3), dtypes=("bool",))

BITWISE_NOT = register_op(
    "bitwise_not", "data", pattern=OpPattern.ELEMWISE, flops_per_element=1,
    doc="All bits of an integer flipped.",
)  # fmt: skip


@BITWISE_NOT.type_relation
def _bitwise_not_type(attrs: None, data: TensorType) -> Type:
    need_integral("data", data)
    return data


@BITWISE_NOT.reference
def _bitwise_not_reference(attrs: None, data: Array) -> Any:
    return np.invert(data)


@BITWISE_NOT.compute
def _bitwise_not_compute(attrs: None, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    (x,) = inputs
    return [elementwise("T_bitwise_not", x.shape, lambda *i: ~x(*i))]


@BITWISE_NOT.make
def bitwise_not(data: ExprLike) -> Call:
    """Flip all bits of each element."""
    return BITWISE_NOT(data)


BITWISE_NOT.sample_case((2, 3), dtypes=("int32",), low=-9, high=9)


@node
class CastAttrs(Attrs):
    """The wanted dtype; `saturate`: beyond the range of a small float is its largest value."""

    dtype: str = "float32"
    saturate: bool = False


CAST = register_op(
    "cast", "data", attrs=CastAttrs, pattern=OpPattern.ELEMWISE, flops_per_element=1,
    doc="Each element converted: floats truncate to integers, integers wrap, bool is value != 0.",
)  # fmt: skip


@CAST.type_relation
def _cast_type(attrs: CastAttrs, data: TensorType) -> Type:
    return TensorType(data.shape, attrs.dtype)


@CAST.reference
def _cast_reference(attrs: CastAttrs, data: Array) -> Any:
    return small_types.convert(np.asarray(data), attrs.dtype, attrs.saturate)


@CAST.compute
def _cast_compute(attrs: CastAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    (x,) = inputs
    if dtypes.is_carried(x.dtype) or dtypes.is_carried(attrs.dtype):
        wanted, saturate = attrs.dtype, attrs.saturate

        def small(*i: PrimExpr) -> Any:
            return small_types.converted(x(*i), wanted, saturate)

        return [elementwise("T_cast", x.shape, small)]
    if attrs.dtype == "bool" and x.dtype != "bool":
        zero = te().const(0, x.dtype)
        return [elementwise("T_cast", x.shape, lambda *i: ops.not_equal(x(*i), zero))]
    return [elementwise("T_cast", x.shape, lambda *i: small_types.value_as(x(*i), attrs.dtype))]


@CAST.make
def cast(data: ExprLike, dtype: str, saturate: bool = False) -> Call:
    """Convert each element to `dtype`.

    What is beyond the range of a float of 8 bits or less becomes NaN or infinity, as the format has
    it, or with `saturate` its largest value.
    """
    return CAST(data, attrs=CastAttrs(dtypes.canonical(dtype), saturate))


CAST.sample_case((2, 3), attrs=CastAttrs("int32"), low=-9, high=9)
CAST.sample_case((2, 3), attrs=CastAttrs("float32"), dtypes=("int64",), low=-9, high=9)
CAST.sample_case((2, 3), attrs=CastAttrs("bool"), dtypes=("int8",), low=-1, high=1)

COPY = register_op(
    "copy", "data", pattern=OpPattern.ELEMWISE, doc="The same values in a new tensor."
)


@COPY.type_relation
def _copy_type(attrs: None, data: TensorType) -> Type:
    return data


@COPY.reference
def _copy_reference(attrs: None, data: Array) -> Any:
    return np.array(data)


@COPY.compute
def _copy_compute(attrs: None, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    (x,) = inputs
    return [elementwise("T_copy", x.shape, lambda *i: x(*i))]


@COPY.make
def copy(data: ExprLike) -> Call:
    """Copy the tensor."""
    return COPY(data)


COPY.sample_case((2, 3))

REINTERPRET = register_op(
    "reinterpret", "data", attrs=CastAttrs, pattern=OpPattern.ELEMWISE,
    doc="The same bits as another dtype of the same size.",
)  # fmt: skip


@REINTERPRET.type_relation
def _reinterpret_type(attrs: CastAttrs, data: TensorType) -> Type:
    if dtypes.bytes_of(attrs.dtype) != dtypes.bytes_of(data.dtype):
        raise BadArgument("dtype", f"{attrs.dtype} has another size than the data, {data}")
    return TensorType(data.shape, attrs.dtype)


@REINTERPRET.reference
def _reinterpret_reference(attrs: CastAttrs, data: Array) -> Any:
    return np.asarray(data, order="C").view(numpy_dtype(attrs.dtype))


@REINTERPRET.compute
def _reinterpret_compute(
    attrs: CastAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (x,) = inputs
    if x.dtype == "bool" or attrs.dtype == "bool":  # one byte that is 0 or 1
        return [elementwise("T_reinterpret", x.shape, lambda *i: x(*i).astype(attrs.dtype))]

    def element(*i: PrimExpr) -> Any:
        return ops.call_intrin(attrs.dtype, "reinterpret", x(*i))

    return [elementwise("T_reinterpret", x.shape, element)]


@REINTERPRET.make
def reinterpret(data: ExprLike, dtype: str) -> Call:
    """Read the bits of each element as `dtype`."""
    return REINTERPRET(data, attrs=CastAttrs(dtypes.canonical(dtype)))


REINTERPRET.sample_case((2, 3), attrs=CastAttrs("int32"))
REINTERPRET.sample_case((4,), attrs=CastAttrs("uint8"), dtypes=("int8",), low=-9, high=9)
