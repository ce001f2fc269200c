"""Classes of outputs, and the largest values: of every type and shape."""

import numpy as np
import pytest

from slipway.deploy.tensors import largest_first
from slipway.deploy.validate import classes_of

SCORES = np.array([[3, 9, 4], [7, 1, 7]])


@pytest.mark.parametrize(("output", "rows", "wanted"), [
    (SCORES, 2, [1, 0]),
    (SCORES.astype("float32"), 1, [1]),  # the other row is padding
    (SCORES.reshape(2, 3, 1, 1), 2, [1, 0]),
    (SCORES[0], 1, [1]),  # no batch
    (np.array([[4], [2]]), 2, [4, 2]),  # indices, as argmax gives them
    (np.array([4, 2, 5]), 2, [4, 2]),
    (np.int64(4).reshape(()), 1, [4]),
    (np.array([[0.3], [0.9]]), 2, None),  # a regression, or one chance
    (np.array([0.3, 0.9]), 2, None),
    (np.zeros((1, 300, 4)), 1, None),  # boxes
    (np.zeros((0, 3)), 1, None),
], ids=str)  # fmt: skip
def test_classes_are_those_of_scores_and_of_whole_numbers(output, rows, wanted):
    assert classes_of(output, rows) == wanted


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool", "int64", "float16", "float32"])
def test_the_largest_of_any_type_come_first(dtype):
    """Also where the smallest is its own negative: a quantised softmax is full of -128."""
    low = -128 if dtype == "int8" else 0
    values = np.array([[low, 1, low], [5, 5, 1]]).astype(dtype)
    wanted = sorted(range(6), key=lambda i: (-int(values.reshape(-1)[i]), i))
    assert largest_first(values, 6).tolist() == wanted
    assert largest_first(values, 2).tolist() == wanted[:2]


def test_what_is_no_number_is_not_the_largest():
    assert largest_first(np.array([np.nan, 1, np.inf]), 3).tolist() == [2, 1, 0]
