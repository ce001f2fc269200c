"""Convolutions that ConvertLayout is told to leave: `relay.transform.LayoutConfig`."""

import pytest

import slipway as tvm
from slipway import relay


def two_convolutions():
    x = relay.var("x", shape=(1, 8, 8, 4))
    for number in range(2):
        w = relay.var(f"w{number}", shape=(3, 3, 4 if number == 0 else 8, 8))
        x = relay.nn.conv2d(
            x, w, padding=(1, 1), channels=8, kernel_size=(3, 3), data_layout="NHWC",
            kernel_layout="HWIO",
        )  # fmt: skip
    return tvm.IRModule.from_expr(x)


def layouts(module):
    return [
        call.attrs.data_layout
        for call in relay.visit.post_order(module["main"].body)
        if getattr(getattr(call, "op", None), "name", "") == "nn.conv2d"
    ]


@pytest.mark.parametrize(("skipped", "wanted"), [
    ([0], ["NHWC", "NCHW"]), ([1], ["NCHW", "NHWC"]), ([0, 1], ["NHWC", "NHWC"]),
    (None, ["NCHW", "NCHW"]), ([7], ["NCHW", "NCHW"]),
])  # fmt: skip
def test_layers_are_skipped_by_their_number(skipped, wanted):
    convert = relay.transform.ConvertLayout({"nn.conv2d": ["NCHW", "default"]})
    with relay.transform.LayoutConfig(skip_layers=skipped) as config:
        assert layouts(convert(two_convolutions())) == wanted
    assert config.skip_counter == 2
    assert layouts(convert(two_convolutions())) == ["NCHW", "NCHW"]


def test_numbers_only():
    with pytest.raises(TypeError, match="skip_layers"):
        relay.transform.LayoutConfig(skip_layers="first")
