import json
import re

import numpy as np
import onnx
import pytest
import typer
from onnx import TensorProto, helper
from typer.testing import CliRunner

from slipway.cli.app import app
from slipway.cli.exit_codes import OptionError
from slipway.cli.model_file import (
    parse_bindings,
    parse_dims,
    parse_shapes,
    parse_states,
    read_model,
)
from slipway.deploy.model_file import rounding_for
from slipway.errors import ModelError
from slipway.relay.dims import ANY, Dim
from slipway.target import Target


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (None, None),
        ("image:[1,3,224,224]", {"image": (1, 3, 224, 224)}),
        ("ids:[1, 128] mask:[1]", {"ids": (1, 128), "mask": (1,)}),
        ("ids:[1,128],scalar:[]", {"ids": (1, 128), "scalar": ()}),
    ],
)
def test_input_shapes(text, shapes):
    assert parse_shapes(text) == shapes


@pytest.mark.parametrize("text", ["image", "image:1,3", "image:[1,x]", "a:[1] b"])
def test_bad_input_shapes_say_how_to_write_them(text):
    with pytest.raises(OptionError, match=r"--input-shapes: cannot read .*image:\[1,3,224,224\]"):
        parse_shapes(text)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.onnx"):
        read_model(tmp_path / "nowhere.onnx")


def test_unknown_format_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"'.onx' .*Did you mean '.onnx'\?"):
        read_model(tmp_path / "model.onx")


def open_model(path, nodes=None):
    nodes = nodes or [helper.make_node("Mul", ["serving:0", "k"], ["y"])]
    inputs = [
        helper.make_tensor_value_info("serving:0", TensorProto.FLOAT, ("n", 4)),
        helper.make_tensor_value_info("k", TensorProto.FLOAT, ()),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_open_sizes_are_asked_for_in_words_of_the_command_line(tmp_path):
    """The option that the error shows can be pasted, whatever characters the name has."""
    path = open_model(tmp_path / "open.onnx")
    with pytest.raises(ModelError) as caught:
        read_model(path)
    shown = re.search(r'--input-shapes "(.*)"', str(caught.value))[1]
    assert "shape=" not in str(caught.value)
    module, _ = read_model(path, parse_shapes(shown))
    assert module["main"].params[0].tensor_type.shape == (1, 4)
    (dim,) = re.findall(r"--dim (\S+)", str(caught.value))
    module, _ = read_model(path, parse_shapes("k:[]"), dims=parse_dims([dim]))
    assert module["main"].params[0].tensor_type.shape == (Dim("n", 1, 8), 4)


def test_who_takes_shapes_takes_names_of_dimensions():
    commands = typer.main.get_command(app).commands
    groups = [group.commands for group in commands.values() if hasattr(group, "commands")]
    callbacks = [c.callback for level in (commands, *groups) for c in level.values()]
    callbacks = [callback for callback in callbacks if callback]
    taking = [c for c in callbacks if "input_shapes" in c.__annotations__]
    assert len(taking) > 8
    assert [c.__name__ for c in taking if "dim" not in c.__annotations__] == ["quantize"]


def test_check_of_a_named_dimension(tmp_path):
    path = open_model(tmp_path / "open.onnx")
    done = CliRunner().invoke(app, ["check", str(path), "--dim", "n=3", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["supported"]
    done = CliRunner().invoke(app, ["explain", str(path), "--dim", "n=1..6"])
    assert done.exit_code == 0, done.output


def test_check_goes_on_with_assumed_sizes_and_says_so(tmp_path):
    path = open_model(tmp_path / "open.onnx")
    done = CliRunner().invoke(app, ["check", str(path), "--json"])
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["assumed"] == '--input-shapes "serving:0:[1,4]"'
    done = CliRunner().invoke(app, ["check", str(path)])
    assert 'assumed here: --input-shapes "serving:0:[1,4]"' in done.stdout


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("k=16000", 16000),
        ("k=-0.5", -0.5),
        ("k=True", True),
        ("k=[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
    ],
)
def test_bindings(text, value):
    found = parse_bindings([text])
    np.testing.assert_array_equal(found["k"], value)


def test_a_bound_input_is_no_input(tmp_path):
    path = open_model(tmp_path / "open.onnx")
    np.save(tmp_path / "k.npy", np.float32(3))
    bound = parse_bindings([f"k=@{tmp_path / 'k.npy'}"])
    module, _ = read_model(path, {"serving:0": (2, 4)}, constants=bound)
    assert [p.name for p in module["main"].params] == ["serving:0"]


@pytest.mark.parametrize(
    "texts", [["k"], ["=1"], ["k=x"], ["k=[1,[2]"], ["k=" + "[" * 5000], ["k=1", "k=2"]]
)
def test_bad_bindings_say_how_to_write_them(texts):
    with pytest.raises(OptionError, match="--bind"):
        parse_bindings(texts)


def test_a_file_that_is_no_array_is_named(tmp_path):
    (tmp_path / "k.npy").write_text("none")
    with pytest.raises(ModelError, match=r"--bind k=@.*k\.npy: it is no \.npy file"):
        parse_bindings([f"k=@{tmp_path / 'k.npy'}"])


@pytest.mark.parametrize(
    ("target", "given", "rounding"),
    [
        ("llvm", None, "single"),
        ("llvm -mtriple=aarch64-linux-gnu", None, "single"),
        ("c", None, "single"),
        ("web/wasm", None, "single"),
        ("c -mcpu=cortex-m4", None, "double"),
        ("llvm", "double", "double"),
        ("c -mcpu=cortex-m4", "single", "single"),
    ],
)
def test_matrix_products_are_rounded_as_the_peer_of_the_target_does(target, given, rounding):
    assert rounding_for(Target(target), given) == rounding


def test_an_unknown_rounding_is_refused():
    with pytest.raises(ModelError, match="--dense-rounding twice: write single or double"):
        rounding_for(Target("llvm"), "twice")


def test_input_shapes_have_ranges():
    n = Dim("n", 1, 8)
    assert parse_shapes("x:[n=1..8, 3, ?] y:[n=1..8]") == {"x": (n, 3, ANY), "y": (n,)}
    assert parse_shapes("a.b:[2,1..8]") == {"a.b": (2, Dim("a_b_1", 1, 8))}


@pytest.mark.parametrize(
    ("parse", "given", "wanted"),
    [
        (parse_dims, ["batch=1..8", "a b=4"], {"batch": (1, 8), "a b": 4}),
        (parse_dims, ["batch=1..8", "b=batch"], {"batch": (1, 8), "b": "batch"}),
        (parse_states, ["past=present", "h=2"], {"past": "present", "h": 2}),
    ],
)
def test_sizes_and_states_of_a_command_line(parse, given, wanted):
    assert parse(given) == wanted
    assert parse(None) == {}
    for wrong in ("batch", "=4", "batch=", given[0]):
        with pytest.raises(OptionError, match=r"--(dim|state) "):
            parse([given[0], wrong])
