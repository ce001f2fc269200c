"""relay.quantize: the integers that the settings ask for, computed as NumPy and PyTorch say."""

import numpy as np
import pytest
import torch

import slipway as tvm
from slipway import relay
from slipway.relay.testing import count_ops
from slipway.relay.visit import post_order

RNG = np.random.default_rng(3)


def normal(*shape):
    return RNG.normal(size=shape).astype("float32")


def run(module, x, target="llvm"):
    runner = relay.create_executor("graph", mod=module, device=tvm.cpu(), target=target)
    return runner.evaluate()(x).numpy()


def rounded(values, largest):
    """What symmetric integers of 8 bits say of `values`."""
    scale = np.float64(np.float32(largest / 128))
    return np.clip(np.round(values.astype(np.float64) / scale), -127, 127) * scale


def quantized(function, dataset=None, params=None, **settings):
    with relay.quantize.qconfig(**settings):
        return relay.quantize.quantize(tvm.IRModule.from_expr(function), params, dataset)


def convs(counts):
    return counts.get("nn.conv2d", 0), counts.get("qnn.conv2d_nhwc", 0)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("weight_scale", ["max", "power2"])
def test_a_product_is_that_of_rounded_numbers(target, weight_scale):
    weight, bias, x = normal(6, 16), normal(6), normal(3, 16)
    data = relay.var("data", shape=(3, 16))
    product = relay.nn.bias_add(
        relay.nn.dense(data, relay.var("w", shape=(6, 16))), relay.const(bias)
    )
    made = quantized(
        relay.Function(relay.analysis.free_vars(product), product), None, {"w": weight},
        weight_scale=weight_scale, skip_dense_layer=False, global_scale=3.0,
    )  # fmt: skip
    assert count_ops(made["main"])["qnn.dense_packed"] == 1
    largest = np.abs(weight).max()
    if weight_scale == "power2":
        largest = 2.0 ** np.ceil(np.log2(largest))
    wanted = rounded(x, 3.0) @ rounded(weight, largest).T + bias
    half = 3.0 / 128 * largest / 128 / 2  # the bias is added in steps of the sums
    np.testing.assert_allclose(run(made, x, target), wanted, rtol=1e-5, atol=half + 1e-6)


def two_convs(layout="NCHW"):
    first, bias, second = normal(8, 3, 3, 3), normal(8), normal(4, 8, 3, 3)
    if layout == "NCHW":
        x = relay.var("data", shape=(1, 3, 9, 8))
        kernels, axis, kind = [first, second], 1, "OIHW"
    else:
        x = relay.var("data", shape=(1, 9, 8, 3))
        kernels, axis, kind = [k.transpose(2, 3, 1, 0) for k in (first, second)], 3, "HWIO"
    y = relay.nn.conv2d(x, relay.const(kernels[0]), padding=(1, 1), data_layout=layout,
                        kernel_layout=kind)  # fmt: skip
    y = relay.nn.relu(relay.nn.bias_add(y, relay.const(bias), axis))
    y = relay.nn.conv2d(y, relay.const(kernels[1]), data_layout=layout, kernel_layout=kind)
    return relay.Function([x], y), first, bias, second


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_between_convolutions_there_are_integers(layout):
    function, first, bias, second = two_convs(layout)
    made = quantized(function, weight_scale="max", skip_conv_layers=None, global_scale=4.0)
    assert convs(count_ops(made["main"])) == (0, 2)
    x = normal(1, 3, 9, 8)
    weights = [torch.tensor(rounded(w, np.abs(w).max())) for w in (first, second)]
    y = torch.conv2d(torch.tensor(rounded(x, 4.0)), weights[0], torch.tensor(bias.astype(float)),
                     padding=1).relu()  # fmt: skip
    wanted = torch.conv2d(torch.tensor(rounded(y.numpy(), 4.0)), weights[1]).numpy()
    given = x if layout == "NCHW" else x.transpose(0, 2, 3, 1)
    found = run(made, given)
    found = found if layout == "NCHW" else found.transpose(0, 3, 1, 2)
    # An element between two integers may be rounded otherwise: a step times a weight each.
    step = 4.0 / 128 * np.abs(second).max() * 2
    np.testing.assert_allclose(found, wanted, atol=step)
    assert np.abs(found - wanted).mean() < step / 20


def test_a_simulation_rounds_in_real_numbers():
    function, *_ = two_convs()
    settings = {"weight_scale": "max", "skip_conv_layers": []}
    real = quantized(function, do_simulation=True, **settings)
    assert convs(count_ops(real["main"])) == (2, 0)
    assert "int8" not in str(real)
    x = normal(1, 3, 9, 8)
    np.testing.assert_allclose(run(real, x), run(quantized(function, **settings), x), atol=0.3)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, (1, 1)),  # the first one is left real
        ({"skip_conv_layers": [1]}, (1, 1)),
        ({"skip_conv_layers": [0, 1]}, (2, 0)),
        ({"skip_conv_layers": [], "debug_enabled_ops": ["nn.dense"]}, (2, 0)),
        ({"skip_conv_layers": [], "debug_enabled_ops": ["nn.conv2d"]}, (0, 2)),
    ],
)
def test_what_stays_real_is_asked_for(settings, wanted):
    function, *_ = two_convs()
    assert convs(count_ops(quantized(function, **settings)["main"])) == wanted


