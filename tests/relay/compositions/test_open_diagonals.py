"""A diagonal written into matrices of open sizes, against NumPy."""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import TypeInferenceError
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule

ROWS = relay.Dim("rows", 4, 9)


@pytest.mark.parametrize("k", [-2, 0, 1, 3])
def test_a_diagonal_of_open_matrices(k):
    x, diagonal = relay.var("x", shape=(2, ROWS, ROWS)), relay.var("d", shape=(2, ROWS - abs(k)))
    made = relay.matrix_set_diag(x, diagonal, k)
    library = relay.build(relay.Function([x, diagonal], made), target="llvm")
    module = GraphModule(library["default"](cpu()))
    rng = np.random.default_rng(0)
    for size in (4, 9, 6):
        data = rng.standard_normal((2, size, size)).astype("float32")
        new = rng.standard_normal((2, size - abs(k))).astype("float32")
        module.run(x=data, d=new)
        want = data.copy()
        at = np.arange(size - abs(k))
        want[:, at + max(-k, 0), at + max(k, 0)] = new
        np.testing.assert_array_equal(module.get_output(0).numpy(), want)


def test_a_diagonal_of_another_length_is_refused():
    x, diagonal = relay.var("x", shape=(ROWS, 20)), relay.var("d", shape=(7,))
    with pytest.raises(TypeInferenceError, match=r"'diagonal' must have shape \(rows,\)"):
        relay.matrix_set_diag(x, diagonal)


def test_several_diagonals_of_open_matrices_are_refused():
    x, diagonals = relay.var("x", shape=(ROWS, ROWS)), relay.var("d", shape=(2, ROWS))
    with pytest.raises(TypeInferenceError, match="'k' is 0 to 1: of matrices of open sizes, say"):
        relay.matrix_set_diag(x, diagonals, (0, 1))
