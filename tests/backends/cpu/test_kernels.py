"""Scheduled kernels against the operators' references, on shapes that do not fill tiles."""

import re

import numpy as np
import pytest
from kernel_check import TARGETS, run, var

import slipway as tvm
from slipway import relay
from slipway.backends.cpu.parts import causes_conflict_misses
from slipway.backends.primitive import schedule_primitive
from slipway.compiler.kernels import lower_kernel
from slipway.relay.interpret import interpret
from slipway.target import Target


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("shape", "stride", "kernel", "pad", "channels"),
    [
        ((1, 2, 9, 9, 8), 1, 3, 1, 4),
        ((1, 1, 13, 13, 3), 2, 3, 1, 2),
        ((2, 2, 7, 7, 8), 1, 1, 0, 3),
        ((1, 2, 11, 17, 8), 1, 5, 2, 2),
        ((1, 1, 37, 37, 4), 1, 3, 0, 2),
    ],
)
def test_convolution_on_blocks(target, shape, stride, kernel, pad, channels):
    weight = var("w", channels, shape[1], kernel, kernel, shape[4], 8)
    conv = relay.nn.contrib_conv2d_nchwc(
        var("x", *shape), weight, stride, pad, data_layout=f"NCHW{shape[4]}c",
        kernel_layout=f"OIHW{shape[4]}i8o", out_layout="NCHW8c",
    )  # fmt: skip
    body = relay.nn.relu(conv + var("b", 1, channels, 1, 1, 8))
    found = run(body, target)
    assert found == "conv2d_nchwc.direct" or (pad and found == "conv2d_nchwc.rows")
    run(conv, target)


@pytest.mark.parametrize(("size", "shared"), [(40, False), (400, True)])
def test_a_small_image_is_padded_by_one_core(size, shared):
    """To hand its rows to others takes longer than to copy them."""
    conv = relay.nn.contrib_conv2d_nchwc(
        var("x", 1, 1, size, size, 1), var("w", 4, 1, 7, 7, 1, 8), 2, 3,
        data_layout="NCHW1c", kernel_layout="OIHW1i8o", out_layout="NCHW8c",
    )  # fmt: skip
    with tvm.transform.PassContext(
        config={"schedules.force": {conv.op.name: {"strategy": "conv2d_nchwc.direct"}}}
    ):
        kernel = schedule_primitive(
            conv.as_function().with_attr("Primitive", 1), Target(TARGETS[0])
        )
    text = str(tvm.lower(kernel.schedule, list(kernel.args), simple_mode=True))
    first = next(line for line in text.splitlines() if " for " in line)
    assert first.strip().startswith("parallel") == shared


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("size", [(13,), (5, 7), (3, 5, 6)])
def test_convolution_on_blocks_of_any_rank(target, groups, size):
    count = len(size)
    make = getattr(relay.nn, f"contrib_conv{count}d_nchwc")
    letters = {1: "W", 2: "HW", 3: "DHW"}[count]
    conv = make(
        var("x", 2, 2 * groups, *size, 8), var("w", 3 * groups, 2, *(3,) * count, 8, 8), padding=1,
        groups=groups, data_layout=f"NC{letters}8c", kernel_layout=f"OI{letters}8i8o",
    )  # fmt: skip
    found = run(relay.nn.relu(conv), target)
    assert found == ("conv2d_nchwc.direct" if count == 1 else "conv2d_nchwc.rows")
    run(conv, target)
    make = getattr(relay.nn, f"contrib_depthwise_conv{count}d_nchwc")
    depthwise = make(
        var("x", 1, 2, *size, 8), var("w", 2, 1, *(3,) * count, 1, 8), padding=1, groups=16,
        data_layout=f"NC{letters}8c", kernel_layout=f"OI{letters}1i8o",
    )  # fmt: skip
    assert run(depthwise, target) == "depthwise_nchwc.direct"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("size", "stride", "kernel"), [(9, 1, 3), (12, 2, 3), (7, 1, 5), (29, 1, 3)]
)
def test_depthwise_convolution_on_blocks(target, size, stride, kernel):
    conv = relay.nn.contrib_depthwise_conv2d_nchwc(
        var("x", 1, 3, size, size, 8), var("w", 3, 1, kernel, kernel, 1, 8), stride, kernel // 2,
        groups=24,
    )  # fmt: skip
    assert run(relay.clip(conv, 0.0, 6.0), target) == "depthwise_nchwc.direct"
    run(conv, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [1, 5, 13, 32])
