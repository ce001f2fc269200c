"""Seed 000, "Cross Compilation and RPC", the OpenCL part, in the spelling of classic TVM 0.5."""

from __future__ import absolute_import, print_function

import numpy as np

import slipway as tvm
from slipway.contrib import rpc, util

n = tvm.convert(1024)
A = tvm.placeholder((n,), name="A")
B = tvm.compute(A.shape, lambda *i: A(*i) + 1.0, name="B")
temp = util.tempdir()

server = rpc.Server(host="127.0.0.1", port=9090, use_popen=True)
remote = rpc.connect("127.0.0.1", server.port)


def build():
    """Build the kernel: different from a CPU's, the axis must be bound for OpenCL."""
    s = tvm.create_schedule(B.op)
    xo, xi = s[B].split(B.op.axis[0], factor=32)
    s[B].bind(xo, tvm.thread_axis("blockIdx.x"))
    s[B].bind(xi, tvm.thread_axis("threadIdx.x"))
    return tvm.build(s, [A, B], "opencl", target_host="llvm", name="myadd")


def check(fhost):
    ctx = remote.cl(0)
    a = tvm.nd.array(np.random.uniform(size=1024).astype(A.dtype), ctx)
    b = tvm.nd.array(np.zeros(1024, dtype=A.dtype), ctx)
    fhost(a, b)
    np.testing.assert_equal(b.asnumpy(), a.asnumpy() + 1)


def deploy_cl():
    f = build()

    # save files
    path_o = temp.relpath("myadd.o")
    path_cl = temp.relpath("myadd.cl")
    path_json = temp.relpath("myadd.tvm_meta.json")
    f.save(path_o)
    f.imported_modules[0].save(path_cl)

    # upload files
    remote.upload(path_o)
    remote.upload(path_cl)
    remote.upload(path_json)

    # load files on remote device
    fhost = remote.load_module("myadd.o")
    fdev = remote.load_module("myadd.cl")
    fhost.import_module(fdev)

    # run
    check(fhost)


def deploy_cl_by_tar():
    f = build()
    path_tar = temp.relpath("myadd.tar")
    f.export_library(path_tar)
    remote.upload(path_tar)
    fhost = remote.load_module("myadd.tar")
    check(fhost)


if remote.cl(0).exist:
    print("on", remote.cl(0).device_name)
    deploy_cl()
    deploy_cl_by_tar()
else:
    print("the device has no OpenCL: this part cannot run")

# terminate the server after experiment
server.terminate()
