"""Images between the kernels of a model: convolutions on texels, shared images, what is none."""

import re

import numpy as np
import pytest
from run_kernels import source

import slipway as tvm
from slipway import relay, rpc
from slipway.backends.gpu.images import fitting, takes_images
from slipway.compiler.graph import plan_storage
from slipway.compiler.memory_plan.images import Image, images_of, shared_images
from slipway.compiler.model_graph import TensorRef
from slipway.contrib import graph_executor
from slipway.errors import ArtifactError, DeviceError
from slipway.runtime.graph.graph_format import GraphTables
from slipway.target import Target

IMAGES = Target("opencl -texture_spatial_limit=16384", host="llvm")
SHAPE = (1, 3, 32, 32)


def constant(rng, *shape):
    scale = max(1, np.prod(shape[1:])) ** -0.5
    return relay.const((rng.standard_normal(shape) * scale).astype("float32"))


def convolution(rng, x, filters, channels, side=3, **attrs):
    made = relay.nn.conv2d(x, constant(rng, filters, channels, side, side), **attrs)
    return relay.nn.relu(relay.nn.bias_add(made, constant(rng, filters)))


def network():
    """Dense and depthwise convolutions with padding and strides, sums, joins, pools, a product."""
    rng = np.random.default_rng(1)
    x = relay.var("x", shape=SHAPE)
    y = convolution(rng, x, 16, 3, padding=1, strides=2)
    y = convolution(rng, y, 16, 1, padding=1, groups=16)
    y = relay.nn.conv2d(y, constant(rng, 24, 16, 1, 1))
    y = relay.nn.relu(relay.nn.conv2d(y, constant(rng, 24, 24, 3, 3), padding=1) + y)
    y = relay.nn.max_pool2d(y, (2, 2), strides=(2, 2))
    y = relay.concatenate([y, convolution(rng, y, 8, 24, side=1)], axis=1)
    y = convolution(rng, y, 30, 32, padding=1)  # not whole blocks of four
    y = relay.nn.avg_pool2d(y, (3, 3), strides=(2, 2), padding=(1, 1), count_include_pad=False)
    y = convolution(rng, y, 32, 30, side=1)
    y = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y))
    return relay.Function([x], relay.nn.softmax(relay.nn.dense(y, constant(rng, 10, 32))))


def given():
    return np.random.default_rng(2).standard_normal(SHAPE).astype("float32")


def outcome(factory, device):
    module = graph_executor.GraphModule(factory["default"](device))
    module.run(x=given())
    return module.get_output(0).numpy()


@pytest.fixture(scope="module")
def library():
    return relay.build(tvm.IRModule.from_expr(network()), target=IMAGES)


@pytest.fixture(scope="module")
def wanted():
    made = relay.build(tvm.IRModule.from_expr(network()), target="llvm")
    return outcome(made, tvm.cpu(0))


def test_a_network_whose_convolutions_read_images(device, library, wanted):
    """The numbers of the processor, and of the same network without images."""
    np.testing.assert_allclose(outcome(library, device), wanted, rtol=1e-5, atol=1e-7)
    plain = relay.build(tvm.IRModule.from_expr(network()), target=Target("opencl", host="llvm"))
    assert "image2d_t" not in source(plain.lib)
    np.testing.assert_allclose(outcome(plain, device), wanted, rtol=1e-5, atol=1e-7)


def test_weights_and_activations_are_texels(library):
    text = source(library.lib)
    kernels = re.findall(r"^void \w*conv2d_nchwc\w*\(.*?^}", text, re.M | re.S)
    assert len(kernels) == 7
    for kernel in kernels:
        assert kernel.count("__read_only image2d_t") >= 2
        assert kernel.count("__write_only image2d_t") == 1
        assert kernel.count("write_imagef") >= 1
    pads = next(k for k in kernels if "depthwise" in k)
    # A texel of the padded image is asked for once, for all of its numbers.
    assert pads.count("read_imagef") == 2


def test_tensors_share_images_that_are_free(library):
    """Of one width and not alive together; parameters have theirs to themselves."""
    graph = library.graph
    alone = images_of(graph)
    made = [ref for ref in alone if graph.nodes[ref.node].function]
    storage = plan_storage(graph, alignment=512)
    images = {storage.of(*ref_of(ref)).group for ref in made}
    assert len(images) < len(made)
    weights = [ref for ref in alone if ref not in made]
    assert len({storage.of(*ref_of(ref)).group for ref in weights}) == len(weights)
    planned = {storage.of(*ref_of(ref)).group: storage.of(*ref_of(ref)).image for ref in made}
    held = sum(image.size_bytes for image in planned.values())
    assert held < sum(alone[ref].size_bytes for ref in made)
    assert storage.image_bytes == held
    assert library.metadata["memory"]["workspace_bytes"] == storage.plan.size_bytes + held
    names = {a.texels for a in library.tables.arenas if a.texels}
    assert {16, 8} <= names


