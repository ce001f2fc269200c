"""What a report says of a model: its graphs, layers, memory, times and numbers."""

import json
import math
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import slipway
from slipway import relay, rpc
from slipway.compiler.model_graph import NOP
from slipway.errors import ExecutionError
from slipway.report import make, measure
from slipway.report.collect import bytes_in_use, collect, plan_of
from slipway.report.data import Report
from slipway.report.page import html_of

DIGITS = Path(str(files("slipway"))) / "models" / "digits" / "digits.onnx"


@pytest.fixture(scope="module")
def digits():
    return slipway.compile(DIGITS, quiet=True)


@pytest.fixture(scope="module")
def report(digits):
    return make.make_report(
        digits.library, "digits", digits.artifact, source=DIGITS, limits=False, quiet=True
    )


def small():
    x = relay.var("x", shape=(1, 4, 8, 8))
    parts = relay.split(relay.nn.relu(x), 2, axis=1)
    return relay.Function([x], relay.concatenate([parts[1], parts[0]], axis=1))


def test_both_graphs_reach_their_outputs_from_their_inputs(report):
    for nodes in (report.before, report.after):
        kinds = [node.kind for node in nodes]
        assert (kinds[0], kinds[-1]) == ("input", "output")
        assert all(source < index for index, n in enumerate(nodes) for source in n.inputs)
        read = {source for node in nodes for source in node.inputs}
        assert all(i in read for i, node in enumerate(nodes) if node.kind != "output")


def test_fusion_is_seen_by_the_names_of_layers(report):
    before = {name for node in report.before for name in node.layers}
    after = {name for node in report.after for name in node.layers}
    assert after
    assert after <= before
    operators = [node for node in report.after if node.kind == "operator"]
    assert len(operators) == len(report.layers) < len(report.before)
    assert [node.layer for node in operators] == list(range(len(report.layers)))


def test_tuples_are_looked_through():
    graph = collect(relay.build(small(), target="llvm"), "m").before
    assert [node.label for node in graph] == ["x", "nn.relu", "split", "concatenate", "output"]
    assert [node.inputs for node in graph] == [(), (0,), (1,), (2,), (3,)]


def test_weights_are_those_of_the_file(digits, report):
    wanted = digits.library.metadata["memory"]["params_bytes"]
    assert sum(layer.weights_bytes for layer in report.layers) == wanted
    assert report.weights_bytes == wanted
    assert dict(report.sizes)["artifact (tar)"] == digits.size


def test_the_memory_is_the_plan_with_layers_for_steps(digits, report):
    plan = plan_of(digits.library)
    assert report.memory.size == plan.size_bytes
    assert [t.offset for t in report.memory.tensors] == list(plan.offsets)
    last = len(report.layers) - 1
    assert all(0 <= t.first <= t.last <= last for t in report.memory.tensors)
    lives = {t.name: (t.first, t.last) for t in report.memory.tensors}
    assert lives[digits.inputs[0].name] == (0, last)  # it survives the run


def test_alive_bytes_are_counted_one_by_one(digits, report):
    plan = plan_of(digits.library)
    calls = [i for i, n in enumerate(digits.library.graph.nodes) if n.function not in ("", NOP)]
    for layer, step in zip(report.layers, calls, strict=True):
        used = {
            byte
            for block, offset in zip(plan.blocks, plan.offsets, strict=True)
            if block.first <= step <= block.last
            for byte in range(offset, offset + block.size_bytes)
        }
        assert layer.alive_bytes == bytes_in_use(plan, step) == len(used)


def test_every_layer_has_a_time_and_the_runs_too(report):
    assert report.where == "this machine"
    assert all(layer.seconds > 0 for layer in report.layers)
    assert len(report.run_seconds) >= make.RUNS
    assert all(layer.strategy for layer in report.layers)


def test_right_numbers_agree(report):
    assert all(layer.agrees for layer in report.layers)
    assert report.reference.startswith("onnxruntime")
    assert [output.agrees for output in report.agreement] == [True]


def test_one_wrong_kernel_is_told_by_its_layer(digits, report):
    library = digits.library
    loaded = make.LoadedArtifact(digits.artifact, None, "here")
    call = loaded.devices.caller(loaded.library, {})
    nodes = [n for n in library.graph.nodes if n.function not in ("", NOP)]
    victim = nodes[2]

    def spoilt(name, arguments, like):
        results = call(name, arguments, like)
        if name == victim.function:
            results[0].flat[0] += 1
        return results

    again = collect(library, "digits")
    arrays = {digits.inputs[0].name: np.ones((1, 1, 8, 8), "float32")}
    measure.add_numbers(again, library, arrays, spoilt, 1e-4)
    wrong = {layer.name for layer in again.layers if not layer.agrees}
    assert wrong == {n.layer for n in nodes if n.function == victim.function}


