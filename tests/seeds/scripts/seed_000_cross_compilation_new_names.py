"""Seed 000, "Cross Compilation and RPC", the CPU part, in the spelling of TVM 0.7 to 0.14."""

import numpy as np

import slipway as tvm
from slipway import rpc, te
from slipway.contrib import utils

n = tvm.runtime.convert(1024)
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
s = te.create_schedule(B.op)

target = tvm.target.Target("llvm")
func = tvm.build(s, [A, B], target=target, name="add_one")
temp = utils.tempdir()
path = temp.relpath("lib.tar")
func.export_library(path)

server = rpc.Server(host="127.0.0.1", port=9090, use_popen=True)
remote = rpc.connect("127.0.0.1", server.port)

remote.upload(path)
func = remote.load_module("lib.tar")

dev = remote.cpu()
a = tvm.nd.array(np.random.uniform(size=1024).astype(A.dtype), dev)
b = tvm.nd.array(np.zeros(1024, dtype=A.dtype), dev)
func(a, b)
np.testing.assert_equal(b.numpy(), a.numpy() + 1)

time_f = func.time_evaluator(func.entry_name, dev, number=10)
cost = time_f(a, b).mean
print(f"{cost:g} secs/op")
assert 0 < cost < 1
assert len(func.time_evaluator(func.entry_name, dev, number=2, repeat=3)(a, b).results) == 3

server.terminate()