def scales(module):
    """The scales at which real numbers become integers."""
    return [
        float(e.args[1].array)
        for e in post_order(module["main"].body)
        if isinstance(e, relay.Call) and getattr(e.op, "name", "") == "qnn.quantize"
    ]


@pytest.mark.parametrize("mode", ["percentile", "kl_divergence"])
def test_scales_come_from_data(mode):
    data = relay.var("data", shape=(1, 1 << 18))
    function = relay.Function([data], relay.nn.dense(data, relay.const(normal(2, 1 << 18))))
    values = RNG.uniform(-1, 1, size=(1, 1 << 18)).astype("float32")
    values[0, 0] = 40.0  # one of a quarter of a million
    (scale,) = scales(
        quantized(
            function, [{"data": values}], calibrate_mode=mode, skip_dense_layer=False,
            calibrate_chunk_by=1,
        )
    )  # fmt: skip
    assert 1.0 <= scale * 128 < 3.0
    values[0, 0] = 0.5
    (scale,) = scales(
        quantized(
            function, ({"data": values} for _ in range(2)), calibrate_mode=mode,
            skip_dense_layer=False,
        )
    )  # fmt: skip
    np.testing.assert_allclose(scale * 128, 1.0, rtol=1e-2)


def test_a_network_with_branches_stays_close():
    x = relay.var("data", shape=(1, 3, 16, 16))
    stem = relay.nn.relu(relay.nn.conv2d(x, relay.const(normal(8, 3, 3, 3) / 5), padding=(1, 1)))
    stem = relay.nn.max_pool2d(stem, (2, 2), (2, 2))
    left = relay.nn.conv2d(stem, relay.const(normal(8, 8, 3, 3) / 8), padding=(1, 1))
    deep = relay.nn.conv2d(stem, relay.const(normal(8, 1, 3, 3) / 3), padding=(1, 1), groups=8)
    y = relay.nn.relu(relay.add(left, deep))
    y = relay.concatenate([y, relay.clip(deep, 0.0, 6.0)], axis=1)
    y = relay.nn.avg_pool2d(y, (2, 2), (2, 2))
    y = relay.nn.conv2d(y, relay.const(normal(10, 16, 1, 1) / 4))
    y = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y))
    function = relay.Function([x], relay.nn.softmax(y))
    samples = [{"data": normal(1, 3, 16, 16)} for _ in range(4)]
    made = quantized(
        function, samples, calibrate_mode="percentile", weight_scale="max", skip_conv_layers=[]
    )
    counts = count_ops(made["main"])
    assert convs(counts) == (0, 3)
    assert counts["qnn.depthwise_conv2d_nhwc"] == 1
    for sample in samples[:2]:
        wanted = run(tvm.IRModule.from_expr(function), sample["data"])
        np.testing.assert_allclose(run(made, sample["data"]), wanted, atol=0.03)


def test_settings_are_checked_and_nest():
    assert relay.quantize.current_qconfig().global_scale == 8.0
    with relay.quantize.qconfig(global_scale=2.0):
        with relay.quantize.qconfig(weight_scale="max"):
            assert relay.quantize.current_qconfig().weight_scale == "max"
        assert relay.quantize.current_qconfig().global_scale == 2.0
    with pytest.raises(tvm.TVMError, match="Did you mean 'global_scale'"):
        relay.quantize.qconfig(global_scal=1.0)
    with pytest.raises(tvm.TVMError, match="global_scale, kl_divergence, percentile"):
        relay.quantize.qconfig(calibrate_mode="kl")
    with pytest.raises(tvm.TVMError, match="2 to 8 bits"):
        relay.quantize.qconfig(nbit_input=16)
    with pytest.raises(tvm.TVMError, match="partition_conversions is not there"):
        relay.quantize.qconfig(partition_conversions="enabled")
    function, *_ = two_convs()
    with pytest.raises(tvm.TVMError, match="needs dataset="):
        quantized(function, calibrate_mode="percentile")
    bad = [{"data": np.full((1, 3, 9, 8), np.nan, "float32")}]
    with pytest.raises(tvm.TVMError, match="not finite"):
        quantized(function, bad, calibrate_mode="percentile", skip_conv_layers=[])
    with pytest.raises(tvm.TVMError, match="quantize takes a module"):
        relay.quantize.quantize("model.onnx")
