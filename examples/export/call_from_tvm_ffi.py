"""Call add_one.so in a process that has apache-tvm-ffi and NumPy, and no Slipway."""

import sys

import numpy as np
import tvm_ffi

library = tvm_ffi.load_module(sys.argv[1])
a = np.arange(1024, dtype="float32")
b = np.zeros_like(a)
library["add_one"](tvm_ffi.from_dlpack(a), tvm_ffi.from_dlpack(b))
np.testing.assert_array_equal(b, a + 1)
assert "slipway" not in sys.modules
print("add_one ran without Slipway:", b[:4])
