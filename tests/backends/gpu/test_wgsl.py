"""Integers that WGSL does not have: of 64 bits as pairs of words, of 8 and 16 packed in memory."""

import numpy as np
import pytest
import run_kernels
from run_kernels import axis, built, run

import slipway as tvm
from slipway import relay, te
from slipway.contrib import graph_executor
from slipway.target import Target

WGSL = Target("webgpu", host="llvm")
INTEGERS = ("int64", "uint64", "int8", "uint8", "int16", "uint16")


@pytest.fixture(params=["wgsl", "chromium"])
def wgsl(simulators, monkeypatch, request):
    """A device that runs WGSL, compiled by Naga and by Tint."""
    simulator = simulators(request.param)
    monkeypatch.setattr(run_kernels, "current", (WGSL, simulator))
    simulator.enter()
    yield tvm.webgpu(0)
    simulator.leave()


def elementwise(compute, *dtypes, n):
    """Return a schedule of one kernel, 32 threads in a block, and its arguments."""
    given = [te.placeholder((n,), name=f"p{i}", dtype=d) for i, d in enumerate(dtypes)]
    made = te.compute((n,), lambda i: compute(*(p[i] for p in given)), name="made")
    schedule = te.create_schedule(made.op)
    block, thread = schedule[made].split(made.op.axis[0], factor=32)
    schedule[made].bind(block, axis("blockIdx.x"))
    schedule[made].bind(thread, axis("threadIdx.x"))
    return schedule, [*given, made]


def numbers(dtype, seed=0, count=203):
    """Return numbers of every length in bits, of both signs, and the least and the largest."""
    rng = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    bits = info.bits - (info.min < 0)
    sizes = rng.integers(0, bits + 1, count)
    found = [int(rng.integers(0, 2, dtype="uint64")) for _ in range(count)]
    for k, size in enumerate(sizes):
        word = int.from_bytes(rng.bytes(8), "little") & ((1 << int(size)) - 1)
        found[k] = -word if info.min < 0 and rng.random() < 0.5 else word
    edges = [0, 1, info.max, info.min, info.max - 1, info.min + 1, 2, 10]
    found[: len(edges)] = edges if seed == 0 else edges[::-1]
    return np.array([min(max(n, info.min), info.max) for n in found], dtype=dtype)


