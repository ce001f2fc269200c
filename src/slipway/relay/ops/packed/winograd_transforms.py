"""The transforms of Winograd's F(2x2, 3x3) and F(4x4, 3x3).

The matrices are those of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016
(interpolation points 0, 1, -1 and infinity), for tiles of four with the points 0, NEAR, -NEAR, FAR,
-FAR and infinity in place of 0, 1, -1, 2, -2: a sixth of the largest error (Barabasz et al., "Error
analysis and improving the accuracy of Winograd convolution", 2020, on choosing points).  Those of
data and results also stand as formulas, written so that what rows have in common is computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slipway.relay.ops.tensor.tensors import te

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr

Matrix = tuple[tuple[float, ...], ...]
Rows = Callable[[list[Any]], list[Any]]


@dataclass(frozen=True)
class Filtering:
    """F(m x m, 3x3): B^T as `input`, A^T as `output`, G as `kernel`.

    `input_rows` gives the rows of B^T d for the rows d[0], d[1], ...; `output_rows` those of A^T.
    """

    tile: int  # m: results along each side of a tile
    input: Matrix
    output: Matrix
    kernel: Matrix
    input_rows: Rows
    output_rows: Rows
    input_steps: int  # additions and multiply-adds of `input_rows`, for each element of a row
    output_steps: int

    @property
    def side(self) -> int:
        """Elements along each side of a transformed tile."""
        return self.tile + 2


def row_of(row: PrimExpr, formulas: list[Any]) -> Any:
    """Return the formula of that row; `row` is a loop that gets unrolled."""
    chosen = formulas[-1]
    for index in range(len(formulas) - 2, -1, -1):
        chosen = te().if_then_else(row == index, formulas[index], chosen)
    return chosen


def _input_rows_2(d: list[Any]) -> list[Any]:
    return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]


def _output_rows_2(m: list[Any]) -> list[Any]:
    return [m[0] + m[1] + m[2], m[1] - m[2] - m[3]]


NEAR, FAR = 0.75, 1.5  # their squares and products are exact
NEAR2, FAR2 = NEAR * NEAR, FAR * FAR


def _input_rows_4(d: list[Any]) -> list[Any]:
    near_even, near_odd = d[4] - d[2] * FAR2, d[3] - d[1] * FAR2
    far_even, far_odd = d[4] - d[2] * NEAR2, d[3] - d[1] * NEAR2
    return [
        d[0] * (NEAR2 * FAR2) - d[2] * (NEAR2 + FAR2) + d[4],
        near_even + near_odd * NEAR, near_even - near_odd * NEAR,
        far_even + far_odd * FAR, far_even - far_odd * FAR,
        d[1] * (NEAR2 * FAR2) - d[3] * (NEAR2 + FAR2) + d[5],
    ]  # fmt: skip


def _output_rows_4(m: list[Any]) -> list[Any]:
    s1, d1, s2, d2 = m[1] + m[2], m[1] - m[2], m[3] + m[4], m[3] - m[4]
    return [
        m[0] + s1 + s2, d1 * NEAR + d2 * FAR, s1 * NEAR2 + s2 * FAR2,
        d1 * NEAR**3 + d2 * FAR**3 + m[5],
    ]  # fmt: skip


def _kernel_row(point: float, others: float) -> tuple[float, ...]:
    """Return the row of G of a `point` whose square is not `others`, that of the other two."""
    scale = 2 * point * point * (point * point - others)
    return 1 / scale, point / scale, point * point / scale


FILTERINGS = {
    2: Filtering(
        tile=2,
        input=((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
        output=((1, 1, 1, 0), (0, 1, -1, -1)),
        kernel=((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
        input_rows=_input_rows_2,
        output_rows=_output_rows_2,
        input_steps=4,
        output_steps=4,
    ),
    4: Filtering(
        tile=4,
        input=(
            (NEAR2 * FAR2, 0, -NEAR2 - FAR2, 0, 1, 0),
            (0, -NEAR * FAR2, -FAR2, NEAR, 1, 0),
            (0, NEAR * FAR2, -FAR2, -NEAR, 1, 0),
            (0, -FAR * NEAR2, -NEAR2, FAR, 1, 0),
            (0, FAR * NEAR2, -NEAR2, -FAR, 1, 0),
            (0, NEAR2 * FAR2, 0, -NEAR2 - FAR2, 0, 1),
        ),
        output=(
            (1, 1, 1, 1, 1, 0),
            (0, NEAR, -NEAR, FAR, -FAR, 0),
            (0, NEAR2, NEAR2, FAR2, FAR2, 0),
            (0, NEAR**3, -(NEAR**3), FAR**3, -(FAR**3), 1),
        ),
        kernel=(
            (1 / (NEAR2 * FAR2), 0, 0),
            _kernel_row(NEAR, FAR2),
            _kernel_row(-NEAR, FAR2),
            _kernel_row(FAR, NEAR2),
            _kernel_row(-FAR, NEAR2),
            (0, 0, 1),
        ),
        input_rows=_input_rows_4,
        output_rows=_output_rows_4,
        input_steps=12,
        output_steps=12,
    ),
}
