"""Operators that read at real positions: their C spells each position and weight out once."""

import pytest

import slipway as tvm
from slipway import relay


def roi_align(data, other, dtype):
    return relay.vision.roi_align(data, other((5, 5)), (2, 3), 0.5, 2, mode="max")


def deformable(data, other, dtype):
    weight = relay.var("w", shape=(4, 3, 3, 3), dtype=dtype)
    return relay.nn.deformable_conv2d(data, other((1, 18, 6, 7)), weight, padding=1, channels=4,
                                      kernel_size=(3, 3))  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("make", [roi_align, deformable])
def test_c_text_is_short(make, dtype):
    """A C compiler takes minutes for lines of 38,000 characters, as these once were."""
    data = relay.var("x", shape=(1, 3, 6, 7), dtype=dtype)
    body = make(data, lambda shape: relay.var("o", shape=shape, dtype=dtype), dtype)
    library = relay.build(tvm.IRModule.from_expr(body), target="c")
    text = library.get_lib().get_source("c")
    assert max(map(len, text.splitlines())) < 2500
    assert len(text) < 100_000
