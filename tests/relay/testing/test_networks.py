"""The networks of relay.testing: the published counts of parameters, typed, and they run."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import TypeInferenceError
from slipway.relay.interpret import interpret


def trained(params):
    """The number of trained values: moments are counted, not trained."""
    return sum(int(np.prod(v.shape)) for n, v in params.items() if not n.endswith(("mean", "var")))


# Counts of the papers' authors or of torchvision; gamma of the first norm of ResNet's data and of
# Inception's norms are there, but not used (scale=False).
@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda: relay.testing.mlp.get_workload(1), 784 * 128 + 128 + 128 * 64 + 64 + 650),
        (lambda: relay.testing.mobilenet.get_workload(), 4231976),
        (lambda: relay.testing.squeezenet.get_workload(), 1248424),
        (lambda: relay.testing.squeezenet.get_workload(version="1.1"), 1235496),
        (lambda: relay.testing.densenet.get_workload(121, batch_size=1), 7978856),
    ],
    ids=["mlp", "mobilenet", "squeezenet1.0", "squeezenet1.1", "densenet121"],
)
def test_the_count_of_parameters_is_the_published_one(make, count):
    mod, params = make()
    assert trained(params) == count
    assert mod["main"].checked_type.ret_type.shape[-1] in (10, 1000)


@pytest.mark.parametrize(("layers", "count"), [(18, 11689512), (34, 21797672), (50, 25557032)])
def test_resnet_has_about_the_parameters_of_the_first_version(layers, count):
    """Pre-activation moves norms; the convolutions and the dense layer are the same."""
    _, params = relay.testing.resnet.get_workload(num_layers=layers)
    weights = sum(int(np.prod(v.shape)) for n, v in params.items() if n.endswith("weight"))
    assert abs(weights - count) < 0.003 * count


@pytest.mark.parametrize(
    ("make", "shape", "classes"),
    [
        (lambda: relay.testing.resnet.get_workload(1, 10, 8, (3, 16, 16)), (1, 3, 16, 16), 10),
        (
            lambda: relay.testing.resnet.get_workload(1, 10, 8, (3, 16, 16), layout="NHWC"),
            (1, 16, 16, 3), 10,
        ),
        (
            lambda: relay.testing.resnet_3d.get_workload(1, 5, 8, (3, 4, 16, 16)),
            (1, 3, 4, 16, 16), 5,
        ),
        pytest.param(
            lambda: relay.testing.vgg.get_workload(1, 10, (3, 32, 32)), (1, 3, 32, 32), 10,
            marks=pytest.mark.long,
        ),
        (lambda: relay.testing.dqn.get_workload(2), (2, 4, 84, 84), 18),
        (lambda: relay.testing.synthetic.get_workload(), (1, 3, 24, 12), 12),
        (lambda: relay.testing.mobilenet.get_workload(1, 7, (3, 32, 32), layout="NHWC"),
         (1, 32, 32, 3), 7),
    ],
    ids=["resnet", "resnet-nhwc", "resnet3d", "vgg", "dqn", "synthetic", "mobilenet-nhwc"],
)  # fmt: skip
def test_a_network_compiles_to_what_the_references_give(make, shape, classes):
    mod, params = make()
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm", params=params)
    module = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    module.run(data=x)
    got = module.get_output(0).numpy()
    want = interpret(mod, data=x, params={n: v.numpy() for n, v in params.items()})
    assert got.shape[-1] == classes
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


def test_inception_and_dcgan_have_their_shapes():
    mod, params = relay.testing.inception_v3.get_workload()
    assert mod["main"].checked_type.ret_type.shape == (1, 1000)
    weights = sum(int(np.prod(v.shape)) for n, v in params.items() if n.endswith("weight"))
    assert weights == 23834568 - 1000 - 2 * 17216  # torchvision's, less bias and norms
    mod, _ = relay.testing.dcgan.get_workload(2, ngf=8)
    assert mod["main"].checked_type.ret_type.shape == (2, 3, 64, 64)


def test_an_lstm_steps_as_its_equations_say():
    mod, params = relay.testing.lstm.get_workload(2, 4)
    rng = np.random.default_rng(1)
    values = {n: rng.standard_normal(v.shape).astype("float32") for n, v in params.items()}
    first, second = (rng.standard_normal((1, 4)).astype("float32") for _ in range(2))

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    h = c = np.zeros((1, 4))
    for i, x in enumerate((first, second)):
        gates = x @ values[f"i2h_{i}_weight"].T + values[f"i2h_{i}_bias"]
        gates = gates + h @ values[f"h2h_{i}_weight"].T + values[f"h2h_{i}_bias"]
        enters, stays, new, leaves = np.split(gates, 4, axis=1)
        c = sigmoid(stays) * c + sigmoid(enters) * np.tanh(new)
        h = sigmoid(leaves) * np.tanh(c)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm", params=values)
    module = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    module.run(data=first, data_1=second)
    np.testing.assert_allclose(module.get_output(0).numpy(), h, rtol=1e-5, atol=1e-6)


def test_weights_are_drawn_from_the_seed_and_named_after_layers():
    _, params = relay.testing.resnet.get_workload(num_layers=18)
    assert {"bn_data_gamma", "conv0_weight", "stage2_unit1_sc_weight", "fc1_bias"} <= set(params)
    once, again = (relay.testing.mlp.get_workload(1)[1]["fc1_weight"].numpy() for _ in range(2))
    np.testing.assert_array_equal(once, again)
    bound = np.sqrt(3 / ((784 + 128) / 2))
    assert 0.99 * bound < np.abs(once).max() <= bound


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda t: t.resnet.get_workload(num_layers=17), "num_layers.*17.*18, 34"),
        (lambda t: t.vgg.get_workload(1, num_layers=12), "num_layers.*11, 13"),
        (lambda t: t.squeezenet.get_workload(version="2"), "version"),
        (lambda t: t.densenet.get_workload(100), "densenet_size"),
        (lambda t: t.create_workload(relay.var("x", shape=(2,)).as_function()), "'x'.*weight"),
    ],
)
def test_what_there_is_not_is_named(make, words):
    with pytest.raises(TypeInferenceError, match=words):
        make(relay.testing)


def test_images_of_a_layout_may_be_given_as_it_has_them():
    for get in (relay.testing.resnet.get_workload, relay.testing.mobilenet.get_workload):
        first, _ = get(image_shape=(3, 64, 64), layout="NHWC")
        last, _ = get(image_shape=(64, 64, 3), layout="NHWC")
        shapes = [module["main"].params[0].type.shape for module in (first, last)]
        assert shapes == [(1, 64, 64, 3)] * 2


def test_the_workload_of_an_expression():
    weight, data = relay.var("weight", shape=(3, 5)), relay.var("data", shape=(2, 5))
    mod, params = relay.testing.create_workload(relay.nn.dense(data, weight))
    assert list(params) == ["weight"]
    assert [p.name for p in mod["main"].params] == ["data", "weight"]
