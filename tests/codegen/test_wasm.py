"""WebAssembly libraries: they import nothing, and give NumPy's numbers in a runtime for them."""

import struct

import numpy as np
import pytest

import slipway as tvm
from slipway import te

wasmtime = pytest.importorskip("wasmtime", reason="no wasmtime: pip install wasmtime")
COUNT, TENSOR = 16, 7  # elements; tvm-ffi's type index of a DLTensor's address


@pytest.mark.parametrize("target", ["web/wasm", "web/wasm-simd"])
def test_a_kernel_runs(target, tmp_path):
    a = te.placeholder((COUNT,), name="a")
    b = te.compute((COUNT,), lambda i: te.exp(a[i]) + 1, name="b")
    path = tmp_path / "x.wasm"
    tvm.build(te.create_schedule(b.op), [a, b], target).export_library(str(path))
    engine = wasmtime.Engine()
    module = wasmtime.Module.from_file(engine, str(path))
    assert list(module.imports) == []
    store = wasmtime.Store(engine)
    exports = wasmtime.Instance(store, module, []).exports(store)
    memory = exports["memory"]
    base = memory.data_len(store)
    memory.grow(store, 1)
    x = np.linspace(-1, 1, COUNT, dtype="float32")

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
    found = np.frombuffer(bytes(memory.read(store, base + 256, base + 256 + 4 * COUNT)), "float32")
    np.testing.assert_allclose(found, np.exp(x) + 1, rtol=3e-7)
