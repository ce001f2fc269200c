"""The short way of a call gives what the long way gives, and is left where more must be asked."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import ExecutionError

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
    run = tvm.deploy.model.Model.run
    monkeypatch.setattr(
        tvm.deploy.model.Model, "run", lambda self, given: seen.append(1) or run(self, given)
    )
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
