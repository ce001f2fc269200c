"""Functions that the test server registers for its clients."""

import os
import sys
import threading
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


@tvm_ffi.register_global_func("test.rpc.rank", override=True)
def rank(tensor):
    return np.from_dlpack(tensor).ndim


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


@tvm_ffi.register_global_func("test.rpc.open_files", override=True)
def open_files(count):
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(count)]
    for fd in files:
        os.close(fd)
    return len(files)


@tvm_ffi.register_global_func("test.rpc.exit", override=True)
def leave(status):
    os._exit(status)


@tvm_ffi.register_global_func("test.rpc.apply", override=True)
def apply(function, *args):
    return function(*args)


_kept = []


@tvm_ffi.register_global_func("test.rpc.keep", override=True)
def keep(function):
    _kept[:] = [function]


@tvm_ffi.register_global_func("test.rpc.kept", override=True)
def kept(*args):
    return _kept[0](*args)


@tvm_ffi.register_global_func("test.rpc.apply_in_thread", override=True)
def apply_in_thread(function):
    raised = []

    def run():
        try:
            function()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    raise raised[0]


@tvm_ffi.register_global_func("test.rpc.total_of_all", override=True)
def total_of_all(tensors):
    return float(sum(np.from_dlpack(tensor).sum() for tensor in tensors))


@tvm_ffi.register_global_func("test.rpc.print", override=True)
def say(out, err):
    print(out)
    print(err, file=sys.stderr)
