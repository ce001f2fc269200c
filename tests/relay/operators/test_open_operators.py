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
from slipway.relay.op_registry import BadArgument

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


@pytest.mark.parametrize(("mode", "aligned"), [("avg", True), ("max", False)])
def test_regions_with_as_many_samples_as_they_have_elements(mode, aligned):
    x, rois = relay.var("x", shape=(N, 4, H, W)), relay.var("rois", shape=(Dim("r", 1, 9), 5))
    made = relay.vision.roi_align(x, rois, (3, 2), 0.5, -1, mode=mode, aligned=aligned)

    def draw(n, h, w, r):
        corners = np.sort(RNG.uniform(-3, 5 * h, (r, 2, 2)), 1).reshape(r, 4)
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


def sizes_agree(make, shapes, draws, atol=1e-5):
    """Compare one library for all sizes with the same operator made for each, in NumPy."""
    tensors = [relay.var(f"x{i}", shape=s, dtype=d) for i, (s, d) in enumerate(shapes)]
    library = relay.build(
        tvm.IRModule.from_expr(relay.Function(tensors, made_of(make, tensors))), "llvm"
    )
    model = GraphModule(library["default"](tvm.cpu(0)))
    for given in draws:
        model.run(**{f"x{i}": value for i, value in enumerate(given)})
        fixed = [relay.var(f"x{i}", shape=v.shape, dtype=str(v.dtype)) for i, v in enumerate(given)]
        wanted = interpret(
            tvm.IRModule.from_expr(relay.Function(fixed, made_of(make, fixed))), *given
        )
        for i, one in enumerate(wanted if isinstance(wanted, tuple) else (wanted,)):
            found = model.get_output(i).numpy()
            assert found.shape == one.shape
            np.testing.assert_allclose(found, one, rtol=1e-5, atol=atol)


def made_of(make, tensors):
    result = make(*tensors)
    return result.tuple_value if isinstance(result, relay.TupleWrapper) else result


IMAGE = ((N, 3, H, W), "float32")
SIZES = ((1, 4, 4), (3, 40, 5), (2, 17, 23))


def images(channels=3):
    return [(values(n, channels, h, w),) for n, h, w in SIZES]


@pytest.mark.parametrize("clip", [False, True])
def test_anchors_of_images_of_any_size(clip):
    def make(x):
        return relay.vision.multibox_prior(x, (0.5, 0.2), (1.0, 2.0, 0.4), clip=clip)

    sizes_agree(make, [IMAGE], images())


