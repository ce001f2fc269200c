"""Complex tensors: pairs of real ones, while a program is imported.

Three kinds of operators know them.  Most are linear in them and move or sum elements: they are
converted for the real parts, then for the imaginary ones.  Products of two are converted for each
pair of parts.  The rest has converters of its own here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.angle import angle_of, length_of
from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.torch.converters import Converter, NodeView, cast, converter, like, number
from slipway.relay.expr import Constant, Expr

COMPLEX = {"complex64": "float32", "complex128": "float64", "complex32": "float16"}

BY_PARTS = {
    "_reshape_alias", "_unsafe_index", "_unsafe_view", "add", "alias", "as_strided", "broadcast_to",
    "cat", "chunk", "clone", "concat", "contiguous", "cumsum", "detach", "diagonal", "expand",
    "expand_as", "expand_copy", "flatten", "flip", "gather", "index", "index_put", "index_select",
    "lift_fresh", "lift_fresh_copy", "mT", "masked_fill", "mean", "narrow", "neg", "numpy_T", "pad",
    "permute", "permute_copy", "ravel", "repeat", "repeat_interleave", "reshape", "resolve_neg",
    "roll", "rsub", "select", "select_copy", "select_scatter", "slice", "slice_copy",
    "slice_scatter", "split", "split_copy", "split_with_sizes", "split_with_sizes_copy", "squeeze",
    "squeeze_copy", "stack", "sub", "sum", "swapaxes", "t", "t_copy", "tensor_split", "tile",
    "transpose", "transpose_copy", "tril", "triu", "unbind", "unbind_copy", "unflatten", "unfold",
    "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "unsqueeze", "unsqueeze_copy",
    "view", "view_as", "view_copy", "where", "constant_pad_nd", "zeros_like", "new_zeros", "zeros",
    "full", "full_like", "new_full", "scalar_tensor", "scatter", "scatter_add", "index_add",
    "index_copy", "fill", "copy", "empty", "empty_like",
}  # fmt: skip
PRODUCTS = {"mul", "mm", "bmm", "matmul", "dot", "mv", "linear"}


@dataclass(frozen=True)
class Complex:
    """The real and the imaginary part: tensors of one type."""

    real: Expr
    imag: Expr


def is_complex(value: Any) -> bool:
    """Return whether a converted argument is a complex tensor or number, or holds one."""
    if isinstance(value, list):
        return any(map(is_complex, value))
    return isinstance(value, (Complex, complex))


def complex_constant(array: np.ndarray[Any, Any]) -> Complex:
    """Return the complex constant with an array's values."""
    return Complex(*(Constant(np.asarray(a, order="C")) for a in (array.real, array.imag)))


def convert_complex(convert: Converter | None, view: NodeView) -> Any:
    """Convert a node among whose arguments or results a tensor is complex."""
    special = OWN.get(view.kind)
    if special is not None:
        return special(view)
    if convert is not None and view.kind in BY_PARTS:
        return _by_parts(convert, view)
    if convert is not None and view.kind in PRODUCTS:
        return _product(convert, view)
    raise UnsupportedNode("it is not served for complex tensors: compute with view_as_real(x)")


def _part(value: Any, imaginary: bool) -> Any:
    """Return a part of an argument: the imaginary one of what is real is zero."""
    if isinstance(value, list):
        return [_part(v, imaginary) for v in value]
    if isinstance(value, (Complex, complex)):
        return value.imag if imaginary else value.real
    if not imaginary:
        return value
    if isinstance(value, Expr):
        return relay.zeros_like(value)
    return 0 if isinstance(value, (int, float)) else value


DATA = (
    "self", "other", "tensors", "src", "source", "values", "value", "fill_value", "s", "input",
    "mat2", "vec", "tensor", "weight",
)  # fmt: skip


def _side(view: NodeView, imaginary: bool, names: Mapping[str, bool] | None = None) -> NodeView:
    """Return the node with a part of each argument that is data; `names` may choose per name."""
    chosen = names or {}
    arguments = {
        name: _part(value, chosen.get(name, imaginary)) if name in DATA else value
        for name, value in view.arguments.items()
    }
    return NodeView(view.kind, view.name, arguments, view.fakes, view.outputs)


def _by_parts(convert: Converter, view: NodeView) -> Any:
    real, imag = (convert(_side(view, imaginary)) for imaginary in (False, True))
    if isinstance(real, (list, relay.TupleWrapper)):
        return [Complex(r, i) for r, i in zip(real, imag, strict=True)]
    return Complex(real, imag)


