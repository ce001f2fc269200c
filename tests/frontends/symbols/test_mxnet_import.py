"""Symbols of MXNet give the numbers that MXNet 1.9.1 gave for them (see mxnet_record.py)."""

import json
import struct

import numpy as np
import pytest
from mxnet_record import recorded

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.errors import ArgumentTypeError, ArgumentValueError, ModelError
from slipway.relay.interpret import interpret

CASES = recorded()
DATA = ("x", "y", "z", "h", "c")
# Compiled for this machine, too: one of a kind.
COMPILED = ("conv2d", "pool_full_avg_True", "bn_True", "rnn_lstm_2_True", "deformable", "reshape5")


def imported(case):
    """Import a case; return the module, its parameters, and the inputs that it reads."""
    data = {name: value for name, value in case["in"].items() if name in DATA}
    weights = {name: value for name, value in case["in"].items() if name not in data}
    mod, params = relay.frontend.from_mxnet(
        case["symbol"],
        {name: value.shape for name, value in data.items()},
        {name: str(value.dtype) for name, value in data.items()},
        arg_params=weights,
    )
    read = {p.name_hint for p in mod["main"].params}
    return mod, params, {name: value for name, value in data.items() if name in read}


def compare(got, wanted):
    """Compare shapes, data types and numbers."""
    assert len(got) == len(wanted)
    for made, given in zip(got, wanted, strict=True):
        assert (made.shape, made.dtype) == (given.shape, given.dtype)
        np.testing.assert_allclose(made, given, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_mxnet(name):
    mod, params, data = imported(CASES[name])
    made = interpret(mod, params=params, **data)
    compare(made if isinstance(made, list | tuple) else [made], CASES[name]["out"])


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_numbers_are_those_of_mxnet(name):
    mod, params, data = imported(CASES[name])
    lib = relay.build(mod, "llvm", params=params)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    for key, value in data.items():
        module.set_input(key, value)
    module.run()
    made = [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
    compare(made, CASES[name]["out"])


def parameters_file(arrays, magic=0xF993FAC9):
    """Return the bytes of a file of arrays, as MXNet's NDArray::Save writes them."""
    flags = {"float32": 0, "float64": 1, "int8": 5}
    parts = [struct.pack("<QQQ", 0x112, 0, len(arrays))]
    for value in arrays.values():
        if magic:
            parts.append(struct.pack("<I", magic))
        if magic >= 0xF993FAC9:
            parts.append(struct.pack("<i", 0))
        code = "q" if magic else "I"
        parts.append(struct.pack(f"<i{value.ndim}{code}", value.ndim, *value.shape))
        parts.append(struct.pack("<iii", 1, 0, flags[str(value.dtype)]) + value.tobytes())
    parts.append(struct.pack("<Q", len(arrays)))
    parts += [struct.pack("<Q", len(name)) + name.encode() for name in arrays]
    return b"".join(parts)


@pytest.mark.parametrize("magic", [0, 0xF993FAC8, 0xF993FAC9, 0xF993FACA])
def test_files_of_a_model_need_no_mxnet(tmp_path, magic):
    case = CASES["bn_False"]
    weights = {
        ("aux:" if "moving" in name else "arg:") + name: value
        for name, value in case["in"].items()
        if name != "x"
    }
    (tmp_path / "model-symbol.json").write_text(case["symbol"])
    (tmp_path / "model-0000.params").write_bytes(parameters_file(weights, magic))
    mod, params = relay.frontend.from_mxnet(
        str(tmp_path / "model-symbol.json"),
        {"x": case["in"]["x"].shape},
        arg_params=tmp_path / "model-0000.params",
    )
    made = interpret(mod, params=params, x=case["in"]["x"])
    np.testing.assert_allclose(made, case["out"][0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("end", [7, 20, 40, 60, 100])
def test_a_file_that_ends_early_is_named(tmp_path, end):
    whole = parameters_file({"arg:w": np.ones((3, 5), "float32")})
    (tmp_path / "w.params").write_bytes(whole[:end])
    with pytest.raises(ModelError, match=r"w\.params is no file of MXNet's arrays"):
        relay.frontend.from_mxnet(
            CASES["relu"]["symbol"], {"x": (3, 5)}, arg_params=str(tmp_path / "w.params")
        )


def symbol(*nodes, heads=None):
    """Return a symbol's JSON; a node is (op, name, inputs, attributes)."""
    made = [
        {"op": op, "name": name, "inputs": [[i, 0, 0] for i in inputs], "attrs": attrs}
        for op, name, inputs, attrs in nodes
    ]
    return json.dumps({"nodes": made, "arg_nodes": [], "heads": heads or [[len(made) - 1, 0, 0]]})


def test_everything_that_is_not_supported_is_said_at_once():
    text = symbol(
        ("null", "x", [], {}),
        ("Correlation", "a", [0, 0], {}),
        ("NoSuchOp", "b", [1], {}),
        ("Activation", "c", [0], {"act_type": "swoosh"}),
        ("elemwise_add", "d", [2, 3], {}),
    )
    with pytest.raises(ModelError) as told:
        relay.frontend.from_mxnet(text, {"x": (1, 2, 3, 3)})
    for part in ("a (Correlation)", "b (NoSuchOp)", "c (Activation)", "swoosh"):
        assert part in str(told.value)
    assert "d (" not in str(told.value)


def test_nodes_that_no_output_reads_are_left_out():
    text = symbol(("null", "x", [], {}), ("NoSuchOp", "a", [0], {}), ("relu", "b", [0], {}))
    mod, _ = relay.frontend.from_mxnet(text, {"x": (2, 2)})
    assert [p.name_hint for p in mod["main"].params] == ["x"]


def test_an_older_symbol_has_its_attributes_under_other_names():
    old = json.loads(
        symbol(("null", "x", [], {}), ("clip", "a", [0], {"a_min": "0", "a_max": "1"}))
    )
    old["nodes"][1]["param"] = old["nodes"][1].pop("attrs")
    old["nodes"][0]["attr"] = {"__shape__": "(2, 2)"}
    del old["nodes"][0]["attrs"]
    mod, _ = relay.frontend.from_mxnet(old)
    made = interpret(mod, x=np.array([[-1, 0.5], [2, 0]], "float32"))
    np.testing.assert_array_equal(made, np.array([[0, 0.5], [1, 0]], "float32"))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (3, ArgumentTypeError, "not builtins.int"),
        ("{]", ModelError, "JSON is none"),
        ({"nodes": []}, ModelError, "no nodes and heads"),
    ],
)
def test_what_is_no_symbol_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        relay.frontend.from_mxnet(given, {"x": (1,)})


def test_an_input_without_a_shape_is_named():
    with pytest.raises(ModelError, match="x: its shape is not known"):
        relay.frontend.from_mxnet(CASES["relu"]["symbol"])
    with pytest.raises(ModelError, match="no input 'data'"):
        relay.frontend.from_mxnet(CASES["relu"]["symbol"], {"data": (1, 2)})


class Fake:
    """What Gluon's classes are told by."""


def test_a_block_takes_no_parameters():
    block = type("Block", (Fake,), {"__module__": "mxnet.gluon.block"})
    with pytest.raises(ArgumentValueError, match="has its parameters"):
        relay.frontend.from_mxnet(block(), {"data": (1,)}, arg_params={})


def test_gluon_blocks_of_mxnet_itself():
    mx = pytest.importorskip("mxnet", minversion="1.0")
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(4, 3, activation="relu"), mx.gluon.nn.Dense(5))
    net.initialize()
    x = np.random.default_rng(0).normal(size=(1, 3, 6, 6)).astype("float32")
    wanted = net(mx.nd.array(x)).asnumpy()
    mod, params = relay.frontend.from_mxnet(net, {"data": x.shape})
    made = interpret(mod, params=params, data=x)
    np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5)
