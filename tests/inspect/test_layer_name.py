"""Names of layers as tables show them."""

import pytest

from slipway.inspect.layer_name import layer_name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("conv_1", "conv_1"),
        ("model/relu;model/batch_norm;model/conv2d", "model/relu …"),
        ("a;", "a …"),
        (";b", ";b"),
        ("", ""),
        ("/layers.0/Conv", "/layers.0/Conv"),
    ],
)
def test_of_joined_names_the_first_is_shown(name, shown):
    assert layer_name(name) == shown
