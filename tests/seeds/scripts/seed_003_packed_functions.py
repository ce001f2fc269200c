"""Seed 003, "Performant cross-platform deep learning": PackedFuncs, modules and the nodes."""

import numpy as np

import slipway as tvm
from slipway import te


# A type-erased function takes numbers, strings, functions, modules, tensors, nodes.
@tvm.register_func("myadd")
def myadd(x, y):
    return x + y


addTwoVectors = tvm.get_global_func("myadd")
print(addTwoVectors(1, 2))
assert addTwoVectors(1, 2) == 3
assert addTwoVectors("cross-", "platform") == "cross-platform"


@tvm.register_func("apply_twice")
def apply_twice(function, value):
    return function(function(value))


assert tvm.get_global_func("apply_twice")(lambda x: x * 3, 2) == 18

# A module caches its functions' handles.
n = 16
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
s = te.create_schedule(B.op)
module = tvm.build(s, [A, B], target="llvm", name="double")
assert module.entry_name == "double"
a = tvm.nd.array(np.arange(n, dtype="float32"))
b = tvm.nd.empty((n,))
module["double"](a, b)
np.testing.assert_array_equal(b.numpy(), a.numpy() * 2)

# Every language object can be printed, serialised and compared.
loops = tvm.lower(s, [A, B], simple_mode=True)
print(loops)
again = tvm.ir.load_json(tvm.ir.save_json(loops))
assert tvm.ir.structural_equal(loops, again)
assert tvm.ir.structural_hash(loops) == tvm.ir.structural_hash(again)
