"""Networks over NHWC are computed as those over NCHW are, with copies at their ends alone."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.backends.cpu.lowering.channels_first import channels_first
from slipway.contrib import graph_executor
from slipway.relay.interpret import interpret
from slipway.relay.testing import mobilenet, resnet
from slipway.relay.visit import post_order
from slipway.transform.graph.infer_type import infer_type
from slipway.tuning.task import extract_tasks

RNG = np.random.default_rng(5)


def constant(*shape):
    return relay.const(RNG.standard_normal(shape).astype("float32"))


def calls(function):
    return [e for e in post_order(function.body) if isinstance(e, relay.Call)]


def chain(weight_is_known=True):
    """Two convolutions, one of each channel, with a bias and a pool between."""
    x = relay.var("x", shape=(1, 12, 11, 5))
    w = constant(3, 3, 5, 16) if weight_is_known else relay.var("w", shape=(3, 3, 5, 16))
    one = relay.nn.conv2d(x, w, padding=1, channels=16, kernel_size=3,
                          data_layout="NHWC", kernel_layout="HWIO")  # fmt: skip
    one = relay.nn.relu(relay.nn.bias_add(one, constant(16), axis=3))
    one = relay.nn.max_pool2d(one, 2, 2, layout="NHWC")
    two = relay.nn.conv2d(one, constant(3, 3, 16, 1), padding=1, channels=16, groups=16,
                          kernel_size=3, data_layout="NHWC", kernel_layout="HWOI")  # fmt: skip
    out = relay.multiply(two, constant(1, 1, 1, 16))
    return relay.Function([x] if weight_is_known else [x, w], out)


def test_copies_are_left_at_the_ends():
    made = calls(infer_type(channels_first(infer_type(chain()))))
    convs = [c for c in made if c.op.name == "nn.conv2d"]
    assert [c.attrs.data_layout for c in convs] == ["NCHW", "NCHW"]
    copied = [c for c in made if c.op.name == "layout_transform" and c.tensor_type.rank == 4]
    data = [c for c in copied if not isinstance(c.args[0], relay.Constant)]
    assert [(c.attrs.src_layout, c.attrs.dst_layout) for c in data] == [
        ("NHWC", "NCHW"), ("NCHW", "NHWC"),
    ]  # fmt: skip


def test_weights_that_are_not_known_stay_as_they_lie():
    convs = [c for c in calls(channels_first(infer_type(chain(False)))) if "conv" in c.op.name]
    assert convs[0].attrs.data_layout == "NHWC"


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3"])
def test_a_chain_computes_the_same(target):
    module = tvm.IRModule.from_expr(chain())
    x = RNG.standard_normal((1, 12, 11, 5)).astype("float32")
    with tvm.transform.PassContext(opt_level=3):
        graph = graph_executor.GraphModule(relay.build(module, target)["default"](tvm.cpu()))
    graph.run(x=x)
    np.testing.assert_allclose(graph.get_output(0).numpy(), interpret(module, x), 1e-4, 1e-4)


@pytest.mark.parametrize(("rank", "layout"), [(1, "NWC"), (3, "NDHWC")])
def test_lines_and_volumes_too(rank, layout):
    x = relay.var("x", shape=(1, *[6] * rank, 4))
    make = {1: relay.nn.conv1d, 3: relay.nn.conv3d}[rank]
    out = make(x, constant(*[3] * rank, 4, 8), padding=(1,) * rank, channels=8,
               kernel_size=(3,) * rank, data_layout=layout,
               kernel_layout=layout[1:-1] + "IO")  # fmt: skip
    module = tvm.IRModule.from_expr(relay.Function([x], out))
    data = RNG.standard_normal((1, *[6] * rank, 4)).astype("float32")
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(module, "llvm")
    assert not any("_channels_last" in name for name in lib.graph.kernels)
    graph = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    graph.run(x=data)
    np.testing.assert_allclose(graph.get_output(0).numpy(), interpret(module, data), 1e-4, 1e-4)


@pytest.mark.parametrize("network", [mobilenet, resnet])
def test_a_network_has_the_kernels_of_the_other_layout(network):
    """What tutorials of tuning build was 13 (MobileNet) to 40 times (ResNet-18) as slow."""
    kernels = []
    for layout, shape in (("NHWC", (32, 32, 3)), ("NCHW", (3, 32, 32))):
        module, params = network.get_workload(batch_size=1, layout=layout, image_shape=shape)
        with tvm.transform.PassContext(opt_level=3):
            tasks = extract_tasks(module, tvm.target.Target("llvm"), params)
        kernels.append({t.op for t in tasks if "conv" in t.op})
    assert kernels[0] == kernels[1]