def ref_of(ref):
    return ref.node, ref.index


def test_who_shares_an_image():
    a, b, c, d, w = (TensorRef(n) for n in range(5))
    images = {a: Image(8, 4, 32), b: Image(8, 6, 32), c: Image(8, 2, 32), d: Image(9, 2, 32),
              w: Image(8, 6, 32)}  # fmt: skip
    of, made = shared_images(images, {a: (0, 1), b: (1, 2), c: (2, 3), d: (2, 3)})
    assert of[a] == of[c] != of[b]  # c after a; b is alive with both
    assert len({of[b], of[d], of[w], of[a]}) == 4  # another width; a parameter
    assert made[of[a]].rows == 4


def test_tensors_of_float16_are_images_of_halves(device):
    """What a float16 model keeps in 16 bits between kernels; its convolutions are widened."""
    rng = np.random.default_rng(4)
    weights = [(rng.standard_normal((n, n, 3, 3)) / 9).astype("float16") for n in (16, 16)]
    x = relay.var("x", shape=(1, 16, 12, 12), dtype="float16")
    y = relay.nn.relu(relay.nn.conv2d(x, relay.const(weights[0]), padding=1))
    y = relay.nn.max_pool2d(y, (2, 2), strides=(2, 2))
    y = relay.nn.conv2d(y, relay.const(weights[1]), padding=1)
    mod = tvm.IRModule.from_expr(relay.Function([x], y))
    data = rng.standard_normal((1, 16, 12, 12)).astype("float16")
    library = relay.build(mod, target=IMAGES)
    assert {a.bits for a in library.tables.arenas if a.texels} == {16, 32}
    found = []
    for target in (IMAGES, Target("opencl", host="llvm")):
        built = relay.build(mod, target=target)
        module = graph_executor.GraphModule(built["default"](device))
        module.run(x=data)
        found.append(module.get_output(0).numpy())
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("ending", ["so", "tar"])
def test_an_exported_model_has_its_images(device, library, wanted, tmp_path, ending):
    library.export_library(tmp_path / f"model.{ending}")
    loaded = tvm.runtime.load_module(tmp_path / f"model.{ending}")
    np.testing.assert_allclose(outcome(loaded, device), wanted, rtol=1e-5, atol=1e-7)


def test_tables_and_json_tell_of_images(device, library, wanted):
    tables = library.tables
    assert GraphTables.from_binary(tables.to_binary()) == tables
    read = GraphTables.from_json(tables.to_json(4))
    assert sorted(a.texels for a in read.arenas) == sorted(a.texels for a in tables.arenas)
    module = graph_executor.create(library.get_graph_json(), library.get_lib(), device)
    module.set_input(**library.get_params())
    module.run(x=given())
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=1e-5, atol=1e-7)
    with pytest.raises(ArtifactError, match="version 5"):
        binary = tables.to_binary()
        GraphTables.from_binary(binary[:4] + b"\5" + binary[5:])


def test_over_rpc(device, library, wanted, tmp_path):
    library.export_library(tmp_path / "model.tar")
    server = rpc.Server("127.0.0.1", 0)
    remote = rpc.connect("127.0.0.1", server.port)
    remote.upload(tmp_path / "model.tar")
    loaded = remote.load_module("model.tar")
    np.testing.assert_allclose(outcome(loaded, remote.cl(0)), wanted, rtol=1e-5, atol=1e-7)
    server.terminate()


def test_two_models_share_parameters_of_images(device, library, wanted):
    """One image is copied to another on the device."""
    first = graph_executor.GraphModule(library["default"](device))
    bare = graph_executor.GraphModule(library.without_params()["default"](device))
    bare.module["share_params"](first.module)
    bare.run(x=given())
    np.testing.assert_allclose(bare.get_output(0).numpy(), wanted, rtol=1e-5, atol=1e-7)


def test_which_targets_have_images():
    for tag in ("qualcomm/adreno-6xx", "qualcomm/adreno-7xx"):
        assert takes_images(Target(tag))
    assert takes_images(IMAGES)
    for other in ("opencl", "arm/mali-valhall", "vulkan", "cuda"):
        assert not takes_images(Target(other))