@pytest.mark.parametrize("method", ["bilinear", "nearest_neighbor"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_crops_of_images_of_any_size(layout, method):
    R = Dim("r", 1, 9)
    shape = (N, 3, H, W) if layout == "NCHW" else (N, H, W, 3)

    def draw(n, h, w, r):
        data = values(n, 3, h, w)
        boxes = RNG.uniform(-0.2, 1.2, (r, 4)).astype("float32")
        data = data if layout == "NCHW" else np.ascontiguousarray(data.transpose(0, 2, 3, 1))
        return data, boxes, RNG.integers(0, n, r).astype("int32")

    def make(x, boxes, which):
        return relay.image.crop_and_resize(x, boxes, which, (4, 1), layout, method)

    shapes = [(shape, "float32"), ((R, 4), "float32"), ((R,), "int32")]
    draws = [draw(*size, r) for size, r in zip(SIZES, (1, 9, 4), strict=True)]
    sizes_agree(make, shapes, draws, 1e-4)


def test_the_largest_of_regions_of_images_of_any_size():
    def draw(n, h, w, r):
        corners = np.sort(RNG.integers(-3, 2 * h, (r, 2, 2)), 1).reshape(r, 4)
        regions = np.concatenate([RNG.integers(0, n, (r, 1)), corners], 1)
        return values(n, 3, h, w), regions.astype("float32")

    shapes = [IMAGE, ((Dim("r", 1, 9), 5), "float32")]
    draws = [draw(*size, r) for size, r in zip(SIZES, (1, 9, 4), strict=True)]
    sizes_agree(lambda x, rois: relay.vision.roi_pool(x, rois, (2, 3), 0.5), shapes, draws)


def boxes_of(n, count):
    kind, score = RNG.integers(-1, 3, (n, count, 1)), RNG.uniform(0, 1, (n, count, 1))
    corners = np.sort(RNG.uniform(0, 4, (n, count, 2, 2)), 2).reshape(n, count, 4)
    return np.concatenate([kind, score, corners], 2).astype("float32")


def test_any_number_of_boxes():
    count = Dim("boxes", 1, 50)
    sizes = ((1, 1), (3, 50), (2, 13))

    def valid(x):
        return relay.vision.get_valid_counts(x, 0.4, 0, 1)

    draws = [(boxes_of(*size),) for size in sizes]
    sizes_agree(valid, [((N, count, 6), "float32")], draws)

    def chosen(x, counts):
        return relay.vision.non_max_suppression(
            x, counts, None, 5, 0.3, return_indices=False, invalid_to_bottom=True
        )

    draws = [(x, np.full(len(x), x.shape[1], "int32")) for (x,) in draws]
    sizes_agree(chosen, [((N, count, 6), "float32"), ((N,), "int32")], draws)

    def located(scores, moves, anchors):
        return relay.vision.multibox_transform_loc(scores, moves, anchors)

    shapes = [((N, 3, count), "float32"), ((N, 4 * count), "float32"), ((1, count, 4), "float32")]
    draws = [
        (RNG.uniform(0, 1, (n, 3, c)).astype("float32"), values(n, 4 * c), boxes_of(1, c)[:, :, 2:])
        for n, c in sizes
    ]
    sizes_agree(located, shapes, draws)


@pytest.mark.parametrize("iou_loss", [False, True])
def test_regions_proposed_for_images_of_any_size(iou_loss):
    def make(scores, moves, info):
        return relay.vision.proposal(
            scores, moves, info, (8.0,), (0.5, 1.0, 2.0), 4, 0.5, 60, 7, 2, iou_loss
        )

    shapes = [((N, 6, H, W), "float32"), ((N, 12, H, W), "float32"), ((N, 3), "float32")]
    draws = [
        (RNG.permutation(n * 6 * h * w).reshape(n, 6, h, w).astype("float32") / (n * 6 * h * w),
         values(n, 12, h, w), np.float32([[4 * h, 4 * w, 1]] * n))
        for n, h, w in SIZES
    ]  # fmt: skip
    sizes_agree(make, shapes, draws, 1e-3)


@pytest.mark.parametrize("options", [{}, {"onesided": False, "normalized": True}])
def test_spectra_of_signals_of_any_length(options):
    shape = (N, Dim("samples", 16, 200))
    draws = [(values(n, t),) for n, t in ((1, 16), (3, 200), (2, 77))]
    sizes_agree(lambda x: relay.stft(x, 16, 5, 12, **options), [(shape, "float32")], draws, 1e-4)


@pytest.mark.parametrize("inverse", [False, True])
def test_a_fourier_transform_of_any_length(inverse):
    shape = (N, Dim("samples", 1, 300))
    draws = [(values(n, t), values(n, t)) for n, t in ((1, 1), (3, 300), (2, 77))]
    shapes = [(shape, "float32")] * 2
    sizes_agree(lambda x, y: relay.dft(x, y, inverse), shapes, draws, 3e-4)


def test_a_fourier_transform_that_is_too_long_is_refused():
    x = relay.var("x", shape=(N, Dim("samples", 1, 5000)))
    with pytest.raises(BadArgument, match=r"'re_data' has samples in 1..5000 elements"):
        relay.dft(x, x)


def test_a_grid_for_images_of_any_size():
    def make(x, theta):
        size = x.tensor_type.shape[2:]
        return relay.image.grid_sample(x, relay.image.affine_grid(theta, size))

    draws = [(values(n, 3, h, w), values(n, 2, 3) / 2) for n, h, w in SIZES]
    sizes_agree(make, [IMAGE, ((N, 2, 3), "float32")], draws, 1e-3)


def test_pixels_apart_and_as_channels():
    sizes_agree(lambda x: relay.nn.dilate(x, (1, 2, 3, 1), 0.5), [IMAGE], images())
    doubled = ((N, 4, 2 * H, 2 * W), "float32")
    draws = [(values(n, 4, 2 * h, 2 * w),) for n, h, w in SIZES]
    sizes_agree(lambda x: relay.vision.yolo_reorg(x, 2), [doubled], draws)