def test_product_with_packed_weights(target, rows):
    dense = relay.nn.contrib_dense_pack(var("x", rows, 37), var("w", 6, 37, 8))
    assert run(dense + var("b", 48), target) == "dense_pack.tile"
    run(dense, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(("m", "k", "n"), [(13, 7, 37), (32, 16, 64), (1, 64, 100), (197, 8, 33)])
def test_batched_product(target, transpose_b, m, k, n):
    right = var("b", 3, n, k) if transpose_b else var("b", 3, k, n)
    product = relay.nn.batch_matmul(var("a", 3, m, k), right, transpose_b=transpose_b)
    expected = "matmul.rows" if m < 4 and not transpose_b else "batch_matmul.tile"
    assert run(product * relay.const(0.5), target) == expected
    run(product, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("m", "k", "n"), [(13, 7, 37), (32, 16, 64), (3, 64, 100), (1, 9, 700)])
def test_product_of_two_matrices(target, m, k, n):
    rows = m < 4
    for transpose_a in (False, True):
        left = var("a", k, m) if transpose_a else var("a", m, k)
        product = relay.nn.matmul(left, var("b", k, n), transpose_a=transpose_a)
        expected = "matmul.rows" if rows else "batch_matmul.tile"
        assert run(product + var("c", n), target) == expected
    if not rows:
        dense = relay.nn.dense(var("a", m, k), var("b", n, k))
        assert run(relay.nn.relu(dense), target) == "dense.tile"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("m", "k", "n"), [(13, 7, 64), (300, 2048, 64)])
def test_a_product_that_fills_its_panels(target, m, k, n):
    """Tiles store their sums; the longer one in parts of the rows."""
    product = relay.nn.matmul(var("a", m, k), var("b", k, n))
    assert run(relay.nn.relu(product), target) == "batch_matmul.tile"
    function = product.as_function().with_attr("Primitive", 1)
    kernel = schedule_primitive(function, Target(target))
    text = str(tvm.lower(kernel.schedule, list(kernel.args), simple_mode=True))
    assert all(line.endswith("@local") for line in text.splitlines() if "allocate tiles" in line)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("rows", "units"), [(1, 41), (13, 45), (32, 10)])
def test_product_with_packed_weights_of_which_some_count(target, rows, units):
    weight = var("w", -(-units // 8), 37, 8)
    dense = relay.nn.contrib_dense_pack(var("x", rows, 37), weight, units=units)
    assert run(dense + var("b", units), target) == "dense_pack.cut"


@pytest.mark.parametrize("target", TARGETS)
def test_reductions_and_chains(target):
    x = var("x", 3, 17, 50)
    run(relay.mean(x, axis=[1], keepdims=True), target)
    run(relay.sum(relay.exp(x), axis=[2]), target)
    run(relay.nn.softmax(x), target)
    run(relay.tanh(x) * x + relay.const(1.0), target)
    run(relay.nn.max_pool2d(var("y", 1, 2, 12, 12, 8), 3, 2, padding=1, layout="NCHW8c"), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("size", "pad"), [(13, 1), (16, 1), (9, 0)])
@pytest.mark.parametrize("side", [4, 6])
def test_winograd_convolution(target, size, pad, side):
    conv = relay.nn.contrib_conv2d_winograd_nchwc(
        var("x", 1, 2, size, size, 8), var("u", 4, side, side, 2, 8, 8), pad
    )
    assert run(relay.nn.relu(conv), target) == "conv2d_winograd"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("shape", "taps", "pad"),
    [
        ((1, 2, 5, 13, 9, 8), 3, 1),
        ((2, 2, 4, 7, 8, 8), 1, (0, 1, 1)),  # frames by themselves, two volumes
        ((1, 2, 3, 30, 34, 8), 2, (0, 0, 1)),  # blocks of rows
    ],
)
@pytest.mark.parametrize("side", [4, 6])
def test_winograd_convolution_of_frames(target, shape, taps, pad, side):
    kernel = var("u", 3, side, side, taps * shape[1], 8, 8)
    conv = relay.nn.contrib_conv3d_winograd_nchwc(var("x", *shape), kernel, pad)
    assert run(relay.nn.relu(conv), target) == "conv3d_winograd"


def test_winograd_agrees_with_the_direct_convolution():
    rng = np.random.default_rng(0)
    weight = relay.const(rng.standard_normal((32, 16, 3, 3)).astype("float32"))
    x = var("x", 1, 16, 15, 18)
    function = relay.nn.conv2d(x, weight, padding=(1, 1)).as_function()
    data = rng.standard_normal((1, 16, 15, 18)).astype("float32")
    wanted = interpret(function, data)
    for options, kernel in (("", "winograd"), (" -strict=1", "conv2d_nchwc")):
        with tvm.transform.PassContext(opt_level=3):
            lib = relay.build(tvm.IRModule.from_expr(function), target="llvm" + options)
        assert any(kernel in name for name in lib.graph.kernels)
        model = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
        model.run(x=data)
        error = np.abs(model.get_output(0).numpy() - wanted).max() / np.abs(wanted).max()
        assert error < (1e-5 if kernel == "winograd" else 1e-6)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(2, 3, 8), (5, 37), (2, 2, 3, 64), (3, 17)])
