"""Random sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.errors import InvalidShapeError


class BlockMatrix:
    """A matrix in BSR: `data` (blocks, rows of one, columns of one), `indices`, `indptr`."""

    def __init__(self, data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> None:
        self.data, self.indices, self.indptr, self.shape = data, indices, indptr, shape

    def todense(self) -> np.ndarray[Any, Any]:
        """Return the whole matrix."""
        high, wide = self.data.shape[1:]
        rows = len(self.indptr) - 1
        made = np.zeros((rows, self.shape[1] // wide, high, wide), self.data.dtype)
        made[np.repeat(np.arange(rows), np.diff(self.indptr)), self.indices] = self.data
        return made.transpose(0, 2, 1, 3).reshape(self.shape)

    toarray = todense


def random_bsr_matrix(
    m: int, n: int, bs_r: int, bs_c: int, density: float, dtype: str
) -> BlockMatrix:
    """Return a random (m, n) matrix of blocks (bs_r, bs_c), of which a part `density` are stored.

    It has SciPy's attributes; ``scipy.sparse.bsr_matrix((s.data, s.indices, s.indptr))`` is one.
    """
    if m % bs_r or n % bs_c:
        raise InvalidShapeError(f"blocks of ({bs_r}, {bs_c}) do not divide ({m}, {n})")
    if not 0 <= density <= 1:
        raise InvalidShapeError(f"density is {density}, a part of 1")
    rows, columns = m // bs_r, n // bs_c
    count = int(density * m * n / (bs_r * bs_c)) + 1
    chosen = np.sort(np.random.choice(rows * columns, min(count, rows * columns), replace=False))
    data = np.random.randn(len(chosen), bs_r, bs_c).astype(dtype)
    starts = np.searchsorted(chosen // columns, np.arange(rows + 1))
    indices = (chosen % columns).astype("int32")
    return BlockMatrix(data, indices, starts.astype("int32"), (m, n))
