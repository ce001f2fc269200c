"""Whole models on devices, against the same models on the processor."""

import numpy as np
import pytest
import run_kernels
from run_kernels import OPENCL

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.errors import ExecutionError, TargetError
from slipway.relay.backend import Executor
from slipway.target import Target


def network():
    """A convolution with padding and bias, a pool, a softmax, and what moves elements."""
    x = relay.var("x", shape=(1, 3, 10, 10))
    w, b = relay.var("w", shape=(8, 3, 3, 3)), relay.var("b", shape=(8,))
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, w, padding=(1, 1), channels=8), b))
    y = relay.nn.max_pool2d(y, pool_size=(2, 2), strides=(2, 2))
    y = relay.concatenate([y, relay.transpose(y, (0, 1, 3, 2))], axis=1)
    y = relay.nn.dense(relay.nn.batch_flatten(y), relay.var("d", shape=(10, 16 * 25)))
    return relay.Function(relay.analysis.free_vars(y), relay.nn.softmax(y))


@pytest.fixture(scope="module")
def params():
    rng = np.random.default_rng(0)
    shapes = {"w": (8, 3, 3, 3), "b": (8,), "d": (10, 400)}
    return {name: rng.standard_normal(s).astype("float32") * 0.2 for name, s in shapes.items()}


@pytest.fixture(scope="module")
def library(params):
    return relay.build(tvm.IRModule.from_expr(network()), target=OPENCL, params=params)


@pytest.fixture(scope="module")
def wanted(params):
    made = relay.build(tvm.IRModule.from_expr(network()), target="llvm", params=params)
    module = graph_executor.GraphModule(made["default"](tvm.cpu(0)))
    module.run(x=given())
    return module.get_output(0).numpy()


def given():
    return np.random.default_rng(1).standard_normal((1, 3, 10, 10)).astype("float32")


def test_a_model_runs_where_its_tensors_are(device, library, wanted):
    module = graph_executor.GraphModule(library["default"](device))
    module.run(x=given())
    output = module.get_output(0)
    assert output.device == device
    np.testing.assert_allclose(output.numpy(), wanted, rtol=1e-5, atol=1e-6)
    # An input that is there already is copied on the device.
    module.set_input("x", tvm.nd.array(given(), device))
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=1e-5, atol=1e-6)
    assert all(seconds > 0 for _, _, seconds in module.profile(number=1, repeat=1))


def test_a_model_runs_in_every_language(any_device, params, wanted):
    target, simulator = run_kernels.current
    made = relay.build(tvm.IRModule.from_expr(network()), target=target, params=params)
    if simulator is not None:
        simulator.learn(made.lib.imported_modules[0])
    module = graph_executor.GraphModule(made["default"](any_device))
    module.run(x=given())
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("ending", ["so", "tar"])
def test_an_exported_model_has_its_kernels(device, library, wanted, tmp_path, ending):
    library.export_library(tmp_path / f"model.{ending}")
    loaded = tvm.runtime.load_module(tmp_path / f"model.{ending}")
    module = graph_executor.GraphModule(loaded["default"](device))
    module.run(x=given())
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=1e-5, atol=1e-6)
    with pytest.raises(ExecutionError, match=r"compiled for opencl.*opencl\(0\)"):
        loaded["default"](tvm.cpu(0))


def test_a_model_for_the_processor_is_refused_on_a_device(device, params):
    made = relay.build(tvm.IRModule.from_expr(network()), target="llvm", params=params)
    with pytest.raises(ExecutionError, match=r"compiled for cpu.*cpu\(0\)"):
        made["default"](device)


def test_an_input_of_another_device_is_said_to_be_there(device, vulkan, library, wanted):
    module = graph_executor.GraphModule(library["default"](device))
    there = tvm.nd.array(given(), vulkan)
    for give in (module.set_input, module.set_input_zero_copy):
        with pytest.raises(
            ExecutionError, match=r"'x' is on a device of kind vulkan, and .* kind opencl"
        ):
            give("x", there)
    module.run(x=given())
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_a_program_is_for_a_processor():
    with pytest.raises(TargetError, match=r"aot\) runs on a processor"):
        relay.build(tvm.IRModule.from_expr(network()), OPENCL, executor=Executor("aot"))


