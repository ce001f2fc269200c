"""Weights in other files: read from the model's folder, and from nowhere else."""

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


def test_bytes_have_no_folder(tmp_path):
    path, _ = save(tmp_path, "weights.bin")
    with pytest.raises(ModelError, match="'w'"):
        relay.frontend.from_onnx(path.read_bytes())
