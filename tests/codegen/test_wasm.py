"""WebAssembly libraries: they import nothing, and give NumPy's numbers in a runtime for them."""

import re
import struct

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.relay.ops.tensor.small_types import to_integer

wasmtime = pytest.importorskip("wasmtime", reason="no wasmtime: pip install wasmtime")
COUNT, TENSOR = 16, 7  # elements; tvm-ffi's type index of a DLTensor's address
SPECIAL = (np.nan, np.inf, -np.inf, -np.nan, 2.0**31, -(2.0**31), 3e9, -3e9)


def result_of(schedule, arguments, x, target, path):
    """Return what a kernel of (input, output), of as many elements as `x`, gives for `x`."""
    tvm.build(schedule, arguments, target).export_library(str(path))
    engine = wasmtime.Engine()
    module = wasmtime.Module.from_file(engine, str(path))
    assert list(module.imports) == []
    store = wasmtime.Store(engine)
    exports = wasmtime.Instance(store, module, []).exports(store)
    memory = exports["memory"]
    base = memory.data_len(store)
    memory.grow(store, 1)

    def write(at, data):
        memory.write(store, data, base + at)

    def tensor(at, data):
        # data, device, ndim, dtype, shape, strides, four bytes to align with, byte_offset
        fields = (base + data, 1, 0, 1, 2, 32, 1, base + 512, 0, 0, 0)
        write(at, struct.pack("<IiiiBBHIIiQ", *fields))

    write(0, x.tobytes())
    write(512, struct.pack("<q", COUNT))
    tensor(600, 0)
    tensor(664, 256)
    write(800, struct.pack("<iiqiiq", TENSOR, 0, base + 600, TENSOR, 0, base + 664))
    assert exports["__tvm_ffi_main"](store, 0, base + 800, 2, base + 900) == 0
    return np.frombuffer(bytes(memory.read(store, base + 256, base + 256 + 4 * COUNT)), "float32")


@pytest.mark.parametrize("target", ["web/wasm", "web/wasm-simd"])
def test_a_kernel_runs(target, tmp_path):
    a = te.placeholder((COUNT,), name="a")
    b = te.compute((COUNT,), lambda i: te.exp(a[i]) + 1, name="b")
    x = np.linspace(-1, 1, COUNT, dtype="float32")
    found = result_of(te.create_schedule(b.op), [a, b], x, target, tmp_path / "x.wasm")
    np.testing.assert_allclose(found, np.exp(x) + 1, rtol=3e-7)


@pytest.mark.parametrize("lanes", [1, 4])
def test_bounds_keep_every_nan_and_infinity(lanes, tmp_path):
    low, high = (te.const(v, "float32") for v in (-0.5, 6.0))
    a = te.placeholder((COUNT,), name="a")
    b = te.compute((COUNT,), lambda i: te.min(te.max(a[i], low), high), name="b")
    schedule = te.create_schedule(b.op)
    schedule[b].vectorize(schedule[b].split(b.op.axis[0], lanes)[1])
    x = np.linspace(-2, 9, COUNT, dtype="float32")
    x[[1, 4, 6, 11]] = np.nan, -np.inf, np.inf, -np.nan
    found = result_of(schedule, [a, b], x, "web/wasm", tmp_path / "x.wasm")
    np.testing.assert_array_equal(found, np.clip(x, -0.5, 6.0))


@pytest.mark.parametrize("dtype", ["int8", "int32"])
@pytest.mark.parametrize("lanes", [1, 4])
def test_floats_become_integers_whatever_they_are(lanes, dtype, tmp_path):
    a = te.placeholder((COUNT,), name="a")
    b = te.compute((COUNT,), lambda i: te.to_integer(a[i], dtype).astype("float32"), name="b")
    schedule = te.create_schedule(b.op)
    schedule[b].vectorize(schedule[b].split(b.op.axis[0], lanes)[1])
    x = np.array([*SPECIAL, 2.0**63, -1.5, 127.5, -128.9, 300.7, 0, -0.0, 1e30], "float32")
    found = result_of(schedule, [a, b], x, "web/wasm", tmp_path / "x.wasm")
    np.testing.assert_array_equal(found, to_integer(x, dtype).astype("float32"))


def test_addresses_are_a_base_and_offsets():
    """Each load of unrolled code adds nothing to the one address of its step, and no loop is
    unrolled: engines do that."""
    a = te.placeholder((12, 4, 64), name="a")
    k = te.reduce_axis((0, 12), name="k")
    b = te.compute((4, 64), lambda i, j: te.sum(a[k, i, j], axis=k), name="b")
    schedule = te.create_schedule(b.op)
    sums = schedule.cache_write(b, "local")
    i, j = schedule[b].op.axis
    outer, lane = schedule[b].split(j, 4)
    schedule[b].reorder(outer, i, lane)
    schedule[b].unroll(i)
    schedule[b].vectorize(lane)
    schedule[sums].compute_at(schedule[b], outer)
    i, j = schedule[sums].op.axis
    schedule[sums].reorder(schedule[sums].op.reduce_axis[0], i, j)
    schedule[sums].unroll(i)
    schedule[sums].vectorize(j)
    code = tvm.build(schedule, [a, b], "web/wasm").get_source("asm")
    offsets = re.findall(r"v128\.load\t(\d+):", code)
    assert sorted(map(int, offsets)) == [0, 256, 512, 768]
    offsets = re.findall(r"v128\.store\t(\d+):", code)
    assert sorted(map(int, offsets)) == [0, 256, 512, 768]
