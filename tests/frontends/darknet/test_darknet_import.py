"""Networks of Darknet: what is imported computes what Darknet's formulas say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.frontends.darknet.darknet_formulas import ACTIVATE, run

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.errors import ModelError
from slipway.relay.frontend.darknet import load_network

HEADER = np.array([0, 2, 0, 0, 0], "<i4").tobytes()

# What YOLO v2 is made of, small: norms, pools, a passthrough (route, reorg), a region.
V2 = """
[net]
batch=64
width = 16
height=16
channels=3
[convolutional]
batch_normalize=1
filters=6
size=3
stride=1
pad=1
activation=leaky
[maxpool]
size=2
stride=2
[convolutional]
batch_normalize=1
filters=8
size=3
pad=1
activation=leaky
[maxpool]
size=2
stride=2
[convolutional]
filters=12
size=3
pad=1
activation=mish
[route]
layers=-3
[convolutional]
batch_normalize=1
filters=4
size=1
activation=leaky
[reorg]
stride=2
[route]
layers=-1,-4
[convolutional]
filters=16
size=1
activation=linear
[region]
anchors = 1.3,1.7, 3.2,4.0
classes=3
coords=4
num=2
softmax=1
"""
# YOLO v3 tiny and v4: a pool of stride 1, two scales, upsampling, a shortcut, groups of channels.
V3 = """
[net]
width=16
height=16
channels=3
[convolutional]
batch_normalize=1
filters=8
size=3
stride=2
pad=1
activation=leaky
[route]
layers=-1
groups=2
group_id=1
[convolutional]
filters=4
size=3
pad=1
activation=swish
[shortcut]
from=-2
activation=linear
[route]
layers=-1,-4
[maxpool]
size=2
stride=2
[maxpool]
size=2
stride=1
[convolutional]
filters=12
size=3
groups=2
pad=1
activation=relu
[convolutional]
filters=14
size=1
activation=linear
[yolo]
mask=2,3
anchors=10,14, 23,27, 37,58, 81,82
classes=2
num=4
[route]
layers=-3
[upsample]
stride=2
[route]
layers=-1, 4
[convolutional]
filters=14
size=1
activation=linear
[yolo]
mask=0,1
anchors=10,14, 23,27, 37,58, 81,82
classes=2
num=4
scale_x_y=1.05
"""
# A classifier: odd sizes, a shortcut over a stride and into fewer channels, dense layers.
CLASSIFIER = """
[net]
width=15
height=13
channels=3
[crop]
crop_height=11
crop_width=13
[convolutional]
filters=6
size=3
pad=1
activation=elu
[convolutional]
batch_normalize=1
filters=4
size=3
stride=2
padding=1
activation=plse
[shortcut]
from=-2
activation=relu
[maxpool]
size=3
stride=2
[l2norm]
[connected]
output=10
activation=tanh
[dropout]
probability=.5
[connected]
output=6
activation=linear
[softmax]
groups=2
temperature=.5
[cost]
type=sse
"""


def written(folder: Path, text: str, seed: int = 0) -> tuple[Path, Path]:
    """Write the network and random weights for it; variances are positive."""
    cfg, weights = folder / "net.cfg", folder / "net.weights"
    cfg.write_text(text)
    rng, numbers = np.random.default_rng(seed), []
    for layer in load_network(cfg).layers:
        for kind in ("input_layer", "self_layer", "output_layer"):
            inner = getattr(layer, kind)
            if inner is not None:
                numbers.append(rng.normal(size=inner.outputs * (inner.inputs + 1)))
        if layer.type.name in ("CONVOLUTIONAL", "CONNECTED"):
            conv = layer.type.name == "CONVOLUTIONAL"
            n = layer.n if conv else layer.outputs
            fan = layer.c // layer.groups * layer.size**2 if conv else layer.inputs
            matrix = rng.normal(size=n * fan) / np.sqrt(fan)
            variance = rng.uniform(0, 1, n) ** 4
            variance[0] = 1e-8  # what is added to its root shows
            scale = rng.uniform(0.5, 2, n) * np.sqrt(variance)
            norm = [scale, rng.normal(size=n) * 0.1, variance] if layer.batch_normalize else []
            parts = [*norm, matrix] if conv else [matrix, *norm]
            numbers += [rng.normal(size=n) * 0.1, *parts]
    flat = np.concatenate(numbers) if numbers else np.zeros(0)
    weights.write_bytes(HEADER + flat.astype("<f4").tobytes())
    return cfg, weights


def outputs(net, **inputs) -> list[np.ndarray]:
    mod, params = relay.frontend.from_darknet(net)
    library = relay.build(mod, "llvm", params=params)
    module = graph_executor.GraphModule(library["default"](tvm.cpu()))
    for name, value in inputs.items():
        module.set_input(name, value)
    module.run()
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


def image(net) -> np.ndarray:
    return np.random.default_rng(7).uniform(size=(1, net.c, net.h, net.w)).astype("float32")


def test_region_with_a_passthrough(tmp_path: Path) -> None:
    cfg, weights = written(tmp_path, V2)
    net = load_network(str(cfg).encode(), str(weights).encode(), 0)
    found = outputs(net, data=image(net))
    wanted = run(cfg, weights, image(net)[0].astype("float64"))
    np.testing.assert_allclose(found[0][0], wanted[-1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], [1.3, 1.7, 3.2, 4.0], rtol=1e-6)
    assert found[2].tolist() == [2, 16, 4, 4, 3, 4, 0]


def test_two_scales(tmp_path: Path) -> None:
    cfg, weights = written(tmp_path, V3)
    net = load_network(cfg, weights)
    found = outputs(net, data=image(net))
    wanted = run(cfg, weights, image(net)[0].astype("float64"))
    assert len(found) == 8
    np.testing.assert_allclose(found[0][0], wanted[-1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[4][0], wanted[9], rtol=1e-4, atol=1e-5)
    assert found[1].tolist() == [0, 1]
    assert found[5].tolist() == [2, 3]
    assert found[2].tolist() == found[6].tolist() == [10, 14, 23, 27, 37, 58, 81, 82]
    assert found[3].tolist() == [2, 14, 8, 8, 2, 4]
    assert found[7].tolist() == [2, 14, 4, 4, 2, 4]


def test_a_classifier_of_odd_sizes(tmp_path: Path) -> None:
    cfg, weights = written(tmp_path, CLASSIFIER)
    net = load_network(cfg, weights)
    wanted = run(cfg, weights, image(net)[0].astype("float64"))
    (found,) = outputs(net, data=image(net))
    np.testing.assert_allclose(found.reshape(-1), wanted[-1].reshape(-1), rtol=1e-4, atol=1e-6)


def test_activations(tmp_path: Path) -> None:
    """One network with every activation, each on the same data."""
    rows = [f"[route]\nlayers=0\n[activation]\nactivation={name}\n" for name in ACTIVATE]
    joined = ",".join(str(2 + 2 * i) for i in range(len(ACTIVATE)))
    text = "[net]\nwidth=64\nheight=1\nchannels=1\n[activation]\nactivation=linear\n"
    cfg, weights = written(tmp_path, text + "".join(rows) + f"[route]\nlayers={joined}\n")
    net = load_network(cfg)
    data = np.linspace(-8, 8, 64, dtype="float32").reshape(1, 1, 1, 64)
    wanted = run(cfg, weights, data[0].astype("float64"))
    (found,) = outputs(net, data=data)
    np.testing.assert_allclose(found[0], wanted[-1], rtol=1e-5, atol=1e-5)


def test_recurrent_layers_give_their_state(tmp_path: Path) -> None:
    text = "[net]\ninputs=5\n[rnn]\noutput=4\nactivation=tanh\n[connected]\noutput=3\n"
    cfg, weights = written(tmp_path, text + "activation=linear\n")
    numbers = np.frombuffer(weights.read_bytes(), "<f4", offset=20).astype("float64")
    parts, at = [], 0
    for n, m in ((4, 5), (4, 4), (4, 4), (3, 4)):
        bias = numbers[at : at + n]
        parts.append((bias, numbers[at + n : at + n + n * m].reshape(n, m)))
        at += n + n * m
    x, state = np.linspace(-1, 1, 5), np.linspace(0, 1, 4)

    def dense(i, value):
        return parts[i][1] @ value + parts[i][0]

    after = np.tanh(dense(0, x)) + np.tanh(dense(1, state))
    wanted = dense(3, np.tanh(dense(2, after)))
    given = {"data": x.reshape(1, 5), "rnn0_state": state.reshape(1, 4)}
    found = outputs(load_network(cfg, weights), **{k: v.astype("f4") for k, v in given.items()})
    np.testing.assert_allclose(found[0][0], wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1][0], after, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("[reorg]", "[dwconv]"), r"not supported:\n  net.cfg, line 38, \[dwconv\]"),
        (("mish", "glu"), "activation=glu is not supported; these are: logistic"),
        (("layers=-3", "layers=-9"), "layer -9 is not before it"),
        (("filters=16", "filters=17"), r"want 16 channels, its data has 17"),
        (("stride=2\n[route]", "stride=3\n[route]"), "stride=3 does not divide 4 x 8 x 8"),
        (("filters=6", "filters=six"), "filters=six: this is not an integer"),
        (("layers=-1,-4", "layers=-1,0"), "they cannot be joined"),
        (("[net]", "net"), "neither a"),
        (("[net]", "[foo]"), r"does not begin with \[net\]"),
        (("width = 16", "width=2"), "is too small for it|does not divide"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, change, told) -> None:
    cfg = tmp_path / "net.cfg"
    cfg.write_text(V2.replace(*change))
    with pytest.raises(ModelError, match=told):
        load_network(cfg)


def test_weights_that_do_not_fit(tmp_path: Path) -> None:
    cfg, weights = written(tmp_path, V2)
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-8])
    with pytest.raises(ModelError, match=r"ends before the weights of net.cfg, line \d+"):
        load_network(cfg, weights)
    weights.write_bytes(whole + bytes(4))
    with pytest.warns(UserWarning, match="4 bytes after the weights"):
        load_network(cfg, weights)
    with pytest.raises(ModelError, match="cannot be read: No such file"):
        load_network(cfg, tmp_path / "none.weights")
    with pytest.raises(ModelError, match=r"the network reads \(1, 3, 16, 16\)"):
        relay.frontend.from_darknet(load_network(cfg), shape=(1, 3, 32, 32))


def test_weights_of_older_versions(tmp_path: Path) -> None:
    """A count of images in four bytes; matrices of connected layers transposed."""
    text = "[net]\ninputs=3\n[connected]\noutput=2\nactivation=linear\n"
    cfg, weights = written(tmp_path, text)
    numbers = np.arange(8, dtype="<f4")
    for header, matrix in (
        ([0, 1, 0, 9], [[2, 3, 4], [5, 6, 7]]),
        ([0, 1001, 0, 9], [[2, 4, 6], [3, 5, 7]]),
    ):
        weights.write_bytes(np.array(header, "<i4").tobytes() + numbers.tobytes())
        assert load_network(cfg, weights).layers[0].weights.tolist() == matrix


def test_pictures_are_scaled_into_the_middle(tmp_path: Path) -> None:
    image_module = pytest.importorskip("PIL.Image")
    from slipway.relay.testing import darknet

    ramp = np.zeros((8, 16, 3), np.uint8)
    ramp[:, :, 0] = np.arange(16) * 10 + 40  # red
    image_module.fromarray(ramp).save(tmp_path / "ramp.png")
    boxed = darknet.load_image(tmp_path / "ramp.png", 32, 24)
    assert boxed.shape == (3, 24, 32)
    assert (boxed[:, :4] == 0.5).all()
    assert (boxed[:, 20:] == 0.5).all()
    # Cubic interpolation keeps a ramp away from its ends; planes are blue, green, red.
    ramp_of = (np.arange(32) + 0.5) / 2 - 0.5
    np.testing.assert_allclose(boxed[2, 8, 4:-4] * 255, (ramp_of * 10 + 40)[4:-4], atol=0.51)
    assert (boxed[:2, 4:20] == 0).all()
    np.testing.assert_array_equal(
        darknet.load_image_color(tmp_path / "ramp.png")[2] * 255, ramp[..., 0]
    )
    with pytest.raises(ModelError, match="cannot be read as a picture"):
        darknet.load_image(__file__, 8, 8)


def test_the_classic_way_to_load_one(tmp_path: Path) -> None:
    from slipway.relay.testing.darknet import LAYERTYPE, __darknetffi__

    cfg, weights = written(tmp_path, V3)
    library = __darknetffi__.dlopen(tmp_path / "libdarknet2.0.so")
    net = library.load_network(str(cfg).encode(), str(weights).encode(), 0)
    assert net.layers[net.n - 1].classes == 2
    assert [layer.type for layer in net.layers].count(LAYERTYPE.YOLO) == 2
    with pytest.raises(AttributeError, match="network_predict is not here"):
        library.network_predict(net, None)