def test_parts_that_are_used_again_are_computed_once(device):
    """Each step uses the one before twice: expanded, the text would double with each."""
    x = relay.var("x", shape=(7,))
    y = x
    for _ in range(24):
        y = relay.multiply(relay.add(y, relay.const(1.0)), relay.sqrt(relay.abs(y)))
        y = relay.subtract(y, relay.floor(y))
    made = relay.build(tvm.IRModule.from_expr(relay.Function([x], y)), target=OPENCL)
    assert len(made.lib.imported_modules[0].get_source()) < 100_000


def test_statements_that_no_schedule_divides_are_one_threads(device):
    x = relay.var("x", shape=(3, 9))
    made = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.argsort(x))), target=OPENCL)
    module = graph_executor.GraphModule(made["default"](device))
    values = np.random.default_rng(2).standard_normal((3, 9)).astype("float32")
    module.run(x=values)
    np.testing.assert_array_equal(module.get_output(0).numpy(), values.argsort(1))


@pytest.mark.parametrize(("data", "weight", "options"), [
    ((1, 32, 12, 12), (24, 32, 3, 3), {"padding": (1, 1)}),
    ((2, 6, 9, 9), (10, 3, 3, 3), {"strides": (2, 2), "groups": 2}),
])  # fmt: skip
def test_tiles_give_the_numbers_of_single_elements(device, data, weight, options):
    x, w = relay.var("x", shape=data), relay.var("w", shape=weight)
    function = relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w, **options)))
    rng = np.random.default_rng(3)
    values = {"x": rng.standard_normal(data), "w": rng.standard_normal(weight)}
    results = []
    for strategy in ("threads.tile", "threads.elements"):
        forced = {"nn.conv2d": {"strategy": strategy}}
        with tvm.transform.PassContext(opt_level=2, config={"schedules.force": forced}):
            made = relay.build(tvm.IRModule.from_expr(function), target=OPENCL)
        module = graph_executor.GraphModule(made["default"](device))
        module.run(**{name: v.astype("float32") for name, v in values.items()})
        results.append(module.get_output(0).numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5, atol=1e-5)


def test_what_follows_a_product_element_by_element_is_in_its_kernel(device):
    """Seen through what is inlined: the sums stay in registers."""
    x, w, b = (
        relay.var("x", shape=(4, 24)),
        relay.var("w", shape=(8, 24)),
        relay.var("b", shape=(8,)),
    )
    function = relay.Function([x, w, b], relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, w), b)))
    made = relay.build(tvm.IRModule.from_expr(function), target=OPENCL)
    assert len(made.lib.imported_modules[0].kernels) == 1


def products():
    """A dense layer of sizes that tiles do not divide, with what follows it; three products."""
    x, w, b = (
        relay.var("x", shape=(61, 48)),
        relay.var("w", shape=(67, 48)),
        relay.var("b", shape=(67,)),
    )
    dense = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, w), b))
    y, z = relay.var("y", shape=(3, 40, 37)), relay.var("z", shape=(3, 33, 37))
    return relay.Function([x, w, b, y, z], relay.Tuple([dense, relay.nn.batch_matmul(y, z)]))


