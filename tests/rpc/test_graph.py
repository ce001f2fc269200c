"""Models on the device: the classic graph executor over a session."""

from functools import partial

import numpy as np
import pytest

from slipway.errors import ExecutionError, RemoteError
from slipway.runtime import ndarray as nd
from slipway.runtime.artifact_writer import write_artifact
from slipway.runtime.graph.graph_executor import GraphModule, create
from slipway.runtime.load import load_module
from slipway.runtime.params import save_param_dict

SHAPE = (2, 3)


@pytest.fixture
def factory(remote, model_tar):
    remote.upload(model_tar)
    return remote.load_module("model.tar")


def test_model_runs_on_the_device(remote, factory):
    model = GraphModule(factory["default"](remote.cpu(0)))
    data = np.arange(6, dtype="float32").reshape(SHAPE)
    model.set_input("data", data)
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), data + 11)
    assert model.get_output(0).device == remote.cpu(0)
    model.run(data=data * 2)
    np.testing.assert_array_equal(model.get_output(0).numpy(), data * 2 + 11)
    assert model.get_num_outputs() == 1
    assert model.get_input_info() == ({"data": SHAPE}, {"data": "float32"})


@pytest.mark.parametrize("is_there", [False, True])
def test_axes_of_one_may_be_added(remote, factory, is_there):
    model = GraphModule(factory["default"](remote.cpu(0)))
    data = np.arange(6, dtype="float32").reshape(2, 1, 3)
    model.set_input("data", nd.array(data, remote.cpu(0)) if is_there else data)
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), data.reshape(SHAPE) + 11)
    with pytest.raises((ExecutionError, RemoteError), match="shape"):
        wrong = data.reshape(3, 2)
        model.set_input("data", nd.array(wrong, remote.cpu(0)) if is_there else wrong)


def test_model_is_timed_on_the_device(remote, factory):
    model = GraphModule(factory["default"](remote.cpu(0)))
    model.set_input("data", np.zeros(SHAPE, "float32"))
    result = model.module.time_evaluator("run", remote.cpu(0), repeat=3, number=10)()
    assert len(result.results) == 3
    assert 0 < result.mean < 0.1
    assert model.benchmark(remote.cpu(0), repeat=2, end_to_end=True).mean > 0
    assert [name for name, _, _ in model.profile()] == ["sum", "plus"]


def test_two_models_on_one_device_do_not_share(remote, factory):
    first = GraphModule(factory["default"](remote.cpu(0)))
    second = GraphModule(factory["default"](remote.cpu(0)))
    first.run(data=np.zeros(SHAPE, "float32"))
    second.run(data=np.ones(SHAPE, "float32"))
    assert first.get_output(0).numpy()[0, 0] == 11
    assert second.get_output(0).numpy()[0, 0] == 12


def test_wrong_input_is_explained(remote, factory):
    model = GraphModule(factory["default"](remote.cpu(0)))
    with pytest.raises((RemoteError, ExecutionError), match="dat"):
        model.set_input("dat", np.zeros(SHAPE, "float32"))
    with pytest.raises((RemoteError, ExecutionError), match="data"):
        model.set_input("data", np.zeros((3, 3), "float32"))


def test_graph_json_and_remote_library(remote, factory, model_tables):
    model = create(model_tables.to_json(), factory, remote.cpu(0))
    model.load_params(save_param_dict({"weight": np.full(SHAPE, 100, "float32")}))
    model.run(data=np.zeros(SHAPE, "float32"))
    assert model.get_output(0).numpy()[0, 0] == 101


def test_damaged_model_is_refused(remote, model_tar):
    content = bytearray(model_tar.read_bytes())
    content[len(content) // 2] ^= 0xFF
    remote.upload(bytes(content), "model.tar")
    with pytest.raises(RemoteError, match=r"model\.tar"):
        remote.load_module("model.tar")


def test_memory_of_the_device_is_bound(remote, factory):
    model = GraphModule(factory["default"](remote.cpu(0)))
    data = nd.array(np.ones(SHAPE, "float32"), remote.cpu(0))
    out = nd.array(np.zeros(SHAPE, "float32"), remote.cpu(0))
    model.set_input_zero_copy("data", data)
    model.set_output_zero_copy(0, out)
    model.run()
    np.testing.assert_array_equal(out.numpy(), np.full(SHAPE, 12))
    for bind in (
        lambda v: model.set_input_zero_copy("data", v),
        partial(model.set_output_zero_copy, 0),
    ):
        for here in (np.zeros(SHAPE, "float32"), nd.empty(SHAPE)):
            with pytest.raises(ExecutionError, match="takes a tensor of its device"):
                bind(here)


def test_library_comes_back_as_one_file_that_loads(remote, model_tar, kernels, tmp_path):
    remote.upload(model_tar)
    whole = tmp_path / "model.anything"
    whole.write_bytes(remote.download_linked_module(model_tar.name))
    assert load_module(whole)["default"] is not None
    archive = tmp_path / "kernels.tar"
    write_artifact(archive, kernels.read_bytes(), metadata={"target": "llvm"})
    remote.upload(archive)
    assert remote.download_linked_module("kernels.tar") == kernels.read_bytes()
