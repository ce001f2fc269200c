"""Four-bit integers, packed two per byte: interpreter, llvm and c against NumPy."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.codegen.narrow import widen_narrow
from slipway.errors import CodegenError
from slipway.ir.interpreter.interpret import run
from slipway.transform.loop.pipeline import run_pipeline

NUMPY = {"int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4}
RANGE = {"int4": (-8, 8), "uint4": (0, 16)}
KINDS = ("interpreter", "llvm", "c")


def values(shape, dtype, seed=0):
    return np.random.default_rng(seed).integers(*RANGE[dtype], shape).astype("int8")


def wrap(x, dtype):
    low = x.astype("int64") & 15
    return (low ^ 8) - 8 if dtype == "int4" else low


def call(kind, schedule, args, arrays):
    """Run on arrays of NumPy integers; return the last argument."""
    if kind == "interpreter":
        given = [
            a.astype(a.dtype if t.dtype not in NUMPY else t.dtype.replace("4", "8"))
            for a, t in zip(arrays, args, strict=True)
        ]
        run(run_pipeline(te.lower(schedule, args)), *given)
        return given[-1].astype("int64")
    function = tvm.build(schedule, args, kind)
    given = [tvm.nd.array(a, dtype=t.dtype) for a, t in zip(arrays, args, strict=True)]
    function(*given)
    return given[-1].numpy().astype("int64")


def raw_bytes(array):
    """The memory of an NDArray, seen as it is."""
    memory = (ctypes.c_char * array.nbytes).from_address(array._tensor.data_ptr())
    return np.frombuffer(memory, "uint8")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize("shape", [(16,), (7,), (1,), (3, 5)])
def test_arithmetic_wraps_to_four_bits(kind, dtype, shape):
    a, b = (te.placeholder(shape, dtype, name=n) for n in "AB")

    def formula(*i):
        x, y = a[i], b[i]
        chosen = te.if_then_else(x > y, x - y, te.max(x, y) + te.const(3, dtype))
        return chosen * (x ^ y) + (x >> te.const(1, dtype))

    c = te.compute(shape, formula, name="C")
    x, y = (values(shape, dtype, seed).astype("int64") for seed in (1, 2))
    want = wrap(
        np.where(x > y, x - y, wrap(np.maximum(x, y) + 3, dtype)) * (x ^ y) + (x >> 1), dtype
    )
    got = call(kind, te.create_schedule(c.op), [a, b, c], [x, y, np.zeros(shape, "int8")])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize("how", ["vectorize", "parallel", "both", "odd rows"])
def test_schedules_that_split_bytes_between_lanes_and_threads(kind, dtype, how):
    n, m = (5, 15) if how == "odd rows" else (6, 16)
    a = te.placeholder((n, m), dtype, name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] * a[i, m - 1 - j], name="B")
    c = te.compute((n, m), lambda i, j: b[i, j] + te.const(1, dtype), name="C")
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    if how in ("vectorize", "both", "odd rows"):
        s[c].vectorize(s[c].split(j, 8)[1])
        s[b].vectorize(s[b].split(b.op.axis[1], 4)[1])
    if how in ("parallel", "both", "odd rows"):
        s[c].parallel(i)
    x = values((n, m), dtype)
    want = wrap(wrap(x.astype("int64") * x[:, ::-1], dtype) + 1, dtype)
    got = call(kind, s, [a, c], [x, np.zeros((n, m), "int8")])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_four_bits_summed_in_32(kind):
    rows, depth = 9, 32
    w = te.placeholder((rows, depth), "int4", name="W")
    x = te.placeholder((depth,), "int8", name="X")
    k = te.reduce_axis((0, depth), "k")
    y = te.compute(
        (rows,), lambda i: te.sum(w[i, k].astype("int32") * x[k].astype("int32"), axis=k), name="Y"
    )
    s = te.create_schedule(y.op)
    lanes = s[y].split(k, 16)[1]
    partial = s.rfactor(y, lanes, factor_axis=1)
    s[partial].vectorize(partial.op.axis[1])
    weights = values((rows, depth), "int4")
    data = np.random.default_rng(3).integers(-128, 128, depth).astype("int8")
    got = call(kind, s, [w, x, y], [weights, data, np.zeros(rows, "int32")])
    np.testing.assert_array_equal(got, weights.astype("int64") @ data.astype("int64"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [1, 6, 7])
def test_symbolic_lengths(kind, length):
    n = te.size_var("n")
    a = te.placeholder((n,), "uint4", name="A")
    b = te.compute((n,), lambda i: a[i] + te.const(9, "uint4"), name="B")
    x = values((length,), "uint4")
    got = call(kind, te.create_schedule(b.op), [a, b], [x, np.zeros(length, "int8")])
    np.testing.assert_array_equal(got, (x + 9) % 16)


@pytest.mark.parametrize("kind", KINDS)
def test_casts(kind):
    a = te.placeholder((33,), "float32", name="A")
    b = te.compute((33,), lambda i: te.trunc(a[i]).astype("int4"), name="B")
    c = te.compute((33,), lambda i: b[i].astype("uint4"), name="C")
    d = te.compute((33,), lambda i: c[i].astype("int32") - b[i].astype("int32"), name="D")
    s = te.create_schedule(d.op)
    x = np.linspace(-8, 7.9, 33).astype("float32")
    got = call(kind, s, [a, d], [x, np.zeros(33, "int32")])
    np.testing.assert_array_equal(got, np.where(np.trunc(x) < 0, 16, 0))


def test_the_bytes_are_those_of_dlpack():
    given = np.array([1, -2, 7, -8, 5], "int8")
    array = tvm.nd.array(given, dtype="int4")
    assert array.nbytes == 3
    raw = raw_bytes(array)
    assert raw.tolist() == [0xE1, 0x87, 0x05]
    back = array.numpy()
    assert back.dtype == ml_dtypes.int4
    np.testing.assert_array_equal(back.astype("int8"), given)
    assert tvm.nd.array(back).dtype == "int4"


def test_the_free_half_of_an_odd_tensor_is_zero():
    a = te.placeholder((3,), "int4", name="A")
    b = te.compute((3,), lambda i: a[i] - te.const(1, "int4"), name="B")
    for kind in ("llvm", "c"):
        out = tvm.nd.array(np.full(3, -1, "int8"), dtype="int4")
        raw = raw_bytes(out)
        zeros = tvm.nd.array(np.zeros(3, "int8"), dtype="int4")
        tvm.build(te.create_schedule(b.op), [a, b], kind)(zeros, out)
        assert raw.tolist() == [0xFF, 0x0F]


def test_functions_without_four_bits_stay_the_same_object():
    a = te.placeholder((3,), "uint8", name="A")
    b = te.compute((3,), lambda i: a[i] + te.const(1, "uint8"), name="B")
    func = run_pipeline(te.lower(te.create_schedule(b.op), [a, b]))
    assert widen_narrow(func) is func


def test_what_sees_the_bits_is_refused():
    a = te.placeholder((4,), "int4", name="A")
    b = te.compute((4,), lambda i: te.popcount(a[i]), name="B")
    with pytest.raises(CodegenError, match="popcount of four-bit integers cannot be compiled"):
        tvm.build(te.create_schedule(b.op), [a, b], "llvm")
