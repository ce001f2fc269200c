"""image.grid_sample: data read at positions that a second tensor holds, interpolated.

The law, per sample and channel: out[p] interpolates data at the coordinates grid[p], which run from
-1 (first element) to 1 (last) along each axis; grid's last axis lists them innermost axis first.
One formula serves the reference and the te compute; `NumpyArithmetic` and `TeArithmetic` supply
its arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay import op_registry
from slipway.relay.dims import is_open, size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, register_op
from slipway.relay.ops.checks import need_float, of_elements
from slipway.relay.ops.tensor import small_types
from slipway.relay.ops.tensor.tensors import NamedSteps, number, te
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike

METHODS = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
CUBIC_ALPHA = -0.75


@node
class GridSampleAttrs(Attrs):
    """How to interpolate, what lies outside, and whether -1 and 1 mean centres of end elements."""

    method: str = "bilinear"
    padding_mode: str = "zeros"
    align_corners: bool = True


GRID_SAMPLE = register_op(
    "image.grid_sample", "data", "grid", attrs=GridSampleAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    flops_per_element=20, doc="data (N, C, spatial) interpolated at the positions in grid.",
)  # fmt: skip


@GRID_SAMPLE.type_relation
@of_elements
def _type(attrs: GridSampleAttrs, data: TensorType, grid: TensorType) -> TensorType:
    need_float("data", data)
    need_float("grid", grid)
    spatial = data.rank - 2
    if grid.rank != data.rank or grid.shape[0] != data.shape[0] or grid.shape[-1] != spatial:
        raise BadArgument(
            "grid", f"must be (N, {spatial} extents, {spatial}) for {data}, got {grid}"
        )
    if attrs.method not in METHODS:
        raise BadArgument("method", f"is {attrs.method!r}; use one of {', '.join(METHODS)}")
    if attrs.padding_mode not in PADDINGS:
        raise BadArgument("padding_mode", f"is {attrs.padding_mode!r}; use {', '.join(PADDINGS)}")
    return TensorType((*data.shape[:2], *grid.shape[1:-1]), data.dtype)


def working_dtype(*dtypes: str) -> str:
    """Return what positions and weights are computed in: float64 beside float64, else float32."""
    return "float64" if "float64" in dtypes else "float32"


class NumpyArithmetic:
    """Arithmetic on arrays in `dtype`, for formulas shared with `TeArithmetic`."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.floor, self.rint = np.floor, np.rint
        self.minimum, self.maximum, self.where, self.abs = np.minimum, np.maximum, np.where, np.abs

    def number(self, value: float) -> Any:
        """A constant."""
        return np.asarray(value, self.dtype)[()]

    @staticmethod
    def whole(value: Any) -> Any:
        """An integer index."""
        return small_types.to_integer(value, "int32")

    def real(self, value: Any) -> Any:
        """The same in `dtype`."""
        return value.astype(self.dtype)

    @staticmethod
    def both(a: Any, b: Any) -> Any:
        """Whether both hold."""
        return a & b

    @staticmethod
    def named(value: Any) -> Any:
        """The same."""
        return value


