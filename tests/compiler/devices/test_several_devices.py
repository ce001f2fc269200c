"""Models whose operators run on several kinds of device: placement, copies, memory, loading."""

import numpy as np
import pytest
from typer.testing import CliRunner

import slipway as tvm
from slipway import relay, rpc
from slipway.cli.app import app
from slipway.contrib import graph_executor
from slipway.errors import ArtifactError, ExecutionError, LoweringError, TargetError
from slipway.inspect.bisect import find_kernel, trace_of
from slipway.report.make import make_report
from slipway.runtime.graph.graph_format import Arena, GraphTables
from slipway.runtime.model_devices import ModelDevices

CPU, OPENCL, VULKAN = 1, 4, 7
TARGETS = {"cpu": "llvm", "opencl": "opencl"}


@pytest.fixture(scope="module")
def opencl():
    """The first OpenCL device."""
    if not tvm.opencl(0).exist:
        pytest.skip("no OpenCL device: apt-get install pocl-opencl-icd ocl-icd-libopencl1")
    return tvm.opencl(0)


def marked():
    """A convolution on OpenCL, a dense layer on Vulkan, the rest unmarked."""
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=(1, 3, 9, 9))
    weight = rng.normal(size=(8, 3, 3, 3)).astype("float32")
    made = relay.nn.relu(relay.nn.conv2d(x, relay.const(weight), channels=8, kernel_size=(3, 3)))
    seen = relay.annotation.on_device(made, tvm.opencl(0))
    pooled = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(seen))
    scores = relay.nn.dense(pooled, relay.var("v", shape=(8, 8)))
    scores = relay.annotation.on_device(scores, "vulkan")
    halves = relay.split(scores, 2, axis=1)
    results = (relay.nn.softmax(scores), halves[0] + halves[1], seen, x)
    mod = tvm.IRModule.from_expr(
        relay.Function(relay.analysis.free_vars(relay.Tuple(results)), relay.Tuple(results))
    )
    params = {"v": rng.normal(size=(8, 8)).astype("float32")}
    return mod, params, rng.normal(size=(1, 3, 9, 9)).astype("float32")


def outputs(module, **inputs):
    """Run a graph module, and return what it gives."""
    module.set_input(**inputs)
    module.run()
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


def same(one, other):
    """Whether two lists of results agree."""
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_three_kinds_of_device_in_one_model(opencl, tmp_path):
    if not tvm.vulkan(0).exist:
        pytest.skip("no Vulkan device: apt-get install libvulkan1 mesa-vulkan-drivers")
    mod, params, x = marked()
    expected = outputs(
        graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](tvm.cpu(0))),
        x=x,
    )
    lib = relay.build(mod, {**TARGETS, "vulkan": "vulkan"}, params=params)
    where = {node.name: kind for node, kind in zip(lib.graph.nodes, lib.graph.devices, strict=True)}
    assert where["tvmgen_default_fused_nn_conv2d_nn_relu"] == OPENCL
    assert where["tvmgen_default_fused_nn_global_avg_pool2d"] == VULKAN  # read by dense alone
    assert where["tvmgen_default_fused_nn_softmax"] == CPU
    copies = [
        kind
        for node, kind in zip(lib.graph.nodes, lib.graph.devices, strict=True)
        if node.function == "__copy"
    ]
    assert copies == [
        OPENCL,
        VULKAN,
        CPU,
    ]  # x; the convolution's; the scores, once for both readers
    devices = (tvm.cpu(0), opencl, tvm.vulkan(0))
    same(outputs(graph_executor.GraphModule(lib["default"](*devices)), x=x), expected)
    lib.export_library(tmp_path / "model.so")
    loaded = tvm.runtime.load_module(tmp_path / "model.so")
    module = graph_executor.GraphModule(loaded["default"](*devices))
    assert [module.get_output(i).device.device_type for i in range(4)] == [CPU, CPU, OPENCL, CPU]
    same(outputs(module, x=x), expected)
    json, code, values = lib  # the classic three
    same(outputs(graph_executor.create(json, code, list(devices)), x=x, **values), expected)


def unmarked():
    """A dense layer, a sort of its results, and a branch; with its answer for given inputs."""
    rng = np.random.default_rng(1)
    weight = rng.normal(size=(40, 6)).astype("float32")
    x, flag = relay.var("x", shape=(2, 6)), relay.var("flag", shape=(), dtype="bool")
    best = relay.topk(relay.nn.dense(x, relay.const(weight)), k=3, ret_type="values")
    wide = relay.nn.dense(best, relay.const(weight[:5, :3].copy()))
    chosen = relay.If(
        flag, relay.sort(wide, axis=1), relay.nn.dense(wide, relay.const(weight[:5, :5].copy()))
    )
    mod = tvm.IRModule.from_expr(relay.Function([x, flag], relay.exp(chosen * relay.const(0.1))))

    def expected(value, taken):
        ordered = -np.sort(-(value @ weight.T), axis=1)[:, :3]
        middle = ordered @ weight[:5, :3].T
        return np.exp(0.1 * (np.sort(middle, axis=1) if taken else middle @ weight[:5, :5].T))

    return mod, expected, rng.normal(size=(2, 6)).astype("float32")


