"""Parts of an image put in order: pixels of each remainder modulo the strides."""

import json
import re

import numpy as np
import pytest
from kernel_check import TARGETS, run, var

from slipway import IRModule, relay
from slipway.relay import op_registry


def interleave(shapes, strides, size, sources=None, together=1):
    parts = relay.Tuple([var(f"p{n}", *shape) for n, shape in enumerate(shapes)])
    return op_registry.make("nn.contrib_interleave")(parts, strides, size, sources, together)


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize(
    ("shapes", "strides", "size", "sources"),
    [
        ([(1, 2, 5, 7, 16)] * 4, (2, 2), (10, 14), None),
        ([(2, 3, 5, 7, 8)] * 4, (2, 2), (9, 13), None),
        ([(1, 2, 4, 5, 4)] * 2, (3, 2), (12, 10), (0, 1, -1, -1, 1, 0)),
        ([(1, 2, 4, 5, 4), (1, 2, 3, 5, 4)], (1, 2), (4, 10), (0, 1)),
        ([(1, 3, 40)] * 3, (3,), (118,), None),
        ([(2, 3, 6, 33)] * 4, (2, 2), (12, 65), None),
        ([(2, 3, 6, 33), (2, 3, 6, 30)], (2, 1), (12, 33), (1, 0)),
        ([(1, 2, 3, 5)] * 6, (2, 3), (6, 14), None),
        ([(1, 2, 3, 4, 5)] * 8, (2, 2, 2), (6, 7, 10), None),
        ([(1, 3, 2, 3, 4, 16)], (5, 5, 5), (9, 12, 17), (-1,) * 62 + (0,) * 63),
        ([(1, 2, 20)], (17,), (339,), (-1,) * 16 + (0,)),
    ],
)
def test_parts_in_order(target, shapes, strides, size, sources):
    body = interleave(shapes, strides, size, sources)
    assert run(relay.nn.relu(body), target) in ("interleave.rests", "loops.sums")


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize(
    ("shapes", "strides", "size", "sources", "together"),
    [
        ([(1, 18, 5, 7, 16)], (3, 3), (15, 21), None, 9),
        ([(2, 12, 4, 9)] * 2, (2, 4), (7, 35), None, 4),
        ([(2, 6, 4, 20)], (2, 2), (8, 40), (1, -1, 2, 0), 3),
        ([(1, 16, 3, 4, 5, 8)], (2, 2, 2), (6, 8, 10), None, 8),
    ],
)
def test_pixels_of_several_remainders_in_one_part(target, shapes, strides, size, sources, together):
    body = interleave(shapes, strides, size, sources, together)
    assert run(relay.nn.relu(body), target) in ("interleave.rests", "loops.sums")


def test_parts_whose_channels_are_not_those_of_all_remainders_are_refused():
    with pytest.raises(Exception, match="no channels of 4 remainders"):
        relay.transform.InferType()(
            IRModule.from_expr(interleave([(1, 6, 3, 3)], (2, 2), (6, 6), None, 4))
        )


@pytest.mark.parametrize("together", [1, 4])
def test_no_element_looks_for_its_part(together):
    shapes = [(1, 4 * together, 14, 14, 16)] * (4 // together)
    body = interleave(shapes, (2, 2), (28, 28), None, together)
    library = relay.build(IRModule.from_expr(body), target="llvm -mcpu=skylake-avx512")
    code = library.get_lib().get_source("asm")
    copies = [b for b in re.split(r"\n\.?L?\w+:", code) if "vmovups\t%zmm" in b]
    assert copies
    assert not any("imul" in block or "div" in block for block in copies)


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize(
    ("data", "window", "strides", "dilation", "cut", "size"),
    [
        ((1, 9, 14, 14), (3, 3), (2, 2), (1, 1), (0, 0), (29, 29)),
        ((2, 27, 5, 33), (3, 3), (2, 2), (1, 1), (1, 1), (10, 66)),
        ((1, 40, 6, 7), (5, 4), (3, 3), (1, 1), (2, 1), (16, 19)),
        ((1, 6, 40), (3,), (2,), (1,), (0,), (81,)),
        ((1, 16, 3, 4, 5), (2, 2, 2), (2, 1, 2), (1, 1, 1), (0, 1, 0), (6, 3, 12)),
        ((1, 8, 5, 20), (2, 2), (3, 3), (2, 1), (0, 0), (15, 60)),
        ((1, 8, 5, 20), (2, 2), (4, 17), (1, 1), (0, 0), (20, 340)),
    ],
)
def test_sums_of_columns(target, data, window, strides, dilation, cut, size):
    make = op_registry.make("nn.contrib_column_sum")
    body = make(var("x", *data), window, strides, dilation, cut, size)
    run(relay.nn.relu(body), target)


def test_columns_are_summed_from_the_blocks_that_a_convolution_leaves():
    weight = relay.const(np.ones((32, 5, 3, 3), "float32"))
    x = relay.var("x", shape=(1, 32, 14, 14))
    bias = relay.const(np.ones((5, 1, 1), "float32"))
    body = relay.nn.relu(relay.add(relay.nn.conv2d_transpose(x, weight, strides=(2, 2)), bias))
    library = relay.build(IRModule.from_expr(body), target="llvm -mcpu=skylake-avx512")
    nodes = json.loads(library.get_graph_json())["nodes"]
    kernels = [n["name"] for n in nodes if n["op"] == "tvm_op"]
    assert len(kernels) == 3, kernels  # into blocks, products, sums with all that follows