def _product(convert: Converter, view: NodeView) -> Complex:
    """The real parts' product less that of the imaginary ones; what mixes them is imaginary."""
    bias = view.arguments.get("bias")
    if bias is not None:
        bare = NodeView(view.kind, view.name, {**view.arguments, "bias": None}, {}, view.outputs)
        made, added = _product(convert, bare), _given(view, "bias")
        return Complex(relay.add(made.real, added.real), relay.add(made.imag, added.imag))
    factors = [n for n in DATA if n in view.arguments and _is_data(view.arguments[n])]
    if len(factors) != 2:
        raise view.unsupported(f"a complex product of {len(factors)} tensors")

    def of(first: bool, second: bool) -> Expr | None:
        chosen = dict(zip(factors, (first, second), strict=True))
        if any(want and not is_complex(view.arguments[n]) for n, want in chosen.items()):
            return None
        made: Expr = convert(_side(view, False, chosen))
        return made

    return _combined(of)


def _is_data(value: Any) -> bool:
    return isinstance(value, (Expr, Complex, complex, int, float)) and not isinstance(value, bool)


def _combined(of: Callable[[bool, bool], Expr | None]) -> Complex:
    """Return the complex product from the products of parts; None stands for zero."""
    plain, both = of(False, False), of(True, True)
    mixed = [x for x in (of(False, True), of(True, False)) if x is not None]
    assert plain is not None
    real = plain if both is None else relay.subtract(plain, both)
    imag = mixed[0] if len(mixed) == 1 else relay.add(*mixed)
    return Complex(real, imag)


# -- converters of their own ---------------------------------------------------------------------

OWN: dict[str, Callable[[NodeView], Any]] = {}


def own(*names: str) -> Callable[[Callable[[NodeView], Any]], Callable[[NodeView], Any]]:
    """Decorator: enter a converter for operators whose arguments or results are complex."""

    def enter(function: Callable[[NodeView], Any]) -> Callable[[NodeView], Any]:
        for name in names:
            OWN[name] = function
        return function

    return enter


def _given(node: NodeView, name: str = "self", dtype: str = "") -> Complex:
    """Return an argument as a complex value; of a real one the imaginary part is zero."""
    value = node.arguments[name]
    if isinstance(value, Complex):
        return value
    if isinstance(value, Expr):
        real = cast(value, dtype or value.tensor_type.dtype)
        return Complex(real, number(0, real.tensor_type.dtype))
    return Complex(number(complex(value).real, dtype), number(complex(value).imag, dtype))


def parts(node: NodeView, name: str = "self") -> tuple[Expr, Expr]:
    """Return the real and the imaginary part of an argument."""
    found = _given(node, name)
    return found.real, found.imag


@own("abs")
def absolute(node: NodeView) -> Any:
    """The distance from zero."""
    return length_of(*parts(node))


@own("angle")
def angle(node: NodeView) -> Any:
    """The angle from the real axis."""
    real, imag = parts(node)
    return angle_of(imag, real)


@own("real", "imag")
def part(node: NodeView) -> Any:
    """One part."""
    return parts(node)[node.kind == "imag"]


@own("view_as_real", "view_as_real_copy")
def view_as_real(node: NodeView) -> Any:
    """Both parts along a new last axis."""
    return relay.stack(list(parts(node)), -1)


@own("view_as_complex", "view_as_complex_copy")
def view_as_complex(node: NodeView) -> Any:
    """The last axis holds both parts."""
    real, imag = relay.split(node.input(), 2, -1)
    return Complex(relay.squeeze(real, [-1]), relay.squeeze(imag, [-1]))


@own("complex")
def complex_(node: NodeView) -> Any:
    """A number from its parts."""
    real, imag = node.input("real"), node.input("imag")
    return Complex(*(_spread(x, node.out.shape) for x in (real, imag)))


@own("polar")
def polar(node: NodeView) -> Any:
    """A number from its length and angle."""
    length, angle = node.input("abs"), node.input("angle")
    made = (relay.multiply(length, f(angle)) for f in (relay.cos, relay.sin))
    return Complex(*(_spread(x, node.out.shape) for x in made))


def _spread(x: Expr, shape: tuple[int, ...]) -> Expr:
    return x if x.tensor_type.shape == shape else relay.broadcast_to(x, shape)


@own("_conj", "conj", "conj_physical", "_conj_physical")
def conjugate(node: NodeView) -> Any:
    """The imaginary part negated."""
    real, imag = parts(node)
    return Complex(real, relay.negative(imag))