def test_without_marks_what_threads_cannot_share_is_on_the_processor(opencl, tmp_path):
    mod, expected, x = unmarked()
    lib = relay.build(mod, [tvm.target.Target("opencl"), tvm.target.Target("llvm")])
    kinds = {node.name: kind for node, kind in zip(lib.graph.nodes, lib.graph.devices, strict=True)}
    assert {kind for name, kind in kinds.items() if "dense" in name and "branch" not in name} == {
        OPENCL
    }
    assert {kind for name, kind in kinds.items() if "topk" in name or "branch" in name} == {CPU}
    lib.export_library(tmp_path / "model.tar")
    server = rpc.Server("127.0.0.1", 0)
    remote = rpc.connect("127.0.0.1", server.port)
    remote.upload(tmp_path / "model.tar")
    there = remote.load_module("model.tar")
    for module in (
        graph_executor.GraphModule(lib["default"](opencl)),  # cpu(0) goes without saying
        graph_executor.GraphModule(there["default"](remote.cpu(0), remote.cl(0))),
    ):
        for taken in (True, False):
            (got,) = outputs(module, x=x, flag=np.array(taken))
            np.testing.assert_allclose(got, expected(x, taken), rtol=2e-5)
    server.terminate()


def test_control_flow_of_a_model_for_one_gpu_is_on_its_processor(opencl, tmp_path):
    mod, expected, x = unmarked()
    lib = relay.build(mod, "opencl")
    kinds = {node.name: kind for node, kind in zip(lib.graph.nodes, lib.graph.devices, strict=True)}
    assert {kind for name, kind in kinds.items() if "branch" in name} == {CPU}
    assert {kind for name, kind in kinds.items() if "topk" in name} == {OPENCL}
    lib.export_library(tmp_path / "model.tar")
    profile = CliRunner().invoke(app, ["profile", str(tmp_path / "model.tar")])
    assert profile.exit_code == 0, profile.output
    loaded = tvm.runtime.load_module(tmp_path / "model.tar")
    module = graph_executor.GraphModule(loaded["default"](opencl))
    for taken in (True, False):
        (got,) = outputs(module, x=x, flag=np.array(taken))
        np.testing.assert_allclose(got, expected(x, taken), rtol=2e-5)


SERIAL_WORK = {
    "argsort": (lambda x: relay.argsort(x, dtype="int32"), (2, 9000), lambda x: x.argsort(1)),
    "short sort": (relay.sort, (2, 50), lambda x: np.sort(x, 1)),
    "cumsum": (lambda x: relay.cumsum(x, axis=1), (2, 70000), lambda x: x.cumsum(1)),
    "short rows": (lambda x: relay.cumsum(x, axis=0), (9, 1000), lambda x: x.cumsum(0)),
}


def work_of(name):
    return "topk" in name or "cumsum" in name


@pytest.mark.parametrize("kind", ["opencl", "vulkan"])
@pytest.mark.parametrize("name", SERIAL_WORK)
def test_what_one_thread_would_do_for_long_is_on_the_processor(kind, name):
    """A thread of lavapipe does not end it: sorted so, 9,000 numbers were in no order."""
    device = tvm.device(kind, 0)
    if not device.exist:
        pytest.skip(f"no {kind} device: apt-get install pocl-opencl-icd mesa-vulkan-drivers")
    work, shape, wanted = SERIAL_WORK[name]
    values = np.random.default_rng(0).permutation(np.prod(shape)).reshape(shape).astype("float32")
    values /= values.size
    x = relay.var("x", shape=shape)
    function = relay.Function([x], work(x * relay.const(np.float32(2))))
    module = tvm.IRModule.from_expr(function)
    lib = relay.build(module, kind)
    pairs = zip(lib.graph.nodes, lib.graph.devices or (), strict=bool(lib.graph.devices))
    on_processor = [n.name for n, kind in pairs if kind == CPU and work_of(n.name)]
    assert bool(on_processor) == ("short" not in name)
    (got,) = outputs(graph_executor.GraphModule(lib["default"](device)), x=values)
    np.testing.assert_allclose(got, wanted(values.astype("float64") * 2), rtol=1e-4)


def test_the_fallback_device_takes_what_has_no_mark():
    mod, _, _ = unmarked()
    with tvm.transform.PassContext(opt_level=2, config={"relay.fallback_device_type": CPU}):
        lib = relay.build(mod, TARGETS)
    assert set(lib.graph.devices) == {CPU}
    with (
        tvm.transform.PassContext(config={"relay.fallback_device_type": VULKAN}),
        pytest.raises(TargetError, match="fallback_device_type is vulkan"),
    ):
        relay.build(mod, TARGETS)