class TeArithmetic:
    """Arithmetic on te expressions in `dtype`."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        t = te()
        self.floor, self.rint = t.floor, t.nearbyint
        self.minimum, self.maximum, self.where, self.abs = t.min, t.max, t.select, t.abs
        steps = NamedSteps()
        self.named, self.with_names = steps.name, steps.around

    def number(self, value: float) -> Any:
        """A constant."""
        return te().const(value, self.dtype)

    @staticmethod
    def whole(value: Any) -> Any:
        """An integer index; a NaN is 0."""
        return te().to_integer(value, "int32")

    def real(self, value: Any) -> Any:
        """The same in `dtype`."""
        return value.astype(self.dtype)

    @staticmethod
    def both(a: Any, b: Any) -> Any:
        """Whether both hold."""
        return te().all(a, b)


def elements(m: Any, size: Any, less: float = 0.0, times: float = 1.0) -> Any:
    """Return a number of elements without `less`, times a power of two; when open, at run time."""
    if not is_open(size):
        return m.number((size - less) * times)
    count = number(size, m.dtype)
    count = count - m.number(less) if less else count
    return m.named(count * m.number(times) if times != 1 else count)


def last_index(size: Any) -> Any:
    """Return the index of the last of so many elements."""
    return (size - 1).formula if is_open(size) else size - 1


class _Axis:
    """The taps along one axis: (index, weight, inside) for each element read."""

    def __init__(self, math: Any, attrs: GridSampleAttrs, size: Any) -> None:
        self.m, self.attrs, self.size = math, attrs, size
        self.low = 0.0 if attrs.align_corners else -0.5

    def elements(self, less: float, times: float = 1.0) -> Any:
        """The number of elements without `less`, times a power of two."""
        return elements(self.m, self.size, less, times)

    @property
    def high(self) -> Any:
        """The coordinate at which the data ends."""
        return self.elements(1.0 + self.low)

    def reflected(self, x: Any) -> Any:
        """Fold a coordinate back and forth between the ends."""
        m, single = self.m, self.attrs.align_corners  # then one element leaves no span
        if single and self.size == 1:
            return x * m.number(0.0)
        span = self.elements(1.0 if single else 0.0)
        inverse = m.named(m.number(1.0) / span)
        distance = m.named(m.abs(x - m.number(self.low)))
        periods = m.named(m.floor(distance * inverse))
        folded = m.named(distance - periods * span)
        even = periods - m.number(2.0) * m.floor(periods * m.number(0.5)) < m.number(0.5)
        found = m.where(even, folded + m.number(self.low), self.high - folded)
        if single and is_open(self.size):
            return m.where(span > m.number(0.0), found, m.number(0.0))
        return found

    def coordinate(self, g: Any) -> Any:
        """The position in elements of grid value `g`, brought inside for border and reflection."""
        m = self.m
        if self.attrs.align_corners:
            x = (g + m.number(1.0)) * self.elements(1.0, 0.5)
        else:
            x = (g + m.number(1.0)) * self.elements(0.0, 0.5) - m.number(0.5)
        if self.attrs.method == "nearest":
            x = m.rint(x)
        x = m.named(x)
        if self.attrs.method != "bicubic":
            if self.attrs.padding_mode == "border":
                x = m.minimum(m.maximum(x, m.number(0.0)), self.elements(1.0))
            elif self.attrs.padding_mode == "reflection":
                outside = m.where(x < m.number(self.low), m.number(1.0), m.number(0.0))
                outside = m.where(x > self.high, m.number(1.0), outside)
                x = m.where(outside > m.number(0.5), self.reflected(x), x)
        return x

    def tap(self, position: Any) -> tuple[Any, Any]:
        """(index, inside) of an element, by the padding mode; `inside` None means surely."""
        m = self.m
        if self.attrs.padding_mode == "reflection":
            folded = m.named(m.rint(self.reflected(m.named(m.real(position)))))
            position = m.whole(m.minimum(m.maximum(folded, m.number(0.0)), self.elements(1.0)))
            return position, None
        last = last_index(self.size)
        index = m.minimum(m.maximum(position, 0), last)
        if self.attrs.padding_mode == "border":
            return index, None
        return index, m.both(position >= 0, position <= last)

    def taps(self, g: Any) -> list[tuple[Any, Any, Any]]:
        m = self.m
        x = m.named(self.coordinate(g))
        if self.attrs.method == "nearest":
            index, inside = self.tap(m.whole(m.rint(x)))
            return [(index, m.number(1.0), inside)]
        low = m.named(m.floor(x))
        base, fraction, one = m.named(m.whole(low)), m.named(x - low), m.number(1.0)
        if self.attrs.method == "bilinear":
            weights = [(0, one - fraction), (1, fraction)]
        else:
            weights = [(t, self.cubic(fraction, t)) for t in (-1, 0, 1, 2)]
        found = []
        for step, weight in weights:
            index, inside = self.tap(m.named(base + step))
            found.append((m.named(index), m.named(weight), inside))
        return found

    def cubic(self, fraction: Any, tap: int) -> Any:
        """Keys' kernel at the distance of a tap."""
        n, a = self.m.number, CUBIC_ALPHA
        d = fraction - n(float(tap)) if tap <= 0 else n(float(tap)) - fraction
        if tap in (0, 1):
            return ((n(a + 2) * d - n(a + 3)) * d) * d + n(1.0)
        return ((n(a) * d - n(5 * a)) * d + n(8 * a)) * d - n(4 * a)


def _interpolate(
    math: Any, attrs: GridSampleAttrs, size: Sequence[int], coordinates: Sequence[Any], read: Any
) -> Any:
    """Sum the weighted elements around one position; ``read(indices)`` gives an element."""
    axes = [_Axis(math, attrs, extent).taps(g) for extent, g in zip(size, coordinates, strict=True)]
    total: Any = None
    for corner in product(*axes):
        value = read([index for index, _, _ in corner])
        for _, weight, inside in corner:
            value = value * weight
            if inside is not None:
                value = math.where(inside, value, math.number(0.0))
        total = value if total is None else total + value
    return total


@GRID_SAMPLE.reference
def _reference(attrs: GridSampleAttrs, data: Any, grid: Any) -> Any:
    spatial = data.ndim - 2
    math = NumpyArithmetic(working_dtype(data.dtype.name, grid.dtype.name))
    coordinates = [math.real(grid[..., spatial - 1 - a])[:, None] for a in range(spatial)]
    ones = (1,) * spatial
    n = np.arange(data.shape[0]).reshape(-1, 1, *ones)
    c = np.arange(data.shape[1]).reshape(1, -1, *ones)
    wide = math.real(data)
    found = _interpolate(
        math, attrs, data.shape[2:], coordinates, lambda where: wide[(n, c, *where)]
    )
    return found.astype(data.dtype)


