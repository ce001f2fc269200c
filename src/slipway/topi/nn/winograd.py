"""Winograd convolutions of stride 1, their matrices by Cook and Toom's construction."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from slipway.errors import InvalidShapeError
from slipway.ir import ops
from slipway.te import reduction as R
from slipway.te.declare import compute
from slipway.topi.nn.padding import pad
from slipway.topi.nn.windows import sides, spread
from slipway.topi.products import check_equal
from slipway.topi.utils import get_const_int

if TYPE_CHECKING:
    from slipway.ir.expr import ShapeLike
    from slipway.te.tensor import Tensor

Matrix = list[list[float]]

# Small numbers first: the larger the points, the more the result rounds.
_POINTS = tuple(Fraction(p) for p in ("0", "1", "-1", "2", "-2", "1/2", "-1/2", "4", "-4", "1/4"))


def winograd_transform_matrices(tile_size: int, kernel_size: int) -> tuple[Matrix, Matrix, Matrix]:
    """Return (A^T, B^T, G) of F(tile_size, kernel_size): A^T ((G g) * (B^T d)) filters d by g."""
    if not 1 < tile_size < 9 or not 1 < kernel_size < 8:
        raise InvalidShapeError(
            f"Winograd of tiles of {tile_size} and kernels of {kernel_size}: tiles are 2 to 8 "
            "elements wide, kernels 2 to 7"
        )
    size = tile_size + kernel_size - 1
    if size - 1 > len(_POINTS):
        raise InvalidShapeError(
            f"Winograd of tiles of {tile_size} and kernels of {kernel_size} needs {size - 1} "
            f"points, and there are {len(_POINTS)}: take smaller tiles"
        )
    points = _POINTS[: size - 1]
    output = [[p**i for p in points] + [Fraction(i == tile_size - 1)] for i in range(tile_size)]
    rows, kernel = [], []
    for point in points:
        others = [q for q in points if q != point]
        scale = Fraction(1)
        for q in others:
            scale *= point - q
        kernel.append([point**k / scale for k in range(kernel_size)])
        rows.append([*_coefficients(others), Fraction(0)])
    kernel.append([Fraction(k == kernel_size - 1) for k in range(kernel_size)])
    rows.append(_coefficients(points))
    return _floats(output), _floats(rows), _floats(kernel)


def _coefficients(roots: Sequence[Fraction]) -> list[Fraction]:
    """Return the coefficients of the polynomial with these roots, that of x^0 first."""
    found = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *found]
        found = [s - root * f for s, f in zip(shifted, [*found, Fraction(0)], strict=True)]
    return found


def _floats(matrix: Sequence[Sequence[Fraction]]) -> Matrix:
    return [[float(value) for value in row] for row in matrix]


def _transformed(row: Any, matrix: Matrix, values: list[Any], dtype: str) -> Any:
    """Return element `row`, a loop, of the matrix times the vector of values."""
    formulas = []
    for line in matrix:
        terms = [
            v if factor == 1 else ops.mul(v, ops.const(factor, dtype))
            for factor, v in zip(line, values, strict=True)
            if factor
        ]
        total = terms[0]
        for term in terms[1:]:
            total = ops.add(total, term)
        formulas.append(total)
    chosen = formulas[-1]
    for number in range(len(formulas) - 2, -1, -1):
        chosen = ops.if_then_else(ops.equal(row, number), formulas[number], chosen)
    return chosen


def _both_ways(
    data: Tensor, matrix: Matrix, sizes: tuple[int, int], name: str, dtype: str
) -> Tensor:
    """Return M X M^T for the first two dimensions X of `data`."""
    made, width = sizes
    half = compute(
        (made, width, *data.shape[2:]),
        lambda i, j, *rest: _transformed(
            i, matrix, [data(k, j, *rest) for k in range(width)], dtype
        ),
        name=f"{name}_rows",
    )
    whole: Tensor = compute(
        (made, made, *data.shape[2:]),
        lambda i, j, *rest: _transformed(
            j, matrix, [half(i, k, *rest) for k in range(width)], dtype
        ),
        name=name,
    )
    return whole


def conv2d_winograd_weight_transform(kernel: Tensor, tile_size: int) -> Tensor:
    """Return a kernel (O, I, K, K) as (tile + K - 1, tile + K - 1, O, I)."""
    if kernel.ndim != 4:
        raise InvalidShapeError(f"a kernel of Winograd's is (O, I, K, K), not {kernel.shape}")
    size = get_const_int(kernel.shape[3])
    check_equal("winograd: height and width of the kernel", kernel.shape[2], size)
    _, _, matrix = winograd_transform_matrices(tile_size, size)
    first = compute(
        (size, size, kernel.shape[0], kernel.shape[1]),
        lambda i, j, o, c: kernel(o, c, i, j),
        name="kernel_of_positions",
    )
    alpha = tile_size + size - 1
    return _both_ways(first, matrix, (alpha, size), "transform_weight", kernel.dtype)


def conv2d_winograd_nhwc(
    data: Tensor,
    weight: Tensor,
    strides: ShapeLike,
    padding: ShapeLike,
    dilation: ShapeLike,
    out_dtype: str | None = None,
    pre_computed: bool = False,
    tile_size: int = 4,
) -> Tensor:
    """Return the convolution of data (N, H, W, I) with a kernel (K, K, I, O).

    With `pre_computed` the kernel is transformed: (tile + K - 1, tile + K - 1, I, O).
    """
    if data.ndim != 4 or weight.ndim != 4:
        raise InvalidShapeError(
            f"conv2d_winograd_nhwc of data {data.shape} and a kernel {weight.shape}: both have "
            "four dimensions"
        )
    if set(spread(strides, 2, "stride")) != {1} or set(spread(dilation, 2, "dilation")) != {1}:
        raise InvalidShapeError(
            f"conv2d_winograd_nhwc has strides and dilation of 1, not {strides} and {dilation}: "
            "take conv2d_nhwc"
        )
    check_equal("winograd: height and width of the kernel", weight.shape[0], weight.shape[1])
    check_equal("winograd: channels of data and kernel", data.shape[3], weight.shape[2])
    dtype = out_dtype or data.dtype
    size = get_const_int(weight.shape[0]) - (tile_size - 1 if pre_computed else 0)
    to_result, to_tile, to_kernel = winograd_transform_matrices(tile_size, size)
    alpha = tile_size + size - 1
    batch, height, width, channels = (get_const_int(n) for n in data.shape)
    before, after = sides(padding, [size, size])
    out_h, out_w = (
        n + get_const_int(b) + get_const_int(a) - size + 1
        for n, b, a in zip((height, width), before, after, strict=True)
    )
    if out_h < 1 or out_w < 1:
        raise InvalidShapeError(
            f"conv2d_winograd_nhwc: data {data.shape} is smaller than a kernel of {size}"
        )
    rows, columns = -(-out_h // tile_size), -(-out_w // tile_size)
    more = [rows * tile_size - out_h, columns * tile_size - out_w]
    ends = [get_const_int(a) + extra for a, extra in zip(after, more, strict=True)]
    padded = pad(data, [0, *before, 0], [0, *ends, 0])
    tiles = compute(
        (alpha, alpha, batch * rows * columns, channels),
        lambda y, x, p, c: padded(
            p // (rows * columns),
            p // columns % rows * tile_size + y,
            p % columns * tile_size + x,
            c,
        ).astype(dtype),
        name="input_tile",
    )
    spectrum = _both_ways(tiles, to_tile, (alpha, alpha), "data_pack", dtype)
    if pre_computed:
        kernel = weight
    else:
        kernel = _both_ways(weight, to_kernel, (alpha, size), "transform_weight", weight.dtype)
    axis = R.reduce_axis((0, channels), "ci")
    products = compute(
        (alpha, alpha, batch * rows * columns, weight.shape[3]),
        lambda y, x, p, o: R.sum(
            spectrum(y, x, p, axis.var) * kernel(y, x, axis.var, o).astype(dtype), axis=axis
        ),
        name="bgemm",
    )
    results = _both_ways(products, to_result, (tile_size, alpha), "inverse", dtype)
    made: Tensor = compute(
        (batch, out_h, out_w, weight.shape[3]),
        lambda n, h, w, o: results(
            h % tile_size,
            w % tile_size,
            n * (rows * columns) + h // tile_size * columns + w // tile_size,
            o,
        ),
        name="conv2d_winograd",
        tag="conv2d_winograd_nhwc",
    )
    return made


def conv2d_winograd_nhwc_without_weight_transform(
    data: Tensor,
    weight: Tensor,
    strides: ShapeLike,
    padding: ShapeLike,
    dilation: ShapeLike,
    out_dtype: str | None = None,
) -> Tensor:
    """Return `conv2d_winograd_nhwc` of a kernel that is transformed."""
    return conv2d_winograd_nhwc(data, weight, strides, padding, dilation, out_dtype, True)
