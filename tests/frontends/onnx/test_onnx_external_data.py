"""Weights in other files: read from the model's folder, and from nowhere else."""

import os

import numpy as np
import pytest
from graphs import helper, model, onnx

from slipway import relay
from slipway.errors import ModelError
from slipway.relay.interpret import interpret


def save(folder, location, **entries):
    """Write a model whose weight lies at `location`; the entries are added to its description."""
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    node = helper.make_node("Add", ["x", "w"], ["y"])
    proto = model([node], {"x": ("float32", (2, 3))}, ["y"], {"w": weight})
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(value)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path, weight


def test_weights_beside_the_model(tmp_path):
    path, weight = save(tmp_path, "weights.bin", offset=4, length=24)
    (tmp_path / "weights.bin").write_bytes(b"abcd" + weight.tobytes())
    mod, _ = relay.frontend.from_onnx(path)
    found = interpret(mod, x=np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(found, weight)


@pytest.mark.parametrize("shape", [(2, 3), (300, 40)])  # small ones are read by the onnx package
def test_without_a_length_a_weight_is_as_long_as_its_shape(tmp_path, shape):
    weight = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    node = helper.make_node("Add", ["x", "w"], ["y"])
    proto = model([node], {"x": ("float32", shape)}, ["y"], {"w": weight})
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "weights.bin"
    (tmp_path / "weights.bin").write_bytes(weight.tobytes() + bytes(800))
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    mod, _ = relay.frontend.from_onnx(tmp_path / "model.onnx")
    found = interpret(mod, x=np.zeros(shape, np.float32))
    np.testing.assert_array_equal(found, weight)


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/hostname", "link.bin", "gone.bin"])
def test_other_places_are_refused(tmp_path, location):
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(24))
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    path, _ = save(folder, location, length=24)
    with pytest.raises(ModelError, match="other files that cannot be read"):
        relay.frontend.from_onnx(path)


def test_a_weight_file_that_is_cut_short(tmp_path):
    path, weight = save(tmp_path, "weights.bin")
    (tmp_path / "weights.bin").write_bytes(weight.tobytes()[:-4])
    with pytest.raises(ModelError, match="'w' should hold 6 float32"):
        relay.frontend.from_onnx(path)


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ({"offset": -4, "length": 24}, "its offset is '-4', not a number of bytes"),
        ({"offset": 0, "length": -1}, "its length is '-1', not a number of bytes"),
        ({"offset": "1.5"}, "its offset is '1.5'"),
        ({"offset": "9" * 30}, "its offset is '9999"),
        ({"offset": 1000, "length": 24}, "begins at byte 1000 of 'weights.bin'"),
        ({"offset": 1 << 62, "length": 1 << 62}, "has 32 bytes"),
        ({"offset": 16, "length": 24}, "takes 24, but the file has 32 bytes"),
        ({"length": 0}, "should hold 6 float32.* has 0 bytes"),
        ({"length": 32}, "should hold 6 float32.* has 32 bytes"),
    ],
)  # fmt: skip
def test_places_in_the_file_are_checked(tmp_path, entries, why):
    path, weight = save(tmp_path, "weights.bin", **entries)
    (tmp_path / "weights.bin").write_bytes(weight.tobytes() + bytes(8))
    with pytest.raises(ModelError, match=why):
        relay.frontend.from_onnx(path)


@pytest.mark.parametrize("location", ["", ".", "a\0b", "x" * 5000, "d/secret.bin", "fifo", "z"])
def test_what_is_no_file_of_the_folder_is_refused(tmp_path, location):
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(24))
    (folder / "d").symlink_to(tmp_path)
    (folder / "z").symlink_to("/dev/zero")
    os.mkfifo(folder / "fifo")
    path, _ = save(folder, location, length=24)
    with pytest.raises(ModelError, match="other files that cannot be read"):
        relay.frontend.from_onnx(path)


def test_data_of_a_constant_inside_a_branch_is_checked_too(tmp_path):
    """A file with a hole of a terabyte is not read to see that it does not fit."""
    tensor = onnx.TensorProto(name="inner", data_type=1, dims=[6], data_location=1)
    for key, value in (("location", "hole.bin"), ("length", str(1 << 40))):
        tensor.external_data.add(key=key, value=value)
    with (tmp_path / "hole.bin").open("wb") as file:
        file.truncate(1 << 40)
    out = helper.make_tensor_value_info("v", 1, (6,))
    constant = helper.make_node("Constant", [], ["v"], value=tensor)
    branch = helper.make_graph([constant], "b", [], [out])
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    proto = model([node], {"c": ("bool", ())}, ["y"], {})
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match="'inner' should hold 6 float32"):
        relay.frontend.from_onnx(path)


def test_bytes_have_no_folder(tmp_path):
    path, _ = save(tmp_path, "weights.bin")
    with pytest.raises(ModelError, match="'w'"):
        relay.frontend.from_onnx(path.read_bytes())