ARITHMETIC = {
    "add": (lambda a, b: a + b, lambda a, b: a + b),
    "sub": (lambda a, b: a - b, lambda a, b: a - b),
    "mul": (lambda a, b: a * b, lambda a, b: a * b),
    "max": (te.max, np.maximum),
    "min": (te.min, np.minimum),
    "and": (lambda a, b: a & b, lambda a, b: a & b),
    "xor": (lambda a, b: a ^ b, lambda a, b: a ^ b),
    "less": (
        lambda a, b: tvm.tir.Select(a < b, a, b - a),
        lambda a, b: np.where(a < b, a, b - a),
    ),
    "same": (
        lambda a, b: tvm.tir.Select(tvm.tir.all(a != b, a >= b), a, b),
        lambda a, b: np.where((a != b) & (a >= b), a, b),
    ),
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_is_that_of_the_dtype(name, dtype, wgsl):
    compute, reference = ARITHMETIC[name]
    if name in ("max", "min"):
        compute = tvm.tir.max if name == "max" else tvm.tir.min
    a, b = numbers(dtype), numbers(dtype, 1)
    b[40:60] = a[40:60]
    function = built(*elementwise(compute, dtype, dtype, n=len(a)), name=f"{name}_{dtype}")
    with np.errstate(over="ignore"):
        wanted = reference(a, b).astype(dtype)
    np.testing.assert_array_equal(run(function, wgsl, [a, b], a.shape, dtype), wanted)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_quotients_and_remainders_are_floors(dtype, wgsl):
    a, b = numbers(dtype), numbers(dtype, 1)
    b[b == 0] = 3
    if a.dtype.kind == "i":
        b[(b == -1) & (a == np.iinfo(dtype).min)] = 7
    for name, compute, wanted in (
        ("quotient", tvm.tir.floordiv, a // b),
        ("rest", tvm.tir.floormod, a % b),
    ):
        function = built(*elementwise(compute, dtype, dtype, n=len(a)), name=f"{name}_{dtype}")
        np.testing.assert_array_equal(run(function, wgsl, [a, b], a.shape, dtype), wanted)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_and_bits(dtype, wgsl):
    a = numbers(dtype)
    by = (np.arange(len(a)) % np.iinfo(dtype).bits).astype(dtype)
    for name, compute, wanted in (
        ("left", lambda x, n: x << n, a << by),
        ("right", lambda x, n: x >> n, a >> by),
        (
            "ones",
            lambda x, n: tvm.tir.popcount(x) + n * 0,
            np.bitwise_count(a.view(a.dtype.str.replace("i", "u"))).astype(dtype),
        ),
    ):
        function = built(*elementwise(compute, dtype, dtype, n=len(a)), name=f"{name}_{dtype}")
        np.testing.assert_array_equal(run(function, wgsl, [a, by], a.shape, dtype), wanted)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_floats_are_the_nearest(dtype, wgsl):
    """Ties to even, where a number has more digits than a float32."""
    a = numbers(dtype, count=403)
    if np.iinfo(dtype).bits == 64:
        ties = [(1 << k) + (1 << (k - 24)) + d for k in range(24, 63) for d in (-1, 0, 1)]
        a = np.concatenate([a, np.array(ties, dtype)])
    to = built(*elementwise(lambda x: x.astype("float32"), dtype, n=len(a)), name=f"to_{dtype}")
    found = run(to, wgsl, [a], a.shape)
    np.testing.assert_array_equal(found, a.astype("float32"))
    back = np.clip(a.astype("float32") * np.float32(0.37), 0 if a.dtype.kind == "u" else None, None)
    of = built(*elementwise(lambda x: x.astype(dtype), "float32", n=len(a)), name=f"of_{dtype}")
    np.testing.assert_array_equal(run(of, wgsl, [back], a.shape, dtype), back.astype(dtype))


@pytest.mark.parametrize("given", INTEGERS)
@pytest.mark.parametrize("made", [*INTEGERS, "int32", "uint32"])
def test_integers_convert_by_their_low_bits(given, made, wgsl):
    a = numbers(given)
    function = built(
        *elementwise(lambda x: x.astype(made), given, n=len(a)), name=f"{given}_{made}"
    )
    np.testing.assert_array_equal(run(function, wgsl, [a], a.shape, made), a.astype(made))


def test_neighbours_in_a_word_are_written_by_other_threads(wgsl):
    """Bytes that two blocks, and two threads, write into one word; shared memory of bytes too."""
    n = 77
    a = te.placeholder((n,), name="a", dtype="int8")
    copied = te.compute((n,), lambda i: a[i], name="copied")
    b = te.compute((n,), lambda i: copied[i] - copied[i // 8 * 8], name="b")
    s = te.create_schedule(b.op)
    block, thread = s[b].split(b.op.axis[0], factor=8)
    s[b].bind(block, axis("blockIdx.x"))
    s[b].bind(thread, axis("threadIdx.x"))
    s[copied].set_scope("shared")
    s[copied].compute_at(s[b], block)
    s[copied].bind(s[copied].op.axis[0], axis("threadIdx.x"))
    function = built(s, [a, b], name="bytes")
    values = np.random.default_rng(0).integers(-128, 128, n).astype("int8")
    wanted = values - values[np.arange(n) // 8 * 8]
    np.testing.assert_array_equal(run(function, wgsl, [values], (n,), "int8"), wanted)


def test_a_size_of_64_bits_is_a_number_of_the_kernel(wgsl):
    n = te.var("n", "int64")
    a = te.placeholder((n,), name="a", dtype="int64")
    b = te.compute((n,), lambda i: a[i] * (n + i), name="b")
    s = te.create_schedule(b.op)
    block, thread = s[b].split(b.op.axis[0], factor=16)
    s[b].bind(block, axis("blockIdx.x"))
    s[b].bind(thread, axis("threadIdx.x"))
    function = built(s, [a, b], name="sized")
    values = numbers("int64")
    with np.errstate(over="ignore"):
        wanted = values * (len(values) + np.arange(len(values)))
    np.testing.assert_array_equal(run(function, wgsl, [values], values.shape, "int64"), wanted)


def test_a_model_with_token_numbers_and_places(wgsl):
    """An embedding read by int64, its argmax and the largest two with their int64 places."""
    tokens = relay.var("tokens", shape=(1, 9), dtype="int64")
    rng = np.random.default_rng(2)
    table = rng.standard_normal((50, 16)).astype("float32")
    rows = relay.take(relay.const(table), tokens, axis=0)
    largest = relay.topk(rows, k=2, axis=-1, dtype="int64", ret_type="both")
    body = relay.Tuple([relay.argmax(rows, axis=-1), largest[0], largest[1], relay.nn.relu(rows)])
    mod = tvm.IRModule.from_expr(relay.Function([tokens], body))
    made = relay.build(mod, target=WGSL)
    run_kernels.current[1].learn(made.lib.imported_modules[0])
    module = graph_executor.GraphModule(made["default"](wgsl))
    values = rng.integers(0, 50, (1, 9))
    module.run(tokens=values)
    rows = table[values]
    np.testing.assert_array_equal(module.get_output(0).numpy(), rows.argmax(-1))
    order = np.argsort(-rows, axis=-1, kind="stable")[..., :2]
    np.testing.assert_array_equal(module.get_output(1).numpy(), np.take_along_axis(rows, order, -1))
    np.testing.assert_array_equal(module.get_output(2).numpy(), order)
    np.testing.assert_array_equal(module.get_output(3).numpy(), np.maximum(rows, 0))