def test_copies_that_the_model_asks_for(opencl):
    x = relay.var("x", shape=(4,))
    there = relay.exp(relay.device_copy(x, tvm.cpu(0), opencl))
    there = relay.annotation.on_device(there, opencl)
    back = relay.sqrt(relay.device_copy(there, opencl, tvm.cpu(0)))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.annotation.on_device(back, "cpu")))
    values = np.array([0, 1, 2, 3], "float32")
    lib = relay.build(mod, TARGETS)
    assert [n.function for n in lib.graph.nodes].count("__copy") == 1  # x lies where it is read
    (got,) = outputs(graph_executor.GraphModule(lib["default"](opencl)), x=values)
    np.testing.assert_allclose(got, np.exp(values / 2), rtol=1e-6)


def test_errors_name_what_is_missing():
    mod, params, _ = marked()
    with pytest.raises(
        LoweringError, match=r"asks for vulkan\(0\), for whose kind there is no target"
    ):
        relay.build(mod, TARGETS, params=params)
    with pytest.raises(TargetError, match="'cpu' is opencl"):
        relay.build(mod, {"cpu": "opencl", "opencl": "llvm"}, params=params)
    with pytest.raises(TargetError, match="two targets are for cpu"):
        relay.build(mod, ["llvm", "c"], params=params)
    x = relay.var("x", shape=(4,))
    plain = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    with pytest.raises(TargetError, match="several targets are"):
        relay.build(plain, TARGETS, executor=relay.backend.Executor("aot"))
    lib = relay.build(plain, TARGETS)
    with pytest.raises(ExecutionError, match="parts of this model run on opencl"):
        lib["default"](tvm.cpu(0))


def test_tables_of_several_devices_survive_and_are_checked():
    lib = relay.build(*marked()[:1], {**TARGETS, "vulkan": "vulkan"})
    tables, data = lib.tables, lib.tables.to_binary()
    assert [arena.device_type for arena in tables.arenas] == [CPU, OPENCL, VULKAN]
    assert GraphTables.from_binary(data) == tables
    again = GraphTables.from_json(tables.to_json())
    assert [again.device_type(e) for e in again.entries] == [
        tables.device_type(e) for e in tables.entries
    ]
    crossing = tables.__class__(
        **{**tables.__dict__, "arenas": (Arena(1, 0), Arena(4, 64), tables.arenas[2])}
    )
    with pytest.raises(ArtifactError, match="graph tables"):
        from slipway.runtime.graph.graph_executor import create_native

        create_native(crossing, lib.library_module, tvm.cpu(0))


def test_parts_of_a_result_and_an_input_that_nobody_reads():
    x, unread = relay.var("x", shape=(4, 3)), relay.var("unread", shape=(2,))
    first, second, third = relay.split(x, [1, 3], axis=0)
    main = relay.Function([x, unread], relay.Tuple([third, first, relay.exp(second), second]))
    lib = relay.build(tvm.IRModule.from_expr(main), TARGETS)
    kinds = {node.name: kind for node, kind in zip(lib.graph.nodes, lib.graph.devices, strict=True)}
    assert kinds["unread"] == CPU
    assert kinds["x"] == OPENCL
    assert [lib.graph.type_of(ref).shape for ref in lib.graph.outputs] == [
        (1, 3), (1, 3), (2, 3), (2, 3),
    ]  # fmt: skip
    assert lib.graph.outputs[0] != lib.graph.outputs[1]
    assert [ref.index for ref in lib.graph.outputs if ref.index] == [2, 1]


def test_a_report_and_a_bisection_look_through_copies(opencl, tmp_path):
    """Each kernel is run on the device that it is for, and a copy is no layer."""
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=(1, 3, 9, 9))
    weight = relay.const(rng.normal(size=(8, 3, 3, 3)).astype("float32"))
    there = relay.annotation.on_device(
        relay.nn.conv2d(x, weight, channels=8, kernel_size=(3, 3)), tvm.opencl(0)
    )
    body = relay.annotation.on_device(relay.nn.softmax(there), tvm.cpu(0))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), target=TARGETS)
    assert "__copy" in {node.function for node in lib.graph.nodes}
    path = tmp_path / "m.tar"
    lib.export_library(path)
    made = make_report(lib, "m", path, quiet=True)
    assert [layer.agrees for layer in made.layers] == [True, True]
    assert all(layer.seconds for layer in made.layers)
    assert any("copies between the processor" in note for note in made.notes)
    given = rng.normal(size=(1, 3, 9, 9)).astype("float32")
    trace = trace_of(lib.graph, {"x": given})
    devices = ModelDevices(lib.metadata)
    call = devices.caller(tvm.runtime.load_module(path), lib.graph.kernel_devices)
    assert find_kernel(lib.graph, trace, call) is None