@GRID_SAMPLE.compute
def _compute(attrs: GridSampleAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    data, grid = inputs
    (out,) = out_types
    spatial = out.rank - 2
    size = [size_of(d) for d in data.shape[2:]]
    math = TeArithmetic(working_dtype(data.dtype, grid.dtype))

    def element(*i: Any) -> Any:
        coordinates = [math.real(grid(i[0], *i[2:], spatial - 1 - a)) for a in range(spatial)]
        found = _interpolate(
            math, attrs, size, coordinates,
            lambda where: math.real(data(i[0], i[1], *where)),
        )  # fmt: skip
        return math.with_names(found.astype(out.dtype))

    return [te().compute(out.shape, element, name="grid_sample", tag="injective")]


Taps = list[list[tuple[Any, Any, bool]]]  # of each axis: index, weight, whether it may be outside


def positions(attrs: GridSampleAttrs, size: Sequence[int], grid: Any, dtype: str) -> Taps:
    """Return tensors (N, spatial) of the taps along each axis; an index outside is -1."""
    math = TeArithmetic(working_dtype(dtype, grid.dtype))
    shape = grid.shape[:-1]

    def tap(axis: int, number: int, part: int) -> Any:
        def element(*i: Any) -> Any:
            position = math.real(grid(*i, len(size) - 1 - axis))
            index, weight, inside = _Axis(math, attrs, size[axis]).taps(position)[number]
            if part:
                return math.with_names(weight)
            return math.with_names(index if inside is None else math.where(inside, index, -1))

        name = f"{'weight' if part else 'index'}{axis}_{number}"
        return te().compute(shape, element, name=name, tag="sampled_position")

    outside = attrs.padding_mode == "zeros"
    count = {"nearest": 1, "bilinear": 2, "bicubic": 4}[attrs.method]
    return [[(tap(a, n, 0), tap(a, n, 1), outside) for n in range(count)] for a in range(len(size))]


def mixed(taps: Taps, position: Sequence[Any], read: Any, dtype: str) -> Any:
    """Sum what lies around one position by taps of `positions`; ``read(indices)`` gives it."""
    total: Any = None
    for corner in product(*taps):
        indices = [index(*position) for index, _, _ in corner]
        ends = [outside for _, _, outside in corner]
        value = read([te().max(i, 0) if o else i for i, o in zip(indices, ends, strict=True)])
        for _, weight, _ in corner:
            value = value * weight(*position).astype(dtype)
        inside = [i >= 0 for i, o in zip(indices, ends, strict=True) if o]
        if inside:
            value = te().select(te().all(*inside), value, te().const(0, dtype))
        total = value if total is None else total + value
    return total


@GRID_SAMPLE.make
def grid_sample(
    data: ExprLike, grid: ExprLike, method: str = "bilinear", layout: str = "NCHW",
    padding_mode: str = "zeros", align_corners: bool = True,
) -> Call:  # fmt: skip
    """Interpolate `data` at the positions in `grid`, whose positions lie along the LAST axis."""
    images = as_expr(data)
    wanted = "NCDHW" if images.tensor_type.rank == 5 else "NCHW"
    if layout not in (wanted, "NCHW"):  # of volumes the default means their layout
        raise BadArgument(
            "layout", f"is {layout!r}, but this data is sampled in {wanted}: transpose first"
        )
    attrs = GridSampleAttrs(method, padding_mode, bool(align_corners))
    return GRID_SAMPLE(images, grid, attrs=attrs)


def classic_grid_sample(
    data: Any, grid: Any, method: str = "bilinear", layout: str = "NCHW",
    padding_mode: str = "zeros", align_corners: bool = True,
) -> Any:  # fmt: skip
    """Interpolate `data` at the positions in `grid`, (N, 2, H, W) as `affine_grid` gives them.

    The positions lie along axis 1, x first; of volumes they are (N, 3, D, H, W).
    """
    given = as_expr(grid)
    rank = given.tensor_type.rank
    last = op_registry.make("transpose")(given, (0, *range(2, rank), 1)) if rank > 1 else given
    return grid_sample(data, last, method, layout, padding_mode, align_corners)


def _case(rng: np.random.Generator) -> list[Any]:
    return [
        rng.standard_normal((1, 2, 4, 5)).astype(np.float32),
        rng.uniform(-1.4, 1.4, (1, 3, 3, 2)).astype(np.float32),
    ]


for _method, _padding in product(METHODS, PADDINGS):
    for _corners in (True, False):
        GRID_SAMPLE.sample_case(attrs=GridSampleAttrs(_method, _padding, _corners), make=_case)