@own("resolve_conj")
def same(node: NodeView) -> Any:
    """The number itself."""
    return _given(node)


@own("_to_copy", "to")
def convert(node: NodeView) -> Any:
    """Another width; a real number becomes a complex one, and of a complex one the real part."""
    dtype = node.out.dtype
    wanted = str(node.arguments.get("dtype")).removeprefix("torch.")
    real, imag = parts(node)
    if wanted in ("None", *COMPLEX):
        return Complex(cast(real, dtype), _spread(cast(imag, dtype), node.out.shape))
    return cast(real, dtype)


@own("exp")
def exponential(node: NodeView) -> Any:
    """The exponential of the real part, rotated by the imaginary one."""
    real, imag = parts(node)
    grown = relay.exp(real)
    return Complex(relay.multiply(grown, relay.cos(imag)), relay.multiply(grown, relay.sin(imag)))


@own("log")
def logarithm(node: NodeView) -> Any:
    """The logarithm of the length, and the angle."""
    return logarithm_of(*parts(node))


def logarithm_of(real: Expr, imag: Expr) -> Complex:
    """Return the natural logarithm of a number."""
    return Complex(relay.log(length_of(real, imag)), angle_of(imag, real))


@own("sgn")
def direction(node: NodeView) -> Any:
    """The number divided by its length; zero stays."""
    real, imag = parts(node)
    length = length_of(real, imag)
    whole = relay.where(relay.equal(length, like(0, length)), like(1, length), length)
    return Complex(relay.divide(real, whole), relay.divide(imag, whole))


def _times(a: Complex, b: Complex) -> Complex:
    real = relay.subtract(relay.multiply(a.real, b.real), relay.multiply(a.imag, b.imag))
    imag = relay.add(relay.multiply(a.real, b.imag), relay.multiply(a.imag, b.real))
    return Complex(real, imag)


@own("div", "reciprocal", "true_divide")
def divide(node: NodeView) -> Any:
    """The product with the conjugate of the divisor, over its squared length."""
    dtype = node.out.dtype
    if node.kind == "reciprocal":
        above, below = Complex(number(1, dtype), number(0, dtype)), _given(node)
    elif is_complex(node.arguments["other"]):
        above, below = _given(node, "self", dtype), _given(node, "other", dtype)
    else:
        given, divisor = _given(node), node.as_tensor(node.arguments["other"], dtype)
        return Complex(relay.divide(given.real, divisor), relay.divide(given.imag, divisor))
    return divided(above, below)


def divided(above: Complex, below: Complex) -> Complex:
    """Return the quotient of two numbers."""
    # Divided by the divisor's larger part first, its squares neither overflow nor vanish.
    size = relay.maximum(relay.abs(below.real), relay.abs(below.imag))
    unit = Complex(relay.divide(below.real, size), relay.negative(relay.divide(below.imag, size)))
    square = relay.add(relay.multiply(unit.real, unit.real), relay.multiply(unit.imag, unit.imag))
    found, scale = _times(above, unit), relay.multiply(square, size)
    return Complex(relay.divide(found.real, scale), relay.divide(found.imag, scale))


@own("pow", "square")
def power(node: NodeView) -> Any:
    """Whole powers, by products."""
    exponent = 2 if node.kind == "square" else node.arguments["exponent"]
    if not isinstance(exponent, (int, float)) or exponent not in range(1, 17):
        raise node.unsupported(f"the power {exponent} of a complex tensor; 1 to 16 are served")
    base = found = _given(node)
    for _ in range(int(exponent) - 1):
        found = _times(found, base)
    return found


@own("eq", "ne")
def compare(node: NodeView) -> Any:
    """Whether both parts are equal."""
    dtype = next(v.real.tensor_type.dtype for v in node.arguments.values() if is_complex(v))
    left, right = _given(node, "self", dtype), _given(node, "other", dtype)
    if node.kind == "eq":
        return relay.logical_and(
            relay.equal(left.real, right.real), relay.equal(left.imag, right.imag)
        )
    return relay.logical_or(
        relay.not_equal(left.real, right.real), relay.not_equal(left.imag, right.imag)
    )


@converter("view_as_complex", "complex", "polar", "view_as_real", "real", "imag", "angle")
def needs_complex(node: NodeView) -> Any:
    """Of a real tensor: `real` is itself, the angle is 0 or pi."""
    x = node.input()
    if node.kind == "real":
        return x
    if node.kind == "angle":
        return angle_of(like(0, x), cast(x, node.out.dtype))
    raise node.unsupported("it is served for complex tensors only")
