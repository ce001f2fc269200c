"""What was just built is loaded wherever there is room, far from all other code and data."""

import subprocess
import sys

PROGRAM = """
import ctypes, mmap
import numpy as np
import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
NOWHERE, NOT_RESERVED = 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000
data = np.zeros(4 << 30, "uint8")  # as another library's: address space, no memory
weights = relay.const(np.full((8, 8, 3, 3), 0.1, "float32"))
for size in (6, 7, 8):
    # Between what is loaded before and after there is more than 32 bits reach.
    found = libc.mmap(None, 5 << 30, NOWHERE, NOT_RESERVED, -1, 0)
    assert found not in (None, ctypes.c_void_p(-1).value)
    x = relay.var("x", shape=(1, 8, size, 6))
    body = relay.nn.softmax(relay.nn.batch_flatten(relay.nn.conv2d(x, weights, padding=1)))
    lib = relay.build(tvm.IRModule.from_expr(body), target="llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(x=np.ones((1, 8, size, 6), "float32"))
    np.testing.assert_allclose(module.get_output(0).numpy().sum(), 1, 1e-5)
print("computed")
"""


def test_models_are_loaded_beside_gigabytes_of_others():
    """LLVM's own loader ends the process where its sections are 2 GB apart."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=250
    )
    assert done.stdout == "computed\n", done.stderr
