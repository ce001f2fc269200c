"""Nearest neighbours are those of the exact coordinates: a quotient on an element stays on it."""

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.relay.op_registry import load_ops, make
from slipway.relay.ops.image.resize import ResizeAttrs, taps_of

load_ops()
HALF = Fraction(1, 2)
ROUND = {
    "floor": floor,
    "ceil": ceil,
    "round_prefer_floor": lambda x: ceil(x - HALF),
    "round_prefer_ceil": lambda x: floor(x + HALF),
}


def exact(mode: str, how: str, extent: int, out: int) -> list[int]:
    """Return the element that each output position reads, computed in fractions."""
    found = []
    for i in range(out):
        if mode == "align_corners":
            x = Fraction(i * (extent - 1), out - 1) if out > 1 else Fraction(0)
        elif mode == "asymmetric":
            x = Fraction(i * extent, out)
        elif mode == "pytorch_half_pixel" and out == 1:
            x = Fraction(0)
        else:
            x = (i + HALF) * Fraction(extent, out) - HALF
        found.append(min(max(ROUND[how](x), 0), extent - 1))
    return found


@pytest.mark.parametrize(
    "mode", ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]
)
def test_of_the_reference(mode):
    for how in ROUND:
        for extent in range(1, 50, 3):
            for out in range(1, 50, 2):
                attrs = ResizeAttrs((0, out), (), "nearest_neighbor", mode, how)
                got = taps_of(attrs, 1, extent, out)[0][:, 0]
                assert got.tolist() == exact(mode, how, extent, out), (how, extent, out)


@pytest.mark.parametrize(
    ("extent", "out", "mode", "how"),
    [
        (31, 17, "pytorch_half_pixel", "ceil"), (31, 17, "half_pixel", "floor"),
        (45, 35, "half_pixel", "round_prefer_floor"), (49, 21, "asymmetric", "round_prefer_ceil"),
        (33, 27, "asymmetric", "ceil"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_of_kernels(extent, out, mode, how, target):
    x = relay.var("x", shape=(1, extent), dtype="int16")
    call = make("image.resize")(
        x, size=(0, out), method="nearest_neighbor", coordinate_transformation_mode=mode,
        rounding_method=how,
    )  # fmt: skip
    library = relay.build(tvm.IRModule.from_expr(relay.Function([x], call)), target=target)
    module = tvm.runtime.graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    module.run(x=np.arange(extent, dtype="int16")[None])
    assert module.get_output(0).numpy()[0].tolist() == exact(mode, how, extent, out)
