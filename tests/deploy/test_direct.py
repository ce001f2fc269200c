"""The short way of a call gives what the long way gives, and is left where more must be asked."""

import dataclasses
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.deploy.model import Model
from slipway.errors import ArtifactError, ExecutionError
from slipway.runtime.artifact import read_artifact
from slipway.runtime.graph.plain_graph import plain_graph

RNG = np.random.default_rng(0)
TYPES = ["float32", "int8", "bool", "float16", "float64", "bfloat16"]


def model(dtype="float32", outputs=1):
    x, y = relay.var("x", shape=(3, 5), dtype=dtype), relay.var("y", shape=(5,), dtype=dtype)
    combined = relay.logical_or(x, y) if dtype == "bool" else relay.add(x, y)
    body = relay.Tuple([combined, relay.transpose(x)]) if outputs == 2 else combined
    return tvm.compile(tvm.IRModule.from_expr(relay.Function([x, y], body)), target="llvm")


def inputs(dtype):
    return [(RNG.random(shape) * 9).astype(dtype) for shape in ((3, 5), (5,))]


@pytest.fixture
def counted(monkeypatch):
    """Count the calls that go the long way."""
    seen = []
    run = Model.run
    monkeypatch.setattr(Model, "run", lambda self, given: seen.append(1) or run(self, given))
    return seen


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("outputs", [1, 2])
def test_both_ways_give_the_same(dtype, outputs, counted):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    name = np.dtype(dtype).name
    m = model(name, outputs)
    x, y = inputs(dtype)
    want = m(x=x, y=y)
    assert len(counted) == 1
    got = m(x, y)
    direct = name != "bfloat16"  # NumPy's DLPack has it not
    assert len(counted) == (1 if direct else 2)
    for one, other in zip(*(v.values() if outputs == 2 else [v] for v in (got, want)), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    if outputs == 2:
        assert list(got) == [spec.name for spec in m.outputs]


def test_results_stay_what_they_are(counted):
    m = model()
    x, y = inputs("float32")
    m(x, y)
    first = m(x, y)
    kept = first.copy()
    second = m(x + 1, y)
    np.testing.assert_array_equal(first, kept)
    assert not np.shares_memory(first, second)
    assert len(counted) == 1


@pytest.mark.parametrize("kind", ["transposed", "strided", "reversed", "read_only", "swapped"])
def test_arrays_that_lie_in_other_ways(kind):
    m = model()
    x, y = inputs("float32")
    want = x + y
    m(x, y)
    other = {
        "transposed": np.asarray(x.T, order="C").T,
        "strided": np.repeat(x, 2, axis=1)[:, ::2],
        "reversed": x[::-1].copy()[::-1],
        "read_only": x.copy(),
        "swapped": x.astype(">f4"),
    }[kind]
    if kind == "read_only":
        other.setflags(write=False)
    np.testing.assert_array_equal(m(other, y), want)


def test_what_does_not_fit_is_told_as_before(counted):
    m = model()
    x, y = inputs("float32")
    m(x, y)
    for given in ((x,), (x, y, y), (x[:, :4], y), (x, "y")):
        with pytest.raises(ExecutionError):
            m(*given)
    with pytest.warns(UserWarning, match="float64"):
        np.testing.assert_array_equal(m(x.astype("float64"), y), x + y)
    np.testing.assert_array_equal(m(x.tolist(), y), x + y)


def test_memory_that_a_caller_gave_is_used(counted):
    m = model()
    x, y = inputs("float32")
    m(x, y)
    mine, out = tvm.nd.array(x * 0), tvm.nd.empty((3, 5))
    m.executor.set_input_zero_copy("x", mine)
    m.executor.set_output_zero_copy(0, out)
    got = m(x, y)
    np.testing.assert_array_equal(got, x + y)
    np.testing.assert_array_equal(out.numpy(), x + y)


def test_a_closed_model_opens_again():
    m = model()
    x, y = inputs("float32")
    for _ in range(2):
        np.testing.assert_array_equal(m(x, y), x + y)
        np.testing.assert_array_equal(m(x, y), x + y)
        m.close()


def test_open_sizes_go_the_long_way(counted):
    rows = relay.Dim("n", 1, 8)
    x = relay.var("x", shape=(rows, 5))
    m = tvm.compile(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))), target="llvm")
    for count in (2, 7, 2):
        data = RNG.random((count, 5)).astype("float32")
        np.testing.assert_allclose(m(data), np.exp(data), 1e-5)
    assert len(counted) == 3


