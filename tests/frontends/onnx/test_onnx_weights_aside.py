"""Large weights are taken aside before protobuf parses a model: nothing else changes by that."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from slipway import relay
from slipway.errors import ModelError
from slipway.frontends.onnx import external_data, reader, weights
from slipway.frontends.onnx.reader import is_aside, load_model, open_model
from slipway.relay.interpret import interpret

RNG = np.random.default_rng(0)
LIMIT = 200


@pytest.fixture(autouse=True)
def small_limit(monkeypatch):
    """Let weights of some bytes count as large."""
    monkeypatch.setattr(weights, "MIN_BYTES", LIMIT)
    monkeypatch.setattr(external_data, "MIN_BYTES", LIMIT)


def model(external=False):
    """A product, a sum, and weights of several kinds: some large, one not as raw data."""
    large = numpy_helper.from_array(RNG.standard_normal((20, 30)).astype("float32"), "w")
    bias = numpy_helper.from_array(RNG.standard_normal(30).astype("float32"), "b")
    half = numpy_helper.from_array(RNG.standard_normal((30, 20)).astype("float16"), "h")
    listed = helper.make_tensor("listed", TensorProto.FLOAT, (10, 20), RNG.random(200).tolist())
    packed = helper.make_tensor("packed", TensorProto.INT4, (10, 60), b"\x12" * 300, raw=True)
    brain = helper.make_tensor("brain", TensorProto.BFLOAT16, (10, 20), b"\1\2" * 200, raw=True)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("Add", ["xw", "b"], ["y"]),
        helper.make_node("Cast", ["h"], ["h32"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["y", "h32"], ["z0"]),
        helper.make_node("Cast", ["brain"], ["brain32"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["listed", "brain32"], ["lb"]),
        helper.make_node("Cast", ["packed"], ["packed32"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["packed32"], ["most"], keepdims=0),
        helper.make_node("Add", ["z0", "lb"], ["z1"]),
        helper.make_node("Add", ["z1", "most"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (10, 20))],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, (10, 20))],
        [bias, large, listed, half, brain, packed],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    made.ir_version = 10
    if external:
        onnx.external_data_helper.convert_model_to_external_data(
            made, location="weights.bin", size_threshold=100
        )
    return made


def put_back(proto, aside):
    """Return the model with its weights where they were."""
    for tensor in proto.graph.initializer:
        if is_aside(tensor):
            tensor.raw_data = aside[tensor.name].tobytes()
        tensor.ClearField("data_location")
    return proto


@pytest.mark.parametrize("external", [False, True])
def test_the_rest_is_the_model_and_weights_are_theirs(external, tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(model(external), path)
    whole = load_model(path)
    proto, aside = open_model(path)
    assert set(aside) == {"w", "h", "brain"}  # four bits are unpacked by the onnx package
    assert proto.ByteSize() < whole.ByteSize() - 3000
    for tensor in whole.graph.initializer:
        tensor.ClearField("data_location")
    assert put_back(proto, aside) == whole


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("freeze", [False, True])
def test_a_model_computes_the_same(external, freeze, tmp_path):
    onnx.save(model(external), tmp_path / "m.onnx")
    x = RNG.standard_normal((10, 20)).astype("float32")
    found = []
    for given in (tmp_path / "m.onnx", load_model(tmp_path / "m.onnx")):
        module, params = relay.frontend.from_onnx(given, freeze_params=freeze)
        # What "main" does not take is a constant of it already.
        names = {p.name_hint for p in module["main"].params}
        own = {name: value for name, value in params.items() if name in names}
        found.append(interpret(module, x=x, params=own))
    np.testing.assert_array_equal(*found)


def test_weights_stay_what_they_were_when_the_file_changes(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(model(), path)
    _, aside = open_model(path)
    before = aside["w"].copy()
    path.write_bytes(bytes(path.stat().st_size))
    path.write_bytes(b"")
    np.testing.assert_array_equal(aside["w"], before)


def verdict(read, path):
    """Return the model that is read, or the words of its error."""
    try:
        return read(path)
    except ModelError as error:
        return str(error)


def test_damaged_files_are_judged_as_without(tmp_path):
    path = tmp_path / "m.onnx"
    sound = model().SerializeToString()
    rng = np.random.default_rng(3)
    taken = 0
    for number in range(600):
        data = bytearray(sound)
        if number % 3 == 0:
            del data[rng.integers(len(data)) :]
        elif number % 3 == 1:
            at = rng.integers(len(data))
            data[at] = rng.integers(256)
        else:
            at, count = rng.integers(len(data)), rng.integers(1, 60)
            data[at:at] = data[rng.integers(len(data)) :][:count]
        path.write_bytes(data)
        want = verdict(lambda given: put_back(load_model(given), {}), path)
        got = verdict(open_model, path)
        if not isinstance(got, str):
            taken += len(got[1])
            got = put_back(*got)
        assert got == want
    assert taken > 300


@pytest.mark.parametrize("twice", ["raw_data", "location", "message"])
def test_what_is_said_twice_is_left_to_protobuf(twice, tmp_path):
    path, proto = tmp_path / "m.onnx", model()
    data = proto.SerializeToString()
    if twice == "raw_data":
        tensor = proto.graph.initializer[1].SerializeToString()
        more = tensor + b"\x4a" + bytes([0x80 | 2400 % 128, 2400 // 128]) + bytes(2400)
        size = len(more)
        proto.graph.initializer[1].Clear()
        data = proto.SerializeToString()
        field = b"\x2a" + bytes([0x80 | size % 128, size // 128]) + more
        graph = b"\x3a" + bytes([0x80 | len(field) % 128, len(field) // 128]) + field
        data += graph  # a graph in two parts is one
    elif twice == "location":
        proto.graph.initializer[1].data_location = TensorProto.DEFAULT
        data = proto.SerializeToString()
    else:
        data += model().SerializeToString()
    path.write_bytes(data)
    if twice == "message":  # each name stands for two values then
        told = verdict(lambda given: relay.frontend.from_onnx(load_model(given)), path)
        assert "'" in told
        assert verdict(relay.frontend.from_onnx, path) == told
        return
    want = verdict(lambda given: put_back(load_model(given), {}), path)
    got = verdict(open_model, path)
    assert (got if isinstance(got, str) else put_back(*got)) == want


def test_a_full_disk_leaves_the_weights_in_memory(tmp_path, monkeypatch):
    onnx.save(model(), tmp_path / "m.onnx")
    monkeypatch.setattr(weights, "range_of", lambda *what: None)
    proto, aside = open_model(tmp_path / "m.onnx")
    assert aside == {}
    assert proto == load_model(tmp_path / "m.onnx")


def test_bytes_and_protos_are_taken_as_they_are(tmp_path):
    proto = model()
    assert open_model(proto) == (proto, {})
    assert open_model(proto.SerializeToString()) == (proto, {})
    assert reader.is_aside(proto.graph.initializer[0]) is False


PEAK = """
import sys
from slipway.cli.main import main
sys.argv = ["slipway", "compile", "m.onnx", "-o", "m.tar"]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
for line in open("/proc/self/status"):
    if line.startswith("VmHWM"):
        print(int(line.split()[1]) * 1024)
