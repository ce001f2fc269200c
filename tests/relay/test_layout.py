import numpy as np
import pytest

from slipway.relay.layout import parse_layout, source_index, transform_array, transform_shape

PAIRS = [
    ("NCHW", "NHWC", (2, 6, 3, 4)),
    ("NCHW", "NCHW2c", (2, 6, 3, 4)),
    ("NCHW3c", "NCHW2c", (2, 2, 3, 4, 3)),
    ("NCHW2c", "NHWC", (2, 3, 3, 4, 2)),
    ("OIHW", "OIHW2i4o", (8, 6, 3, 3)),
    ("NHWC", "NCHW3c", (1, 4, 5, 6)),
    ("OIHW", "OIHW1i4o", (8, 1, 3, 3)),
    ("OIHW1i4o", "OIHW", (2, 1, 3, 3, 1, 4)),
    ("OIHW", "OIHW3i2o2i", (4, 12, 2, 3)),
    ("NK", "NK4n2k", (8, 6)),
    ("OIHW3i2o2i", "OIHW4i4o", (2, 2, 1, 3, 3, 2, 2)),
]


@pytest.mark.parametrize(("source", "target", "shape"), PAIRS)
def test_there_and_back_is_the_same(source, target, shape):
    array = np.arange(np.prod(shape)).reshape(shape)
    moved = transform_array(array, source, target)
    assert moved.shape == transform_shape(shape, source, target)
    np.testing.assert_array_equal(transform_array(moved, target, source), array)


@pytest.mark.parametrize(("source", "target", "shape"), PAIRS)
def test_source_index_agrees_with_transform_array(source, target, shape):
    array = np.arange(np.prod(shape)).reshape(shape)
    moved = transform_array(array, source, target)
    index = source_index(source, target, lambda a, b: a // b, lambda a, b: a % b)
    for position in np.ndindex(*moved.shape):
        assert moved[position] == array[index(*position)]


def test_blocked_element_lies_where_the_docstring_says():
    array = np.arange(2 * 32 * 3 * 4).reshape(2, 32, 3, 4)
    moved = transform_array(array, "NCHW", "NCHW16c")
    assert moved[1, 1, 2, 3, 5] == array[1, 21, 2, 3]


@pytest.mark.parametrize("text", ["", "NCHW16", "16c", "NN", "NCHW4c4c", "nchw", "NC HW"])
def test_what_is_no_layout_is_refused(text):
    with pytest.raises(ValueError, match="is not a layout"):
        parse_layout(text)


def test_a_block_that_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="axis C into blocks of 16"):
        transform_shape((1, 3, 8, 8), "NCHW", "NCHW16c")