def test_what_is_too_large_stays_in_memory(device, wanted):
    """A side of 20 texels: some tensors are images, others not."""
    small = Target("opencl -texture_spatial_limit=20", host="llvm")
    made = relay.build(tvm.IRModule.from_expr(network()), target=small)
    images = [a.texels for a in made.tables.arenas if a.texels]
    full = relay.build(tvm.IRModule.from_expr(network()), target=IMAGES)
    assert 0 < len(images) < len([a for a in full.tables.arenas if a.texels])
    np.testing.assert_allclose(outcome(made, device), wanted, rtol=1e-5, atol=1e-7)
    shape, scopes = (4, 8, 3, 3, 4, 4), ("global.texture-weight", "global.texture")
    assert fitting(shape, scopes, IMAGES) == scopes[0]
    assert fitting(shape, scopes, Target("opencl -texture_spatial_limit=287")) == ""
    assert fitting(shape, scopes, Target("opencl -texture_spatial_limit=288")) == scopes[0]


def test_volumes_are_images(device):
    rng = np.random.default_rng(5)
    shape = (1, 8, 4, 6, 6)
    x = relay.var("x", shape=shape)
    y = relay.nn.relu(relay.nn.conv3d(x, constant(rng, 8, 8, 3, 3, 3), padding=1))
    y = relay.nn.conv3d(y, constant(rng, 8, 1, 3, 3, 3), padding=1, groups=8)
    y = relay.nn.max_pool3d(y, (2, 2, 2), strides=(2, 2, 2))
    module = tvm.IRModule.from_expr(relay.Function([x], y))
    data, got = rng.standard_normal(shape).astype("float32"), []
    for target, where in ((Target("llvm"), tvm.cpu(0)), (IMAGES, device)):
        made = relay.build(module, target=target)
        run = graph_executor.GraphModule(made["default"](where))
        run.run(x=data)
        got.append(run.get_output(0).numpy())
    np.testing.assert_allclose(got[1], got[0], rtol=1e-5, atol=1e-6)
    assert len([a for a in made.tables.arenas if a.texels]) == 2 + 3  # weights; what is read


def test_images_beside_a_processor(device):
    """What crosses from one device to the other is memory; between the GPU's kernels are images."""
    rng = np.random.default_rng(5)
    x = relay.var("x", shape=SHAPE)
    y = convolution(rng, convolution(rng, x, 8, 3, padding=1), 8, 8, padding=1, strides=2)
    y = relay.tanh(relay.annotation.on_device(y, device))
    y = convolution(rng, convolution(rng, y, 12, 8), 8, 12, side=1)
    y = relay.nn.batch_flatten(relay.annotation.on_device(y, device))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(y)))
    made = relay.build(module, {"cpu": "llvm", "opencl": "opencl -texture_spatial_limit=16384"})
    kinds = {(arena.device_type, arena.texels > 0) for arena in made.tables.arenas}
    assert kinds == {(1, False), (4, False), (4, True)}
    run = graph_executor.GraphModule(made["default"](tvm.cpu(0), device))
    run.run(x=given())
    wanted = outcome(relay.build(module, "llvm"), tvm.cpu(0))
    np.testing.assert_allclose(run.get_output(0).numpy(), wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("tag", ["qualcomm/adreno-6xx", "qualcomm/adreno-7xx"])
def test_tags_of_phones(device, wanted, tag):
    """Their threads run in step, and pools over the image are of several threads."""
    made = relay.build(tvm.IRModule.from_expr(network()), target=Target(tag, host="llvm"))
    np.testing.assert_allclose(outcome(made, device), wanted, rtol=1e-5, atol=1e-7)


def test_a_device_without_images_says_so(library, simulators):
    simulators("cuda")
    host = tvm.get_global_func("slipway.device.alloc_image")
    with pytest.raises(DeviceError, match="cuda has no images here"):
        host(2, 0, 8, 8, 32)


def test_results_of_a_network_in_images_are_none(device):
    """What a model returns, and what is read by no window, is memory like any."""
    rng = np.random.default_rng(3)
    x = relay.var("x", shape=(1, 8, 6, 6))
    y = relay.nn.conv2d(x, constant(rng, 8, 8, 3, 3), padding=1)
    function = relay.Function([x], relay.Tuple([y, relay.tanh(y)]))
    data = rng.standard_normal((1, 8, 6, 6)).astype("float32")
    got = []
    for target, where in ((Target("llvm"), tvm.cpu(0)), (IMAGES, device)):
        made = relay.build(tvm.IRModule.from_expr(function), target=target)
        module = graph_executor.GraphModule(made["default"](where))
        module.run(x=data)
        got.append([module.get_output(k).numpy() for k in range(2)])
    for a, b in zip(*got, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
