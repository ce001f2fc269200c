"""Operators over open sizes that were once for known ones: pools to a size, regions, rotations."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib.graph_executor import GraphModule
from slipway.errors import LoweringError
from slipway.relay import op_registry
from slipway.relay.dims import Dim
from slipway.relay.interpret import interpret

RNG = np.random.default_rng(2)
N, H, W = Dim("n", 1, 3), Dim("h", 4, 40), Dim("w", 4, 40)


def values(*shape):
    return RNG.standard_normal(shape).astype("float32")


def agree(inputs, result, draws):
    mod = tvm.IRModule.from_expr(relay.Function(inputs, result))
    model = GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu(0)))
    for given in draws:
        model.run(**{var.name_hint: value for var, value in zip(inputs, given, strict=True)})
        wanted = interpret(mod, *given)
        for i, one in enumerate(wanted if isinstance(wanted, tuple) else (wanted,)):
            np.testing.assert_allclose(model.get_output(i).numpy(), one, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "layout"), [((2, 3), "NCHW"), ((7, 7), "NHWC"), ((1, 5), "NCHW"), ((4, 1), "NCHW")]
)
def test_pools_to_a_size(size, layout):
    """From images that have fewer rows than the result, and whose parts are uneven, on."""
    x = relay.var("x", shape=(N, 5, H, W) if layout == "NCHW" else (N, H, W, 16))
    pools = relay.nn.adaptive_avg_pool2d, relay.nn.adaptive_max_pool2d
    made = relay.Tuple([pool(x, size, layout) for pool in pools])
    shapes = [(1, 5, 4, 4), (3, 5, 40, 40), (2, 5, 7, 13), (1, 5, 21, 6)]
    if layout == "NHWC":
        shapes = [(n, h, w, 16) for n, _, h, w in shapes]
    agree([x], made, [(values(*shape),) for shape in shapes])


def test_pools_of_some_times_as_many_rows():
    x = relay.var("x", shape=(1, 3, 6 * Dim("k", 1, 7), W))
    made = relay.nn.adaptive_avg_pool2d(x, (3, 2))
    agree([x], made, [(values(1, 3, 6 * k, w),) for k, w in ((1, 4), (7, 39), (4, 8))])


@pytest.mark.parametrize(("mode", "aligned"), [("avg", False), ("max", True)])
def test_any_number_of_regions_of_images_of_any_size(mode, aligned):
    x, rois = relay.var("x", shape=(N, 4, H, W)), relay.var("rois", shape=(Dim("r", 1, 9), 5))
    made = relay.vision.roi_align(x, rois, (3, 2), 0.5, 2, mode=mode, aligned=aligned)

    def draw(n, h, w, r):
        corners = np.sort(RNG.uniform(-3, 2 * h, (r, 2, 2)), 1).reshape(r, 4)
        regions = np.concatenate([RNG.integers(0, n, (r, 1)), corners], 1)
        return values(n, 4, h, w), regions.astype("float32")

    agree([x, rois], made, [draw(1, 4, 4, 1), draw(3, 20, 40, 9), draw(2, 7, 13, 4)])


def test_a_deformable_convolution():
    rows = (H - 1) // 2 + 1
    x, moves = relay.var("x", shape=(N, 4, H, W)), relay.var("moves", shape=(N, 36, rows, W))
    made = relay.nn.deformable_conv2d(
        x, moves, relay.const(values(6, 2, 3, 3)), strides=(2, 1), padding=1,
        deformable_groups=2, groups=2, kernel_size=(3, 3), channels=6,
    )  # fmt: skip
    draws = [
        (values(n, 4, h, w), values(n, 36, (h - 1) // 2 + 1, w))
        for n, h, w in ((1, 4, 4), (3, 20, 31), (2, 7, 13))
    ]
    agree([x, moves], made, draws)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("kept", [0, 3])
def test_rotations_of_any_number_of_pairs(kept, interleaved):
    pairs, heads = Dim("p", 1, 20), Dim("heads", 1, 3)
    x = relay.var("x", shape=(Dim("rows", 1, 6), heads, 2 * pairs + kept))
    tables = [relay.var(name, shape=(8, pairs)) for name in ("cosine", "sine")]
    position = relay.var("position", shape=(1,), dtype="int32")
    made = relay.nn.rotary_embedding(x, *tables, position, interleaved)
    draws = [
        (values(r, h, 2 * p + kept), values(8, p), values(8, p), np.array([2], "int32"))
        for r, h, p in ((1, 1, 1), (6, 3, 20), (2, 2, 9))
    ]
    agree([x, *tables, position], made, draws)


def test_operators_for_fixed_sizes_alone_say_so(monkeypatch):
    """As one does that counts with the size while it is compiled."""
    definition = op_registry.get("nn.adaptive_avg_pool2d")

    def counts(attrs, inputs, out_types):
        return range(relay.dims.size_of(inputs[0].shape[2]))

    monkeypatch.setattr(definition, "compute_function", counts)
    pooled = relay.nn.adaptive_avg_pool2d(relay.var("x", shape=(1, 3, H, 17)), (3, 3))
    with pytest.raises(LoweringError, match=r"pool2d is computed for .*\(1, 3, h, 17\).*fix"):
        relay.build(tvm.IRModule.from_expr(pooled), target="llvm")