@pytest.mark.parametrize("knobs", [
    {},
    pytest.param({"block_rows": 16, "block_columns": 64, "rows": 2, "columns": 4, "depth": 16},
                 marks=pytest.mark.long),
    pytest.param({"block_rows": 32, "block_columns": 16, "rows": 8, "columns": 1, "depth": 8},
                 marks=pytest.mark.long),
])  # fmt: skip
def test_products_in_shared_memory(any_device, knobs):
    target, simulator = run_kernels.current
    shared = {"strategy": "threads.shared", **knobs}
    forced = {"nn.dense": shared, "nn.batch_matmul": shared}
    with tvm.transform.PassContext(opt_level=3, config={"schedules.force": forced}):
        made = relay.build(tvm.IRModule.from_expr(products()), target=target)
    code = made.lib.imported_modules[0]
    assert len(code.kernels) == 2
    if simulator is not None:
        simulator.learn(code)
    rng = np.random.default_rng(5)
    shapes = {"x": (61, 48), "w": (67, 48), "b": (67,), "y": (3, 40, 37), "z": (3, 33, 37)}
    given = {name: rng.standard_normal(s).astype("float32") for name, s in shapes.items()}
    module = graph_executor.GraphModule(made["default"](any_device))
    module.run(**given)
    first = np.maximum(given["x"] @ given["w"].T + given["b"], 0)
    second = given["y"] @ given["z"].transpose(0, 2, 1)
    np.testing.assert_allclose(module.get_output(0).numpy(), first, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(module.get_output(1).numpy(), second, rtol=1e-4, atol=1e-4)


def test_products_are_in_shared_memory_where_threads_run_in_step():
    mod = tvm.IRModule.from_expr(products())
    for target, is_shared in (("opencl", False), ("opencl -thread_warp_size=16", True)):
        made = relay.build(mod, target=tvm.target.Target(target, host="llvm"))
        assert ("__local" in made.lib.imported_modules[0].get_source()) is is_shared


def convolutions():
    """Sizes that tiles do not divide; groups, strides, dilation, channels last, one dimension."""
    x = relay.var("x", shape=(2, 66, 9, 9))
    first = relay.nn.conv2d(
        x, relay.var("a", shape=(68, 33, 3, 3)), groups=2, strides=(2, 1), padding=(1, 2, 0, 1)
    )
    y = relay.var("y", shape=(1, 9, 10, 33))
    last = relay.nn.conv2d(
        y, relay.var("b", shape=(3, 2, 33, 36)), dilation=(2, 1), padding=(1, 0),
        data_layout="NHWC", kernel_layout="HWIO",
    )  # fmt: skip
    line = relay.nn.conv1d(
        relay.var("z", shape=(3, 7, 15)), relay.var("c", shape=(35, 7, 5)), padding=2
    )
    outputs = [relay.nn.relu(first), relay.nn.relu(last), line]
    return relay.Function(relay.analysis.free_vars(relay.Tuple(outputs)), relay.Tuple(outputs))


@pytest.mark.parametrize("knobs", [
    {"block_rows": 16, "block_columns": 32, "rows": 2, "columns": 4, "depth": 16},
    pytest.param({}, marks=pytest.mark.long),
    pytest.param({"block_rows": 64, "block_columns": 32, "rows": 8, "columns": 2, "depth": 8},
                 marks=pytest.mark.long),
])  # fmt: skip
def test_convolutions_in_shared_memory(any_device, knobs):
    target, simulator = run_kernels.current
    shared = {"strategy": "threads.shared", **knobs}
    forced = {"nn.conv2d": shared, "nn.conv1d": shared}
    mod = tvm.IRModule.from_expr(convolutions())
    with tvm.transform.PassContext(opt_level=3, config={"schedules.force": forced}):
        made = relay.build(mod, target=target)
    code = made.lib.imported_modules[0]
    assert len(code.kernels) == 3
    if simulator is not None:
        simulator.learn(code)
    rng = np.random.default_rng(6)
    given = {
        p.name_hint: rng.standard_normal(p.type_annotation.shape).astype("float32")
        for p in mod["main"].params
    }
    module = graph_executor.GraphModule(made["default"](any_device))
    module.run(**given)
    host = graph_executor.GraphModule(relay.build(mod, target="llvm")["default"](tvm.cpu(0)))
    host.run(**given)
    for i in range(3):
        wanted = host.get_output(i).numpy()
        np.testing.assert_allclose(module.get_output(i).numpy(), wanted, rtol=1e-4, atol=1e-4)


def test_convolutions_are_in_shared_memory_where_threads_run_in_step():
    x, w = relay.var("x", shape=(1, 64, 14, 14)), relay.var("w", shape=(64, 64, 3, 3))
    few = relay.var("few", shape=(64, 1, 3, 3))  # one channel of each: no product
    conv = relay.nn.conv2d(x, w, padding=(1, 1))
    mod = tvm.IRModule.from_expr(
        relay.Function([x, w, few], relay.nn.conv2d(conv, few, padding=(1, 1), groups=64))
    )
    for target, count in (("opencl", 0), ("opencl -thread_warp_size=16", 2)):
        made = relay.build(mod, target=tvm.target.Target(target, host="llvm"))
        text = made.lib.imported_modules[0].get_source()
        assert text.count("__local float") == count


@pytest.mark.parametrize(("window", "strides", "groups"), [(4, 2, 1), (3, 2, 1), (4, 2, 6)])
def test_transposed_convolutions_are_convolutions(any_device, window, strides, groups):
    """Of whose tiles a thread has one, where it asked of every tap whether it is on the image."""
    target, simulator = run_kernels.current
    weights = run_kernels.random(6, 8 if groups == 1 else 1, window, window)
    x = relay.var("x", shape=(1, 6, 9, 7))
    body = relay.nn.relu(
        relay.nn.conv2d_transpose(
            x, relay.const(weights), kernel_size=(window, window), strides=(strides, strides),
            padding=(1, 1), channels=weights.shape[1] * groups, groups=groups,
        )
    )  # fmt: skip
    mod = tvm.IRModule.from_expr(relay.Function([x], body))
    made = relay.build(mod, target=target)
    assert not any("conv2d_transpose" in name for name in made.graph.kernels)
    if simulator is not None:
        simulator.learn(made.lib.imported_modules[0])
    module = graph_executor.GraphModule(made["default"](any_device))
    values = run_kernels.random(1, 6, 9, 7, seed=3)
    module.run(x=values)
    host = graph_executor.GraphModule(relay.build(mod, target="llvm")["default"](tvm.cpu(0)))
    host.run(x=values)
    wanted = host.get_output(0).numpy()
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [7, 130])
def test_values_of_four_bits_come_from_the_device_packed(any_device, size):
    """An odd number ends with half a byte; on some devices a kernel cannot write bytes."""
    target, simulator = run_kernels.current
    x = relay.var("x", shape=(size,))
    function = relay.Function([x], relay.cast(x, "int4"))
    made = relay.build(tvm.IRModule.from_expr(function), target=target)
    if simulator is not None:
        simulator.learn(made.lib.imported_modules[0])
    module = graph_executor.GraphModule(made["default"](any_device))
    values = np.random.default_rng(7).uniform(-8, 8, size).astype("float32")
    module.run(x=values)
    found = np.asarray(module.get_output(0).numpy()).astype("int8")
    np.testing.assert_array_equal(found, values.astype("int8"))