# What a file holds goes the short way from its first call on, without tvm-ffi's package.


def saved(expr, tmp_path, target="llvm"):
    path = tmp_path / "m.tar"
    tvm.compile(tvm.IRModule.from_expr(expr), target=target).save(path)
    return path


def dense(rows=4, name="x"):
    x = relay.var(name, shape=(rows, 16))
    weight = relay.const(RNG.random((8, 16)).astype("float32"))
    body = relay.nn.relu(relay.nn.dense(x, weight))
    return relay.Function([x], relay.Tuple([body, relay.sum(body, axis=1)]))


def test_a_first_result_needs_no_tvm_ffi(tmp_path):
    program = f"""
import numpy as np, slipway, sys
m = slipway.load({str(saved(dense(), tmp_path))!r})
data = np.linspace(-1, 1, 64, dtype="float32").reshape(4, 16)
first = m(data)
assert [v.shape for v in first.values()] == [(4, 8), (4,)]
heavy = {{"tvm_ffi", "ml_dtypes", "subprocess", "logging", "slipway.runtime.graph.graph_executor"}}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
for again in (m(x=data), m({{"x": data}}), m(data.tolist()), m.run({{"x": data}})):
    assert all(np.array_equal(first[name], again[name]) for name in first)
assert "tvm_ffi" not in sys.modules
m.executor
assert "tvm_ffi" in sys.modules
assert all(np.array_equal(first[name], value) for name, value in m(data).items())
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)


def test_several_batches_of_a_file(tmp_path):
    m = tvm.load(saved(dense(), tmp_path))
    x = RNG.random((12, 16)).astype("float32") - 0.5
    whole = m(x)
    assert m._direct is not None
    assert m._executor is None
    for name, value in whole.items():
        parts = np.concatenate([m(x[i : i + 4])[name] for i in (0, 4, 8)])
        np.testing.assert_array_equal(value, parts)


def test_a_file_that_was_closed_opens_again(tmp_path):
    m = tvm.load(saved(dense(), tmp_path))
    x = RNG.random((4, 16)).astype("float32")
    want = m(x)
    m.close()
    for name, value in m(x).items():
        np.testing.assert_array_equal(value, want[name])


def test_the_executor_of_a_file_holds_what_the_last_call_gave(tmp_path):
    given, others = inputs("float32"), inputs("float32")
    model().save(tmp_path / "m.tar")
    loaded = tvm.load(tmp_path / "m.tar")
    loaded(*others)
    result = loaded(*given)
    np.testing.assert_array_equal(loaded.executor.get_output(0).numpy(), result)
    np.testing.assert_array_equal(loaded.executor.get_input("x").numpy(), given[0])
    np.testing.assert_array_equal(loaded(*others), others[0] + others[1])
    fresh = tvm.load(tmp_path / "m.tar")
    assert fresh.executor.get_output(0).shape == (3, 5)  # nothing has been run


def test_an_executor_and_the_short_way_of_a_file(tmp_path):
    """Parameters that were set in the executor are those of later calls."""
    m = tvm.load(saved(dense(), tmp_path))
    x = RNG.random((4, 16)).astype("float32")
    m(x)
    name = m.executor.get_input_name(1)
    m.executor.set_input(name, np.zeros(m.executor.get_input(name).shape, "float32"))
    assert not any(value.any() for value in m(x).values())


@pytest.mark.parametrize("wrong", ["shape", "name", "count", "text"])
def test_what_does_not_fit_a_file_is_told(tmp_path, wrong):
    m = tvm.load(saved(dense(), tmp_path))
    x = RNG.random((4, 16)).astype("float32")
    given, named = {
        "shape": ((x[:, :3],), {}),
        "name": ((), {"y": x}),
        "count": ((x, x), {}),
        "text": (("a",), {}),
    }[wrong]
    for _ in range(2):
        with pytest.raises((ExecutionError, ValueError)):
            m(*given, **named)
    assert m(x) is not None


def test_arrays_of_another_type_are_told_as_before(tmp_path):
    m = tvm.load(saved(dense(name="of_file"), tmp_path))  # each name is told of once
    x = RNG.random((4, 16)).astype("float32")
    with pytest.warns(UserWarning, match="float64"):
        got = m(x.astype("float64"))
    for name, value in m(x).items():
        np.testing.assert_array_equal(value, got[name])


def test_what_a_file_may_need_besides(tmp_path):
    x = relay.var("x", shape=(1, 5))
    path = saved(relay.Function([x], relay.exp(x)), tmp_path)
    contents = read_artifact(path.read_bytes(), path.name)
    assert plain_graph(contents) is not None
    metadata = {**contents.metadata, "device_type": 4}
    assert plain_graph(dataclasses.replace(contents, metadata=metadata)) is None
    without = {**contents.metadata, "functions": []}
    assert plain_graph(dataclasses.replace(contents, metadata=without)) is None
    damaged = dataclasses.replace(contents, graph=contents.graph[:-3])
    assert plain_graph(damaged) is None


def test_the_memory_of_a_short_way_goes_with_the_model(tmp_path):
    weight = relay.const(RNG.random((1024, 4096)).astype("float32"))
    x = relay.var("x", shape=(1, 4096))
    path = saved(relay.Function([x], relay.nn.dense(x, weight)), tmp_path)
    data = np.ones((1, 4096), "float32")

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20

    tvm.load(path)(data)
    before = resident()
    for _ in range(8):
        tvm.load(path)(data)
    assert resident() - before < 24  # of 16 MB each


def test_two_threads_each_with_a_model_of_a_file(tmp_path):
    path = saved(dense(), tmp_path)
    given = [RNG.random((4, 16)).astype("float32") for _ in range(4)]
    model_ = tvm.load(path)
    want = [next(iter(model_(x).values())) for x in given]
    failed = []

    def work(at):
        m = tvm.load(path)
        for _ in range(50):
            if not np.array_equal(next(iter(m(given[at]).values())), want[at]):
                failed.append(at)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def large(value, tmp_path, name):
    """Return the file of a model that adds 2 MB of one value."""
    x = relay.var("x", shape=(512, 1024))
    constant = relay.const(np.full((512, 1024), value, "float32"))
    path = tmp_path / name
    tvm.compile(tvm.IRModule.from_expr(relay.Function([x], x + constant)), target="llvm").save(path)
    return path


@pytest.mark.parametrize("way", ["renamed", "removed", "written_into"])
def test_a_file_that_changes_before_the_first_call(tmp_path, way):
    """A large one is seen where it lies, which whoever writes into it changes."""
    path, other = large(1, tmp_path, "m.tar"), large(2, tmp_path, "other.tar")
    m, x = tvm.load(path), np.zeros((512, 1024), "float32")
    if way == "renamed":
        other.replace(path)
    elif way == "removed":
        path.unlink()
    else:
        path.write_bytes(other.read_bytes())
    assert set(m(x).flat) == {2.0 if way == "written_into" else 1.0}


def test_a_file_that_is_cut_before_the_first_call(tmp_path):
    path = large(1, tmp_path, "m.tar")
    m = tvm.load(path)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(ArtifactError, match="truncated"):
        m(np.zeros((512, 1024), "float32"))
