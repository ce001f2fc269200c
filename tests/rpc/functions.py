"""Functions that the test server registers for its clients."""

import os
import time

import numpy as np
import tvm_ffi


@tvm_ffi.register_global_func("test.rpc.addone", override=True)
def addone(x):
    return x + 1


@tvm_ffi.register_global_func("test.rpc.echo", override=True)
def echo(*args):
    return args[0] if len(args) == 1 else list(args)


@tvm_ffi.register_global_func("test.rpc.fill", override=True)
def fill(tensor, value):
    np.from_dlpack(tensor)[...] = value


@tvm_ffi.register_global_func("test.rpc.total", override=True)
def total(tensor):
    return float(np.from_dlpack(tensor).sum())


@tvm_ffi.register_global_func("test.rpc.raise_value_error", override=True)
def raise_value_error(text):
    raise ValueError(text)


@tvm_ffi.register_global_func("test.rpc.adder", override=True)
def adder(n):
    return tvm_ffi.convert(lambda x: x + n)


@tvm_ffi.register_global_func("test.rpc.make_tensor", override=True)
def make_tensor(*shape):
    count = int(np.prod(shape))
    return tvm_ffi.from_dlpack(np.arange(count, dtype="float32").reshape(shape))


@tvm_ffi.register_global_func("test.rpc.sleep", override=True)
def sleep(seconds):
    time.sleep(seconds)


@tvm_ffi.register_global_func("test.rpc.cwd", override=True)
def cwd():
    return os.getcwd()  # noqa: PTH109


@tvm_ffi.register_global_func("test.rpc.pid", override=True)
def pid():
    return os.getpid()


@tvm_ffi.register_global_func("test.rpc.exit", override=True)
def leave(status):
    os._exit(status)
