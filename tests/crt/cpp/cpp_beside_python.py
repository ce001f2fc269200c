"""Call functions of cpp_functions.cc from Python and the reverse; run by test_cpp.py."""

import ctypes
import sys

import numpy as np

order, library, model = sys.argv[1:]
if order == "library first":
    ctypes.CDLL(library)

import slipway as tvm  # noqa: E402


@tvm.register_func("py.neg")
def neg(x):
    return -x


if order == "Python first":
    ctypes.CDLL(library)

get = tvm.get_global_func


def raised(action):
    try:
        action()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


class Odd(Exception):
    """A class that only Python knows."""


def odd():
    raise Odd("my own")


def key():
    raise KeyError("k")


assert get("cpp.add")(1, 2) == 3
assert get("cpp.call")("py.neg", 5) == -5
assert get("cpp.apply")(lambda a, b: a * b, 6, 7) == 42
assert {"cpp.add", "cpp.call", "py.neg"} <= set(tvm.runtime.list_global_func_names())

# Errors, both ways.
assert get("cpp.caught")(key) == "KeyError | 'k'"
assert get("cpp.caught")(odd) == "Odd | my own"
assert get("cpp.caught")(lambda: 1) == "nothing"
fail = get("cpp.fail")
assert raised(lambda: fail("invalid")) == "ValueError: a bad argument"
assert raised(lambda: fail("range")) == "IndexError: outside"
assert raised(lambda: fail("memory")).startswith("MemoryError: ")
assert raised(lambda: fail("kind")) == "KeyError: 'no such key'"
assert raised(lambda: fail("prefix")).startswith("TypeError: by its prefix (")
assert raised(lambda: fail("plain")) == "RuntimeError: so it is"
assert raised(lambda: fail("named")) == "KeyError: 'by its text'"
assert raised(lambda: fail("odd")).startswith("RuntimeError: ")
assert raised(lambda: fail("none")) == "nothing"
assert raised(lambda: get("cpp.apply")(odd)) == "Odd: my own"
assert raised(lambda: get("cpp.add")("x", 2)) == "TypeError: argument 0: expected int, got str"
assert "2 arguments, got 1" in raised(lambda: get("cpp.call")("py.neg"))
assert raised(lambda: get("cpp.call")("py.neg", 2**40)).startswith("OverflowError: argument 1: ")
assert "expected NDArray, got int" in raised(lambda: get("cpp.sum")(1))
assert "no function nope" in raised(lambda: get("cpp.call")("nope", 1))

# Values.
echo, code = get("cpp.echo"), get("cpp.code")
for value, kind in [
    *((1, "int"), (-(2**62), "int"), (2.5, "float"), (None, "None"), ("", "str"), ("hey", "str")),
    *(("a much longer text, ümläut", "str"), (b"", "bytes"), (b"abc", "bytes")),
    *((b"0123456789abcdef\0x", "bytes"), (tvm.cpu(0), "device")),
]:
    assert (echo(value), code(value)) == (value, kind), (value, echo(value), code(value))
# Texts with a NUL are cut off nowhere; in C++ they are bytes, as a C string would end there.
for value in ("a\0b", "\0", "a much longer text\0 and its end"):
    assert (echo(value), code(value)) == (value.encode(), "bytes")
    told = get("cpp.size")(value, lambda more, nul: more + nul)
    assert told == len(value) * 1000 + len(value) + 2, (value, told)
array = tvm.nd.array(np.arange(10, dtype="float32"))
assert isinstance(echo(array), tvm.nd.NDArray)
assert get("cpp.sum")(array) == 45.0
np.testing.assert_array_equal(get("cpp.iota")(4).numpy(), [0, 1, 2, 3])
assert get("cpp.adder")(3)(4) == 7
assert echo(neg)(3) == -3

# Modules.
lib = tvm.runtime.load_module(model)
data = tvm.nd.array(np.ones((1, 3, 8, 8), "float32"))
executor = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
executor.set_input("input", data)
executor.run()
expected = executor.get_output(0).numpy()
loaded = get("cpp.load")(model)
assert loaded.type_key == "library"
for given in (lib, loaded):  # a module of Python, and one of C++
    np.testing.assert_array_equal(get("cpp.run")(given, data).numpy(), expected)
np.testing.assert_array_equal(loaded["default"](data).numpy(), expected)
again = tvm.contrib.graph_executor.GraphModule(loaded["default"](tvm.cpu()))
again.set_input("input", data)
again.run()
np.testing.assert_array_equal(again.get_output(0).numpy(), expected)
assert "it has: default" in raised(lambda: loaded["nothing"])
assert "FileNotFoundError" in raised(lambda: get("cpp.load")("no/such/file.so"))
exported = tvm.runtime.load_module(library)
assert (exported["twice"](21), exported["count"](1, 2, 3)) == (42, 3)
assert "expected int, got str" in raised(lambda: exported["twice"]("x"))
assert "no model: library" in raised(lambda: get("cpp.run")(exported, data))
print("done")