def test_softmax_of_rows(target, shape):
    assert run(relay.nn.softmax(var("x", *shape)), target) in ("softmax.rows", "softmax.long")
    run(relay.nn.softmax(var("x", *shape)) * relay.const(3.0), target)
    assert run(relay.nn.log_softmax(var("x", *shape)), target) in ("softmax.rows", "softmax.long")
    run(relay.exp(relay.nn.log_softmax(var("x", *shape))), target)


@pytest.mark.parametrize("target", TARGETS)
def test_softmax_makes_no_denormal_numbers(target):
    """They cost some thirty times as much as others; NaN and infinity keep their meaning."""
    scores = np.linspace(-120, 0, 64, dtype="float32")[None].repeat(3, 0)
    scores[1, :32] = -10000
    scores[2, 5] = np.nan
    mod = tvm.IRModule.from_expr(relay.Function([x := var("x", 3, 64)], relay.nn.softmax(x)))
    model = tvm.contrib.graph_executor.GraphModule(relay.build(mod, target)["default"](tvm.cpu(0)))
    model.run(x=scores)
    out = model.get_output(0).numpy()
    tiny = np.finfo("float32").tiny
    assert ((out[:2] == 0) | (out[:2] >= tiny)).all()
    wanted = np.exp(scores[:2].astype("float64"))
    np.testing.assert_allclose(
        out[:2], wanted / wanted.sum(1, keepdims=True), rtol=1e-5, atol=10 * tiny
    )
    assert np.isnan(out[2]).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("chunks", "size", "stride"), [(70, 5, 1), (33, 8, 2), (66, 7, 2)])
def test_pointwise_convolution_whose_data_is_packed(target, chunks, size, stride):
    """So many channels that a tile of positions would not stay in the first-level cache."""
    assert causes_conflict_misses(chunks, (size, size, 8), Target(target))
    conv = relay.nn.contrib_conv2d_nchwc(
        var("x", 1, chunks, size, size, 8), var("w", 3, chunks, 1, 1, 8, 8), stride, 0
    )
    direct = {"schedules.force": {"nn.contrib_conv2d_nchwc": "conv2d_nchwc.direct"}}
    with tvm.transform.PassContext(config=direct):
        assert run(relay.nn.relu(conv), target) == "conv2d_nchwc.direct"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("chunks", "size", "stride", "kernel", "channels"),
    [(64, 7, 1, 1, 64), (33, 5, 1, 3, 33), (64, 6, 2, 1, 68), (32, 9, 1, 3, 32), (64, 1, 1, 1, 64)],
)
def test_deep_convolution_whose_weights_are_streamed(
    target, chunks, size, stride, kernel, channels
):
    weight = var("w", channels, chunks, kernel, kernel, 8, 8)
    conv = relay.nn.contrib_conv2d_nchwc(
        var("x", 2, chunks, size, size, 8), weight, stride, kernel // 2, data_layout="NCHW8c",
        kernel_layout="OIHW8i8o",
    )  # fmt: skip
    body = relay.nn.relu(conv + var("b", 1, channels, 1, 1, 8))
    assert run(body, target) == "conv2d_nchwc.streamed"


@pytest.mark.parametrize(("size", "window", "in_order"), [(3, 1, True), (7, 3, False)])
def test_weights_are_streamed_in_the_order_in_which_they_lie(size, window, in_order):
    """Where the data of all blocks of the sum, here 27 KB and 3.6 MB, stays in the cache."""
    conv = relay.nn.contrib_conv2d_nchwc(
        var("x", 1, 96, size, size, 8), var("w", 96, 96, window, window, 8, 8), 1, window // 2
    )
    function = conv.as_function().with_attr("Primitive", 1)
    lowered = str(lower_kernel("kernel", function, Target(TARGETS[1])))
    copy, *products, result = re.findall(r"for (o\.outer|ko)\w* in", lowered)
    assert (copy, result) == ("ko", "o.outer")
    assert products == (["o.outer", "ko"] if in_order else ["o.outer"])  # inside that of the copy


