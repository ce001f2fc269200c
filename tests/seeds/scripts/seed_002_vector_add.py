"""Seed 002, "TVM Runtime & Deployment", parts 2 to 5: Module, PackedFunc, NDArray, targets."""

import numpy as np

import slipway as tvm
from slipway import te

# 2. Module: the compilation unit.
n = 1024
A = te.placeholder((n,), name="A")
B = te.placeholder((n,), name="B")
C = te.compute((n,), lambda i: A[i] + B[i], name="C")

s = te.create_schedule(C.op)
s[C].vectorize(C.op.axis[0])

mod = tvm.build(s, [A, B, C], target="llvm", name="vecadd")

print(type(mod))
source = mod.get_source()
assert "vecadd" in source and "define" in source

dev = tvm.cpu(0)
a = tvm.nd.array(np.random.randn(n).astype("float32"), dev)
b = tvm.nd.array(np.random.randn(n).astype("float32"), dev)
c = tvm.nd.array(np.zeros(n).astype("float32"), dev)
mod(a, b, c)

np.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy(), atol=1e-5)

# 3. PackedFunc: the universal calling convention.
f = mod.get_function("vecadd")
f(a, b, c)


@tvm.register_func("my_custom_op")
def my_custom_op(x, y):
    return x + y


f = tvm.get_global_func("my_custom_op")
result = f(3, 4)
assert result == 7

# 4. NDArray and DLPack: zero-copy tensor exchange.
x_cpu = tvm.nd.array(np.random.randn(3, 4).astype("float32"), tvm.cpu())
x_copy = tvm.nd.empty((3, 4), "float32", tvm.cpu(0))
x_copy.copyfrom(x_cpu)
np_array = x_copy.numpy()
np.testing.assert_array_equal(np_array, x_cpu.numpy())

producer = np.zeros(4, dtype="float32")
tvm_array = tvm.nd.from_dlpack(producer)
producer[2] = 5.0
assert tvm_array.numpy()[2] == 5.0
back = np.from_dlpack(tvm_array)
assert back.ctypes.data == producer.ctypes.data

# 5. Compilation targets, and exercise 3: the same kernel for several of them.
for t in (
    "llvm",
    "llvm -mcpu=skylake-avx512",
    "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72",
    "llvm -mtriple=riscv64-unknown-linux-gnu -mcpu=generic-rv64 -mattr=+v",
):
    target = tvm.target.Target(t)
    assert target.kind.name == "llvm"
    print(f"=== {target} ===")
    print(tvm.build(s, [A, B, C], target=t).get_source()[:500])
