"""The transforms of Winograd's filterings: right, as formulas too, and exact to a few roundings."""

import numpy as np
import pytest

from slipway.relay.ops.packed.winograd_transforms import FILTERINGS


@pytest.mark.parametrize("tile", FILTERINGS)
def test_they_give_the_correlation(tile):
    filtering, rng = FILTERINGS[tile], np.random.default_rng(0)
    data, kernel = rng.standard_normal(tile + 2), rng.standard_normal(3)
    products = (np.array(filtering.kernel) @ kernel) * (np.array(filtering.input) @ data)
    want = np.correlate(data, kernel, mode="valid")
    np.testing.assert_allclose(np.array(filtering.output) @ products, want, atol=1e-13)


@pytest.mark.parametrize("tile", FILTERINGS)
def test_the_formulas_are_the_matrices(tile):
    filtering, rng = FILTERINGS[tile], np.random.default_rng(1)
    rows = list(rng.standard_normal(tile + 2))
    for matrix, formulas in (
        (filtering.input, filtering.input_rows),
        (filtering.output, filtering.output_rows),
    ):
        np.testing.assert_allclose(formulas(rows), np.array(matrix) @ rows, atol=1e-13)


@pytest.mark.parametrize(("tile", "most"), [(2, 4e-7), (4, 2e-6)])
def test_errors_are_those_of_few_roundings(tile, most):
    """Points 0, 1, -1, 2 and -2 are wrong by 6e-6 here."""
    filtering, rng = FILTERINGS[tile], np.random.default_rng(0)
    side, channels = tile + 2, 64
    data = rng.standard_normal((200, channels, side, side)).astype("float32")
    kernel = rng.standard_normal((channels, 3, 3)).astype("float32")

    def both(formulas, x):
        """Rows, then columns, in float32."""
        rows = np.stack(formulas(list(np.moveaxis(x, -2, 0))))
        return np.moveaxis(np.stack(formulas(list(np.moveaxis(rows, -1, 0)))), [0, 1], [-1, -2])

    matrix = np.array(filtering.kernel)
    weight = np.einsum("ia,cab,jb->cij", matrix, kernel, matrix).astype("float32")
    sums = np.zeros((200, side, side), "float32")
    for channel, product in enumerate(weight):
        sums += both(filtering.input_rows, data[:, channel]) * product
    windows = np.lib.stride_tricks.sliding_window_view(data.astype("float64"), (3, 3), (2, 3))
    want = np.einsum("tcxyij,cij->txy", windows, kernel)
    error = np.abs(both(filtering.output_rows, sums) - want).max() / np.abs(want).max()
    assert error < most