@pytest.mark.parametrize(
    ("size", "chunks", "streamed"), [(5, 16, True), (5, 8, False), (6, 16, False)]
)
def test_a_tile_or_two_wait_for_short_kernels_too(size, chunks, streamed):
    weight = var("w", 16, chunks, 1, 1, 8, 8)
    conv = relay.nn.contrib_conv2d_nchwc(var("x", 1, chunks, size, size, 8), weight, 1, 0)
    found = run(conv, TARGETS[1])
    assert found == f"conv2d_nchwc.{'streamed' if streamed else 'direct'}"


@pytest.mark.parametrize("words", ["wasm32", "x86_64-linux-gnu -mcpu=x86-64"])
def test_short_vectors_do_not_wait_for_weights(words):
    conv = relay.nn.contrib_conv2d_nchwc(
        var("x", 1, 64, 7, 7, 8), var("w", 64, 64, 1, 1, 8, 8), 1, 0
    )
    function = conv.as_function().with_attr("Primitive", 1)
    chosen = schedule_primitive(function, Target(f"llvm -mtriple={words}"))
    assert chosen.implementation == "conv2d_nchwc.direct"


@pytest.mark.parametrize(
    ("words", "chunks", "window", "longest"),
    [
        ("", 32, 1, True),
        ("", 2, 1, False),  # shorter than a block
        ("", 32, 3, False),
        (" -mattr=+relaxed-simd", 32, 1, False),
    ],
)
def test_engines_that_wait_for_instructions_loop_over_chunks_innermost(
    words, chunks, window, longest
):
    layouts = {"data_layout": "NCHW4c", "kernel_layout": "OIHW4i4o"}
    weight = var("w", 8, chunks, window, window, 4, 4)
    conv = relay.nn.contrib_conv2d_nchwc(
        var("x", 1, chunks, 6, 6, 4), weight, 1, window // 2, **layouts
    )
    function = conv.as_function().with_attr("Primitive", 1)
    lowered = lower_kernel("kernel", function, Target("llvm -mtriple=wasm32" + words))
    nested = re.findall(r"for (ic\w*)", str(lowered))
    assert (nested == ["ic", "ic_chunk"]) == longest, nested


def test_what_crowds_the_cache():
    target = Target(TARGETS[1])
    assert causes_conflict_misses(64, (13, 13, 8), target)  # half of it in all
    assert causes_conflict_misses(32, (56, 56, 8), target)  # planes that begin on two sets
    assert not causes_conflict_misses(8, (56, 56, 8), target)
    assert not causes_conflict_misses(32, (14, 14, 8), target)
    larger = Target(f"{TARGETS[1]} -l1-cache-bytes=131072")
    assert not causes_conflict_misses(64, (13, 13, 8), larger)


@pytest.mark.parametrize("blocks", [5, 125])
def test_product_whose_last_panel_overlaps(blocks):
    """Vectors stay aligned with the blocks of the weights: no lane is loaded by itself."""
    dense = relay.nn.contrib_dense_pack(var("x", 1, 32), var("w", blocks, 32, 8))
    run(dense, TARGETS[1])
    target = Target(TARGETS[1])
    function = dense.as_function().with_attr("Primitive", 1)
    text = str(lower_kernel("kernel", function, target))
    assert "% 8" not in text
    assert "// 8" not in text


@pytest.mark.parametrize("shape", [(256, 516), (7, 3, 5, 512), (300, 1000)])
def test_elementwise_kernels_are_one_loop_without_divisions(shape):
    """To take a fused index apart took four times the instructions of the work itself."""
    body = relay.nn.relu(var("x", *shape) + var("y", *shape))
    run(body, TARGETS[1])
    for rest in ("", " -mattr=+sse4.1 -vector-width=128"):
        target = Target(TARGETS[1] + rest)
        function = body.as_function().with_attr("Primitive", 1)
        text = str(lower_kernel("kernel", function, target))
        assert "//" not in text
        assert "%" not in text


def test_loops_of_a_transposed_tensor_are_not_taken_apart():
    body = relay.transpose(var("x", 1, 128, 4, 64), (0, 2, 1, 3))
    run(body, TARGETS[1])
    function = body.as_function().with_attr("Primitive", 1)
    assert "//" not in str(lower_kernel("kernel", function, Target(TARGETS[1])))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("transpose_b", [False, True])
def test_narrow_matrices_are_converted_before_the_product(target, transpose_b):
    sides = (var("a", 3, 9, 21), var("b", *((3, 37, 21) if transpose_b else (3, 21, 37))))
    narrow = [relay.cast(x, "float16") for x in sides]
    product = relay.nn.batch_matmul(*narrow, transpose_b=transpose_b, out_dtype="float32")
    assert run(product, target) == "batch_matmul.tile"
    function = product.as_function().with_attr("Primitive", 1)
    assert "widened" in str(lower_kernel("kernel", function, Target(target)))