def test_what_cannot_run_here_says_so_and_is_not_measured(digits):
    foreign = relay.build(small(), target="llvm -mtriple=riscv64-linux-gnu")
    from slipway.toolchain.tempdir import tempdir

    with tempdir() as folder:
        path = folder.path / "foreign.tar"
        foreign.export_library(str(path))
        found = make.make_report(foreign, "foreign", path, quiet=True)
    assert found.where == ""
    assert all(layer.seconds is None for layer in found.layers)
    (note,) = found.notes
    assert "riscv64" in note


@pytest.mark.parametrize("target", ["opencl", "webgpu"])
def test_kernels_of_a_gpu_are_measured_where_there_is_one(target, tmp_path):
    library = relay.build(small(), target=target)
    library.export_library(str(tmp_path / "m.tar"))
    found = make.make_report(library, "m", tmp_path / "m.tar", quiet=True)
    assert found.layers
    if slipway.device(target, 0).exist:
        assert all(layer.agrees and layer.seconds for layer in found.layers)
    else:
        assert all(layer.seconds is None for layer in found.layers)
        (note,) = found.notes
        assert f"kernels are for {target}, and this machine has no such device" in note


def test_branches_and_loops_are_measured_and_compared(tmp_path):
    """A loop that has one state has a tuple of one field."""
    from onnx import TensorProto, helper

    values = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 4])
        for name in ("x", "a", "a2", "t", "e", "o")
    }
    flag = {
        name: helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("c", "c2", "f")
    }
    count = {name: helper.make_tensor_value_info(name, TensorProto.INT64, []) for name in "ik"}
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "a"], ["a2"]), helper.make_node("Identity", ["c"], ["c2"])],
        "body", [count["i"], flag["c"], values["a"]], [flag["c2"], values["a2"]],
    )  # fmt: skip
    branches = {
        name: helper.make_graph([helper.make_node(op, ["y"], [out])], name, [], [values[out]])
        for name, op, out in (("then_branch", "Relu", "t"), ("else_branch", "Neg", "e"))
    }
    graph = helper.make_graph(
        [helper.make_node("Loop", ["k", "", "x"], ["y"], body=body),
         helper.make_node("If", ["f"], ["o"], **branches)],
        "flow", [values["x"], count["k"], flag["f"]], [values["o"]],
    )  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    mod, params = relay.frontend.from_onnx(proto)
    library = relay.build(mod, target="llvm", params=params)
    library.export_library(str(tmp_path / "flow.tar"))
    inputs = {"x": np.ones((3, 4), "float32"), "k": np.array(3), "f": np.array(False)}
    found = make.make_report(
        library, "flow", tmp_path / "flow.tar", source=proto, inputs=inputs, limits=False,
        quiet=True,
    )  # fmt: skip
    assert all(layer.seconds and layer.agrees for layer in found.layers)
    assert [output.agrees for output in found.agreement] == [True]


def test_a_program_for_a_microcontroller_has_flash_and_boards():
    library = relay.build(
        small(),
        target="c -mcpu=cortex-m4",
        executor=relay.backend.Executor("aot", {"unpacked-api": True, "interface-api": "c"}),
        runtime=relay.backend.Runtime("crt"),
    )
    found = make.make_report(library, "tiny", None, quiet=True)
    assert dict(found.ram)["arena"] == found.memory.size
    assert {board.name for board in found.boards} >= {"mps2-an386"}
    assert all(board.flash_left < board.flash for board in found.boards)
    assert "firmware" in found.notes[0]


def test_a_model_on_a_device_is_measured_there(digits, tmp_path):
    with rpc.Server("127.0.0.1", 0, silent=True) as server:
        there = digits.on(f"127.0.0.1:{server.port}")
        path = there.report(tmp_path / "there.html", numbers=False)
    data = json.loads(path.read_text().split('id="data">')[1].split("</script>")[0])
    assert data["where"] == f"127.0.0.1:{server.port}"
    assert all(layer["seconds"] > 0 for layer in data["layers"])


def test_a_loaded_model_says_why_it_has_no_report(digits, tmp_path):
    loaded = slipway.load(digits.save(tmp_path / "m.tar"))
    with pytest.raises(ExecutionError, match="slipway report"):
        loaded.report(tmp_path / "m.html")


def test_the_page_holds_hostile_names_as_data_only():
    found = Report("</script><b>&", "llvm", "", "now")
    found.sizes = [("</script><!--", 1)]
    found.layers = []
    page = html_of(found)
    assert page.count("</script>") == 2
    assert "<b>" not in page
    assert json.loads(page.split('id="data">')[1].split("</script>")[0])["name"] == found.name


def test_numbers_that_json_has_not_become_texts():
    found = Report("m", "llvm", "", "now", run_seconds=[math.inf, math.nan, 1.0])
    assert json.loads(found.to_json())["run_seconds"] == ["inf", "nan", 1.0]
