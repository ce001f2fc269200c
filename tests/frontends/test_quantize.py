"""`slipway.quantize`: what it writes runs in onnxruntime and, on integers alone, in Slipway."""

import json
import os
import random
from pathlib import Path

import numpy as np
import pytest
from benchmarks.fuzz_importers.damage import mutate_bytes

import slipway
from slipway.compiler.optimize import optimize
from slipway.compiler.quantize.histogram import entropy_range, percentile_range
from slipway.errors import ModelError
from slipway.frontends.onnx.quantize.graph import prepare
from slipway.frontends.onnx.quantize.report import signal_to_noise_db
from slipway.relay.expr import Call
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from graphs import model, small_cnn  # noqa: E402
from onnx import helper  # noqa: E402

RNG = np.random.default_rng(11)
node = helper.make_node


def images(count=6, shape=(1, 3, 16, 16), name="x"):
    return [{name: RNG.standard_normal(shape).astype(np.float32)} for _ in range(count)]


def run_onnxruntime(proto, sample):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, sample)


def normal(*shape):
    return (RNG.standard_normal(shape) * 0.3).astype(np.float32)


def branches():
    """Concat, pools, hard swish, a gate, a transposed convolution, Clip, a MatMul with bias."""
    weights = {
        "w0": normal(6, 3, 3, 3), "w1": normal(6, 6, 1, 1), "b1": normal(6),
        "w2": normal(12, 4, 2, 2),
        "low": np.float32(0), "high": np.float32(2), "w3": normal(4, 7), "b3": normal(7),
        "axes": np.array([2, 3], np.int64), "wg": normal(6, 6, 1, 1),
    }  # fmt: skip
    nodes = [
        node("Conv", ["x", "w0"], ["c0"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("HardSwish", ["c0"], ["h0"]),
        node("MaxPool", ["h0"], ["m0"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("GlobalAveragePool", ["h0"], ["g0"]),
        node("Conv", ["g0", "wg"], ["g1"]),
        node("Sigmoid", ["g1"], ["gate"]),
        node("Mul", ["h0", "gate"], ["gated"]),
        node("Conv", ["gated", "w1", "b1"], ["c1"]),
        node("Clip", ["c1", "low", "high"], ["k1"]),
        node("Concat", ["m0", "k1"], ["joined"], axis=1),
        node("ConvTranspose", ["joined", "w2"], ["t2"], strides=[2, 2]),
        node("AveragePool", ["t2"], ["a2"], kernel_shape=[2, 2], strides=[2, 2]),
        node("ReduceMean", ["a2", "axes"], ["r2"], keepdims=0),
        node("MatMul", ["r2", "w3"], ["p3"]),
        node("Add", ["p3", "b3"], ["y"]),
    ]
    return model(nodes, {"x": ("float32", (1, 3, 16, 16))}, ["y"], weights, opset=18)


def real_operators(module):
    """The operators on float32 that are left in an optimised module."""
    return {
        e.op.name
        for e in post_order(optimize(module)["main"])
        if isinstance(e, Call) and hasattr(e.op, "name")
        and getattr(e.type, "dtype", "") == "float32"
    }  # fmt: skip


@pytest.mark.parametrize("method", ["minmax", "percentile", "entropy"])
def test_methods(method):
    samples = images()
    made = slipway.quantize(small_cnn(), samples, method=method)
    assert {e.operator for e in made.report.layers} >= {"Conv", "Add", "Gemm", "GlobalAveragePool"}
    assert all(e.sqnr_db > 20 for e in made.report.layers), made.report.table()
    (wanted,) = run_onnxruntime(made.onnx, samples[0])
    given = interpret(made.module, **samples[0])
    # One step of the scores before the softmax changes a probability by less than a step.
    np.testing.assert_allclose(given, wanted, atol=made.report.layers[-1].scale)
    assert real_operators(made.module) <= {"qnn.dequantize", "nn.softmax"}
    (real,) = run_onnxruntime(small_cnn(), samples[0])
    assert np.abs(real - given).max() < 0.05


@pytest.mark.parametrize("activations", ["int8", "int16"])
def test_operators_stay_on_integers(activations):
    samples = images()
    made = slipway.quantize(branches(), samples, activations=activations)
    step = made.report.layers[-1].scale
    real = real_operators(made.module)
    if activations == "int8":
        assert real == {"qnn.dequantize"}
    for sample in samples:
        (wanted,) = run_onnxruntime(made.onnx, sample)
        given = interpret(made.module, **sample)
        steps = np.round(np.abs(given - wanted) / step)
        assert steps.max() <= (1 if activations == "int8" else 3)
    lowest = min(e.sqnr_db for e in made.report.layers)
    assert lowest > (20 if activations == "int8" else 35), made.report.table()


def test_16_bits_tell_more():
    samples = images()
    few, many = (
        slipway.quantize(small_cnn(), samples, activations=a).report for a in ("int8", "int16")
    )
    assert min(e.sqnr_db for e in many.layers) > min(e.sqnr_db for e in few.layers) + 3


def test_exclusions():
    samples = images(2)
    names = {n.name: n for n in small_cnn().graph.node}
    assert "fc" in names
    made = slipway.quantize(
        small_cnn(), samples, exclude=["Add"], first=False, last=False, report=True
    )
    kinds = [n.op_type for n in made.onnx.graph.node]
    stored = {e.layer for e in made.report.layers}
    assert stored == {"depthwise1"}, made.report.table()
    assert dict(made.report.kept_real)["fc"] == "excluded"
    assert kinds.count("DequantizeLinear") == 3  # weights, data and result
    with pytest.raises(ModelError, match=r"'fcc', no node. Did you mean 'fc'"):
        slipway.quantize(small_cnn(), samples, exclude=["fcc"])


def test_a_model_is_quantised_once():
    made = slipway.quantize(small_cnn(), images(2), report=False)
    assert made.report is None
    with pytest.raises(ModelError, match="quantised already"):
        slipway.quantize(made.onnx, images(2))


def test_calibration_data(tmp_path):
    """Lists, stacked arrays, .npz and folders of .npy give the same model."""
    samples = images(4)
    stacked = np.stack([s["x"] for s in samples])
    np.savez(tmp_path / "all.npz", x=stacked, labels=np.arange(len(stacked)))  # as validate's
    folder = tmp_path / "each"
    folder.mkdir()
    for index, sample in enumerate(samples):
        np.save(folder / f"{index}.npy", sample["x"])
    forms = [samples, iter(samples), {"x": stacked}, stacked[:, 0], tmp_path / "all.npz", folder]
    made = [
        slipway.quantize(small_cnn(), form, report=False).onnx.SerializeToString() for form in forms
    ]
    assert all(m == made[0] for m in made)
    for wrong, message in (
        ([], "empty"),
        ([{"y": samples[0]["x"]}], "lacks the input 'x'"),
        ([{"x": samples[0]["x"][:, :2]}], r"\(1, 2, 16, 16\) for 'x', not \(1, 3, 16, 16\)"),
        ({"z": stacked}, "no input 'z'"),
        (np.full((1, 3, 16, 16), np.nan, np.float32), "not finite"),
        (7, "not a int"),
    ):
        with pytest.raises(ModelError, match=message):
            slipway.quantize(small_cnn(), wrong)
    with pytest.raises(ModelError, match="Did you mean 'entropy'"):
        slipway.quantize(small_cnn(), samples, method="entropi")


def test_ranges():
    counts = np.zeros(2048, np.int64)
    counts[:1024] = 1000  # all but a few elements lie in the lower half
    counts[-1] = 3
    low, high = percentile_range(counts, (0.0, 8.0), 99.9)
    assert 0.0 <= low < 0.01
    assert 3.98 < high < 4.01
    counts = np.histogram(np.abs(RNG.standard_normal(100000)), 2048, (0, 8))[0]
    counts[-1] = 1  # one outlier among many ordinary values
    assert 3.0 < entropy_range(counts, 8.0, (-1.0, 8.0))[1] < 7.0
    assert entropy_range(counts, 8.0, (-1.0, 8.0))[0] == -1.0


@pytest.mark.parametrize("elements", [2_000, 40_000, 400_000])
def test_entropy_loses_nothing_against_the_whole_range(elements):
    """On normal data of any amount, the clipped range stores it as well as the whole one does."""
    values = np.random.default_rng(5).standard_normal(elements)
    largest = float(np.abs(values).max())
    whole = (float(values.min()), float(values.max()))
    found = entropy_range(np.histogram(np.abs(values), 2048, (0, largest))[0], largest, whole)

    def stored(low, high):
        step = (high - low) / 255
        return signal_to_noise_db(values, np.clip(np.round(values / step) * step, low, high))

    assert stored(*found) >= stored(*whole) - 0.1
    if elements == 2_000:  # too few to tell a tail from chance
        assert found == whole


def test_signal_to_noise():
    real = np.array([3.0, 4.0])
    assert signal_to_noise_db(real, real) == 200.0
    assert signal_to_noise_db(real, real + np.array([0.3, 0.4])) == pytest.approx(20.0)


def test_command(tmp_path):
    testing = pytest.importorskip("typer.testing")
    from slipway.cli.app import app

    path = tmp_path / "cnn.onnx"
    onnx.save(small_cnn(), path)
    np.savez(tmp_path / "data.npz", x=np.concatenate([s["x"] for s in images(3)]))
    target, errors = tmp_path / "cnn_qdq.onnx", tmp_path / "errors.json"
    result = testing.CliRunner().invoke(
        app,
        ["quantize", str(path), "--calibration", str(tmp_path / "data.npz"), "-o", str(target),
         "--report", str(errors)],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert len(json.loads(errors.read_text())["layers"]) == 6
    run_onnxruntime(onnx.load(target), images(1)[0])


@pytest.mark.long
@pytest.mark.parametrize("name", ["mobilenet_v2", "resnet18"])
def test_whole_models(name):
    """Close to the real model, integer from first to last, as what it says in real numbers."""
    path = Path(os.environ.get("SLIPWAY_MODELS", "/tmp/models")) / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{path} is not there: set SLIPWAY_MODELS")
    shape = (1, 3, 224, 224)
    samples = images(4, shape, "input")
    made = slipway.quantize(path, samples)
    assert real_operators(made.module) == {"qnn.dequantize"}
    step = made.report.layers[-1].scale
    from slipway import relay
    from slipway.contrib import graph_executor

    library = relay.build(made.module, "llvm", params=made.params)
    executor = graph_executor.GraphModule(library["default"](slipway.cpu(0)))
    for sample in samples:
        executor.run(**sample)
        (wanted,) = run_onnxruntime(made.onnx, sample)
        steps = np.abs(executor.get_output(0).numpy() - wanted) / step
        # Halves round the other way here and there, and a deep network carries that on.
        assert steps.max() < 4
        assert steps.mean() < 1


def test_one_scale_of_a_tensor_has_rank_0():
    """QuantizeLinear of opset 13 takes one scale as a scalar; onnxruntime refuses shape (1,)."""
    made = slipway.quantize(small_cnn(), images(), per_channel=False)
    scales = {t.name: list(t.dims) for t in made.onnx.graph.initializer if "_scale" in t.name}
    assert scales
    assert set(map(tuple, scales.values())) == {()}


def scaled_model():
    """A convolution whose result is scaled by an input."""
    w = helper.make_tensor("w", 1, (4, 3, 3, 3), normal(4, 3, 3, 3).reshape(-1).tolist())
    return helper.make_model(
        helper.make_graph(
            [node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), node("Mul", ["c", "gain"], ["y"])],
            "scaled",
            [
                helper.make_tensor_value_info("x", 1, (1, 3, 8, 8)),
                helper.make_tensor_value_info("gain", 1, (1,)),
            ],
            [helper.make_tensor_value_info("y", 1, (1, 4, 8, 8))],
            [w],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )


def test_inputs_bound_to_constants_are_no_inputs_of_the_new_model():
    samples, real = images(shape=(1, 3, 8, 8)), scaled_model()
    made = slipway.quantize(real, samples, constants={"gain": 0.5})
    assert [i.name for i in made.onnx.graph.input] == ["x"]
    given = {**samples[0], "gain": np.array([0.5], np.float32)}
    (want,) = run_onnxruntime(real, given)
    (got,) = run_onnxruntime(made.onnx, samples[0])
    assert signal_to_noise_db(want, got) > 25
    with pytest.raises(ModelError, match="no input 'gian'"):
        slipway.quantize(real, samples, constants={"gian": 1})


def test_a_name_that_is_no_text_is_told():
    whole = small_cnn()
    name = whole.graph.node[0].output[0].encode()
    damaged = whole.SerializeToString().replace(name, b"\xf7" * len(name))
    with pytest.raises(ModelError, match="a name that is no UTF-8 text"):
        prepare(damaged)


def test_damaged_models_are_refused_in_words():
    rng = random.Random(5)
    whole = small_cnn().SerializeToString()
    refused = 0
    for _ in range(60):
        try:
            prepare(mutate_bytes(whole, rng))
        except ModelError:
            refused += 1
    assert refused
