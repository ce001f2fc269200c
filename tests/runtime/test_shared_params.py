"""Executors of one model read one copy of its parameters, and cannot change each other's."""

import gc
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.rpc import LocalSession
from slipway.runtime.graph.param_store import ParamStore, _copy
from slipway.runtime.params import load_param_dict, save_param_dict

WEIGHT = np.arange(16, dtype="float32").reshape(4, 4)
INPUT = np.ones((1, 4), "float32")


def library():
    x = relay.var("x", shape=(1, 4))
    dense = relay.nn.dense(x, relay.const(WEIGHT))
    return relay.build(tvm.IRModule.from_expr(relay.Function([x], dense)), target="llvm")


def exported(path):
    library().export_library(path)
    return tvm.runtime.load_module(path)


def over_rpc(path):
    session = LocalSession()
    library().export_library(path)
    session.upload(path)
    return session.load_module(path.name), session.cpu(0)


@pytest.fixture(params=["built", "tar", "so", "device"])
def made(request, tmp_path):
    """A library, its device, and the name and shape of its parameter."""
    known = library().get_params()
    ((name, values),) = known.items()
    if request.param == "built":
        return library(), tvm.cpu(0), name, values.numpy()
    if request.param == "device":
        return *over_rpc(tmp_path / "m.tar"), name, values.numpy()
    return exported(tmp_path / f"m.{request.param}"), tvm.cpu(0), name, values.numpy()


def result(executor):
    executor.run(x=INPUT)
    return executor.get_output(0).numpy()


def test_an_executor_that_sets_a_parameter_changes_its_own_only(made):
    lib, dev, name, values = made
    one, two, three = (graph_executor.GraphModule(lib["default"](dev)) for _ in range(3))
    expected = result(one)
    np.testing.assert_allclose(expected, INPUT @ WEIGHT.T)
    one.set_input(name, np.zeros_like(values))
    two.get_input(name).copyfrom(values * 2)
    assert not result(one).any()
    np.testing.assert_allclose(result(two), expected * 2)
    np.testing.assert_array_equal(result(three), expected)
    assert list(three.get_input_info()[0]) == ["x"]  # parameters are none of the user's inputs
    np.testing.assert_array_equal(three.get_input(name).numpy(), values)
    one.load_params(save_param_dict({name: values}))
    np.testing.assert_array_equal(result(one), expected)


@pytest.mark.parametrize("made", ["built", "tar", "so"], indirect=True)
def test_a_parameter_of_the_users_own_memory(made):
    lib, dev, name, values = made
    one, two = (graph_executor.GraphModule(lib["default"](dev)) for _ in range(2))
    expected, own = result(two), tvm.nd.array(values * 3)
    one.set_input_zero_copy(name, own)
    np.testing.assert_allclose(result(one), expected * 3)
    np.testing.assert_array_equal(result(two), expected)
    one.share_params(two)
    np.testing.assert_array_equal(result(one), expected)
    one.set_input(**lib.get_params())  # what it reads already
    np.testing.assert_array_equal(result(one), expected)


def test_the_parameters_outlive_the_library_and_the_first_executor():
    lib = library()
    first = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    second = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    expected = result(first)
    del lib, first
    gc.collect()
    np.testing.assert_array_equal(result(second), expected)


def test_executors_take_no_memory_for_parameters():
    """64 MB of weights and eight executors of them."""
    x = relay.var("x", shape=(1, 4096))
    dense = relay.nn.dense(x, relay.const(np.ones((4096, 4096), "float32")))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], dense)), target="llvm")
    executors = [graph_executor.GraphModule(lib["default"](tvm.cpu(0)))]
    before = resident_mb()
    executors += [graph_executor.GraphModule(lib["default"](tvm.cpu(0))) for _ in range(8)]
    for executor in executors:
        executor.run(x=np.ones((1, 4096), "float32"))
        assert executor.get_output(0).numpy()[0, 7] == 4096
    assert resident_mb() - before < 32


def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def test_a_store_holds_every_kind_of_array():
    import ml_dtypes

    given = {
        "f": np.linspace(0, 1, 7, dtype="float32"),
        "transposed": np.arange(12, dtype="int16").reshape(3, 4).T,
        "scalar": np.array(5, "int64"),
        "empty": np.zeros((0, 3), "float32"),
        "bool": np.array([True, False, True]),
        "brain": np.arange(5).astype(ml_dtypes.bfloat16),
        "half": np.arange(-3, 4).astype(ml_dtypes.int4),
        "array": tvm.nd.array(np.arange(3, dtype="uint8")),
        "large": np.arange(1 << 19, dtype="float32"),
    }
    arrays = ParamStore(given).arrays
    for name, value in given.items():
        expected = value.numpy() if hasattr(value, "numpy") else value
        np.testing.assert_array_equal(arrays[name].numpy(), expected)
        assert arrays[name].numpy().dtype == expected.dtype
    again = load_param_dict(save_param_dict(arrays))
    assert save_param_dict(again) == save_param_dict(given)


def test_reshapes_in_place_follow_what_they_read():
    """At level 0 nothing is fused: both the input and the parameter go through a reshape."""
    x = relay.var("x", shape=(2, 2))
    body = relay.add(
        relay.reshape(x, (1, 4)), relay.reshape(relay.const(WEIGHT.reshape(2, 8)), (4, 4))
    )
    with tvm.transform.PassContext(opt_level=0):
        lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), target="llvm")
    assert sum(node.function == "__nop" for node in lib.tables.nodes) == 2
    model = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    values = np.arange(4, dtype="float32").reshape(2, 2)
    own = tvm.nd.array(values)
    model.set_input_zero_copy("x", own)
    ((name, _),) = lib.get_params().items()
    for weight in (WEIGHT, WEIGHT * 2):
        if weight is not WEIGHT:
            model.set_input(name, weight.reshape(2, 8))
        model.run()
        np.testing.assert_array_equal(model.get_output(0).numpy(), values.reshape(1, 4) + weight)


@pytest.mark.parametrize("form", ["built", "tar"])
def test_an_empty_parameter(form, tmp_path):
    x = relay.var("x", shape=(2, 4))
    empty = relay.const(np.zeros((0, 4), "float32"))
    body = relay.Tuple([relay.nn.relu(x), empty, relay.const(WEIGHT)])
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), target="llvm")
    if form == "tar":
        lib.export_library(tmp_path / "m.tar")
        lib = tvm.runtime.load_module(tmp_path / "m.tar")
    model = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    model.run(x=np.ones((2, 4), "float32"))
    assert model.get_output(1).numpy().shape == (0, 4)
    np.testing.assert_array_equal(model.get_output(2).numpy(), WEIGHT)


def test_large_parameters_are_copied_by_several_threads():
    big = np.zeros((1 << 20,), "float32")
    store = ParamStore({f"p{i}": big + i for i in range(8)})
    assert [float(array.numpy()[7]) for array in store.arrays.values()] == list(range(8))


@pytest.mark.parametrize("broken", range(4))
def test_what_stops_one_of_several_copies_is_raised(broken):
    class Array(np.ndarray):
        """An array whose bytes cannot be had."""

        def view(self, *_):
            raise MemoryError(f"of array {broken}")

    pieces = [np.zeros(8 * (number + 1), np.uint8) for number in range(4)]
    pieces[broken] = np.ndarray.view(pieces[broken], Array)
    pairs = [(piece, np.zeros(number + 1)) for number, piece in enumerate(pieces)]
    with pytest.raises(MemoryError, match=f"of array {broken}"):
        _copy(pairs, threads=3)
