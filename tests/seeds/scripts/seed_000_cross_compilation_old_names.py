"""Seed 000, "Cross Compilation and RPC", the CPU part, in the spelling of classic TVM 0.5.

The server runs here, as in the tutorial, on a port that is free.
"""

from __future__ import absolute_import, print_function

import numpy as np

import slipway as tvm
from slipway.contrib import rpc, util

# Declare and cross compile the kernel on the local machine.
n = tvm.convert(1024)
A = tvm.placeholder((n,), name="A")
B = tvm.compute(A.shape, lambda *i: A(*i) + 1.0, name="B")
s = tvm.create_schedule(B.op)

f = tvm.build(s, [A, B], target="llvm", name="myadd")
temp = util.tempdir()
path = temp.relpath("mylib.o")
f.save(path)

# Run the CPU kernel remotely by RPC.
server = rpc.Server(host="127.0.0.1", port=9090, use_popen=True)
host = "127.0.0.1"
port = server.port
remote = rpc.connect(host, port)

remote.upload(path)
f = remote.load_module("mylib.o")
ctx = remote.cpu(0)
a = tvm.nd.array(np.random.uniform(size=1024).astype(A.dtype), ctx)
b = tvm.nd.array(np.zeros(1024, dtype=A.dtype), ctx)
f(a, b)
np.testing.assert_equal(b.asnumpy(), a.asnumpy() + 1)

time_f = f.time_evaluator(f.entry_name, ctx, number=10)
cost = time_f(a, b).mean
print("%g secs/op" % cost)
assert 0 < cost < 1

# Cross compile the same kernel, with both spellings of the triple.
for target in (
    "llvm -target=armv7l-none-linux-gnueabihf",
    "llvm -mtriple=armv7l-none-linux-gnueabihf -mcpu=cortex-a53 -mattr=+neon",
):
    cross = tvm.build(s, [A, B], target=target, name="myadd")
    cross_path = temp.relpath("arm.o")
    cross.save(cross_path)
    with open(cross_path, "rb") as file:
        header = file.read(20)
    assert header[:4] == b"\x7fELF" and header[4] == 1 and header[18] == 40  # 32 bits, EM_ARM

# Terminate the server after the experiment.
server.terminate()