def gpus():
    """Return a tag for each GPU that differs from the others in more than its name."""
    found = {}
    for tag in Target.list_tags():
        target = Target(tag, host="llvm")
        if "gpu" in target.keys:
            found.setdefault(str(target), tag)
    return sorted(found.values())


@pytest.mark.parametrize("tag", gpus())
def test_a_model_compiles_for_every_gpu_that_has_a_name(tag, params):
    """Its blocks fit what the tag says that the device has."""
    made = relay.build(
        tvm.IRModule.from_expr(network()), target=Target(tag, host="llvm"), params=params
    )
    assert made.lib.imported_modules[0].get_source()


def test_a_join_of_many_is_fused_with_what_is_around_it(device):
    """A launch costs more than to look in which part an element lies."""
    inputs = [relay.var(f"x{n}", shape=(2, 2)) for n in range(70)]
    joined = relay.concatenate([*inputs[:-1], relay.exp(inputs[-1])], 1)
    function = relay.Function(inputs, relay.nn.relu(joined * relay.const(2.0)))
    library = relay.build(tvm.IRModule.from_expr(function), OPENCL)
    assert len(library.compiled.device.kernels) == 1
    module = graph_executor.GraphModule(library["default"](device))
    parts = [run_kernels.random(2, 2, seed=n) for n in range(70)]
    module.run(**{f"x{n}": part for n, part in enumerate(parts)})
    wanted = 2 * np.maximum(np.concatenate([*parts[:-1], np.exp(parts[-1])], 1), 0)
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=1e-6)