"""


def test_compiling_takes_little_more_memory_than_without_weights(tmp_path):
    """Of 100 MB of weights a few lie in memory at a time: twice the largest, beside the rest."""
    peaks = []
    for layers in (1, 24):
        weight = RNG.standard_normal((1024, 1024)).astype("float32") / 32
        nodes, held = [], []
        for number in range(layers):
            nodes.append(helper.make_node("MatMul", [f"x{number}", f"w{number}"], [f"p{number}"]))
            nodes.append(helper.make_node("Relu", [f"p{number}"], [f"x{number + 1}"]))
            held.append(numpy_helper.from_array(weight + np.float32(number), f"w{number}"))
        ports = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 1024))
            for name in ("x0", f"x{layers}")
        ]
        graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], held)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
        made.ir_version = 10
        folder = tmp_path / str(layers)
        folder.mkdir()
        onnx.save(made, folder / "m.onnx")
        done = subprocess.run(
            [sys.executable, "-c", PEAK], cwd=folder, capture_output=True, text=True, check=True,
            env={**os.environ, "SLIPWAY_VERIFY": "0"},
        )  # fmt: skip
        peaks.append(int(done.stdout.split()[-1]))
        assert Path(folder / "m.tar").stat().st_size > layers << 22
    assert peaks[1] - peaks[0] < 30 << 20
