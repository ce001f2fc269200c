"""`slipway check`: every node of a model, and an exit code."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from slipway.cli.app import app
from slipway.cli.exit_codes import OptionError
from slipway.errors import TargetError


def check(*arguments):
    """Run the command in this process; the result has `exit_code`, `stdout` and `stderr`."""
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def write(path, nodes, weights=None, known=()):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 6, 6))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(a, n) for n, a in (weights or {}).items()],
        value_info=[helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in known],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


@pytest.fixture
def broken(tmp_path):
    nodes = [
        helper.make_node("Mystery", ["x"], ["a"], name="what[1]"),
        helper.make_node("Relu", ["a"], ["b"], name="behind"),
        helper.make_node("AveragePool", ["x"], ["c"], name="pool", kernel_shape=[9, 9]),
        helper.make_node("Relu", ["c"], ["d"], name="typed"),
        helper.make_node("Relu", ["x"], ["y"], name="good"),
    ]
    return write(tmp_path / "broken.onnx", nodes)


def test_a_model_that_can_be_compiled(repository):
    digits = repository / "src" / "slipway" / "models" / "digits" / "digits.onnx"
    done = check(digits, "--json")
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["supported"]
    names = [node.name for node in onnx.load(digits).graph.node]
    assert [node["name"] for node in report["nodes"]] == names
    assert sum(report["counts"].values()) == len(names)
    convolutions = [n for n in report["nodes"] if n["kind"] == "Conv"]
    assert convolutions
    assert all(n["schedule"] != "general" for n in convolutions)


def test_everything_unsupported_is_listed(broken):
    done = check(broken, "--json")
    assert done.exit_code == 1
    nodes = {n["name"]: n for n in json.loads(done.stdout)["nodes"]}
    assert {name: n["status"] for name, n in nodes.items()} == {
        "what[1]": "unsupported", "behind": "unchecked", "pool": "unsupported",
        "typed": "unchecked", "good": "native",
    }  # fmt: skip
    assert nodes["what[1]"]["detail"] == "there is no converter for it"
    assert "window" in nodes["pool"]["detail"]


def test_the_table_names_nodes_and_reasons(broken):
    done = check(broken)
    assert done.exit_code == 1
    assert "what[1]" in done.stdout
    assert "cannot be compiled yet" in done.stdout
    summary = check(broken, "--summary", "--only", "unsupported").stdout
    assert "Mystery" in summary
    assert "good" not in summary


def test_nodes_behind_a_typed_problem_are_checked(tmp_path):
    nodes = [
        helper.make_node("Mystery", ["x"], ["a"], name="mystery"),
        helper.make_node("AveragePool", ["a"], ["b"], name="pool", kernel_shape=[9, 9]),
        helper.make_node("Relu", ["b"], ["y"], name="relu"),
    ]
    path = write(tmp_path / "m.onnx", nodes, known=[("a", (1, 4, 6, 6)), ("b", (1, 4, 2, 2))])
    report = json.loads(check(path, "--json").stdout)
    assert [n["status"] for n in report["nodes"]] == ["unsupported", "unsupported", "native"]


def test_memory_of_open_sizes_is_that_of_the_largest(tmp_path):
    shape = ["n", 3]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "open",
        [helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info("y", 1, shape)],
    )  # fmt: skip
    onnx.save(helper.make_model(graph), tmp_path / "open.onnx")
    done = check(str(tmp_path / "open.onnx"), "--dim", "n=1..8", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["memory"]["inputs_outputs_bytes"] == 2 * 8 * 3 * 4


def test_boards_for_a_microcontroller(tmp_path):
    weights = {"w": np.ones((4, 4, 3, 3), np.float32)}
    path = write(tmp_path / "m.onnx", [helper.make_node("Conv", ["x", "w"], ["y"])], weights)
    report = json.loads(check(path, "--target", "arm/cortex-m4", "--json").stdout)
    assert report["memory"]["boards"]["nrf52840"] is True
    assert report["memory"]["weights_bytes"] == weights["w"].nbytes
    assert "nrf52840: fits" in check(path, "--target", "arm/cortex-m4").stdout


def test_a_loop_whose_results_the_data_size_is_named(tmp_path):
    """How often it runs may depend on the data; how large its scan outputs are may not."""

    def declared(name, kind=TensorProto.FLOAT, shape=(1, 4, 6, 6)):
        return helper.make_tensor_value_info(name, kind, shape)

    body = helper.make_graph(
        [
            helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Identity", ["c"], ["d"]),
            helper.make_node("Identity", ["a"], ["row"]),
        ],
        "body",
        [declared("i", TensorProto.INT64, ()), declared("c", TensorProto.BOOL, ()), declared("a")],
        [declared("d", TensorProto.BOOL, ()), declared("b"), declared("row")],
    )  # fmt: skip
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
        helper.make_node("Greater", ["m", "zero"], ["go"]),
        helper.make_node("Loop", ["", "go", "x"], ["last", "y"], body=body),
    ]
    path = write(tmp_path / "m.onnx", nodes, {"zero": np.float32(0)})
    done = check(path, "--json")
    assert done.exit_code == 1
    nodes = {node["kind"]: node for node in json.loads(done.stdout)["nodes"]}
    assert nodes["Loop"]["status"] == "unsupported"
    assert "nothing bounds how often it runs" in nodes["Loop"]["detail"]


def test_tflite(repository, shared):
    path = shared / "models" / "tflite" / "kws_ref_model.tflite"
    if not path.is_file():
        pytest.skip(f"no file {path}")
    report = json.loads(check(path, "--target", "arm/cortex-m4", "--json").stdout)
    assert report["supported"]
    assert {n["status"] for n in report["nodes"]} <= {"native", "rewritten", "folded"}


def test_a_board_is_a_target_and_a_verdict(repository):
    digits = repository / "src" / "slipway" / "models" / "digits" / "digits.onnx"
    done = check(digits, "--board", "nucleo-f446re", "--json")
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert "-mcpu=cortex-m4" in report["target"]
    assert report["memory"]["boards"] == {"nucleo-f446re": True}
    both = check(digits, "--board", "nucleo-f446re", "--target", "llvm")
    assert isinstance(both.exception, OptionError)
    assert isinstance(check(digits, "--board", "nucleo").exception, TargetError)


def test_a_string_input_hides_no_other_node(tmp_path):
    nodes = [
        helper.make_node("StringNormalizer", ["s"], ["n"], name="words"),
        helper.make_node("Mystery", ["n"], ["m"], name="behind"),
        helper.make_node("Relu", ["x"], ["r"], name="good"),
        helper.make_node("Puzzle", ["r"], ["y"], name="other"),
    ]
    inputs = [
        helper.make_tensor_value_info("s", TensorProto.STRING, [3]),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    path = tmp_path / "strings.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    done = check(path, "--json")
    assert done.exit_code == 1, done.exception
    found = {n["name"]: (n["status"], n["detail"]) for n in json.loads(done.stdout)["nodes"]}
    assert found["words"][0] == found["other"][0] == "unsupported"
    assert "the input 's' holds strings" in found["words"][1]
    assert found["behind"][0] == "unsupported"
    assert found["good"][0] == "native"
