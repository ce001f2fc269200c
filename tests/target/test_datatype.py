"""`tvm.target.datatype`: numbers of the user's own in loops and in models."""

import ctypes
import re

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te
from slipway.errors import ArgumentValueError, LoweringError
from slipway.relay.frontend.change_datatype import ChangeDatatype
from slipway.target import datatype
from slipway.toolchain import zig

FLOAT = "custom[own_float]32"  # a float32 under another name: what TVM's library brings
TINY = "custom[own_tiny]16"  # the upper half of a float32, by a C library of the test
TINY_C = """
#include <stdint.h>
#include <string.h>
static float wide(uint16_t a) {
    uint32_t b = (uint32_t)a << 16;
    float x;
    memcpy(&x, &b, 4);
    return x;
}
uint16_t own_tiny_of(float x) {
    uint32_t b;
    memcpy(&b, &x, 4);
    return (uint16_t)(b >> 16);
}
float own_tiny_float(uint16_t a) { return wide(a); }
uint16_t own_tiny_add(uint16_t a, uint16_t b) { return own_tiny_of(wide(a) + wide(b)); }
uint16_t own_tiny_mul(uint16_t a, uint16_t b) { return own_tiny_of(wide(a) * wide(b)); }
uint16_t own_tiny_max(uint16_t a, uint16_t b) { return wide(a) > wide(b) ? a : b; }
"""
BINARY = {"Add": "Custom32Add", "Sub": "Custom32Sub", "Mul": "Custom32Mul", "Div": "Custom32Div",
          "Max": "Custom32Max"}  # fmt: skip
CALLS = {"exp": "Custom32Exp", "sqrt": "Custom32Sqrt"}


@pytest.fixture(scope="module")
def own_float():
    datatype.register("own_float", 201)
    for to, back, function in (("own_float", "float", "FloatToCustom32"),
                               ("float", "own_float", "Custom32ToFloat")):  # fmt: skip
        lower = datatype.create_lower_func({(32, 32): function})
        datatype.register_op(lower, "Cast", "llvm", back, to)
    for name, function in BINARY.items():
        datatype.register_op(datatype.create_lower_func({32: function}), name, "llvm", "own_float")
    for name, function in CALLS.items():
        lower = datatype.create_lower_func({32: function})
        datatype.register_op(lower, "Call", "llvm", "own_float", intrinsic_name=f"tir.{name}")
    minimum = datatype.create_min_lower_func({32: "MinCustom32"}, "own_float")
    datatype.register_min_func(minimum, "own_float")


@pytest.fixture(scope="module")
def own_tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "tiny.c").write_text(TINY_C)
    library = folder / "libtiny.so"
    flags = ["-O1", "-shared", "-fPIC", "-o", str(library), str(folder / "tiny.c")]
    zig.run_zig(["cc", *flags], purpose="compiling the test's library")
    datatype.register("own_tiny", 202)
    for name, function in (("Add", "add"), ("Mul", "mul"), ("Max", "max")):
        lower = datatype.create_lower_func({16: f"own_tiny_{function}"})
        datatype.register_op(lower, name, "llvm", "own_tiny")
    for key, function, to, back in (((32, 16), "of", "own_tiny", "float"),
                                    ((16, 32), "float", "float", "own_tiny")):  # fmt: skip
        lower = datatype.create_lower_func({key: f"own_tiny_{function}"})
        datatype.register_op(lower, "Cast", "llvm", back, to)
    return library


def converted(values, dtype):
    x = relay.var("x", shape=values.shape, dtype=str(values.dtype))
    cast = relay.Function([x], x.astype(dtype))
    return relay.create_executor("graph").evaluate(cast)(values)


def test_a_type_has_a_name_and_a_code_and_keeps_them():
    datatype.register("own_code", 203)
    datatype.register("own_code", 203)
    assert datatype.get_type_code("own_code") == 203
    assert datatype.get_type_name(203) == "own_code"
    assert datatype.get_type_registered(203)
    assert not datatype.get_type_registered(129)
    with pytest.raises(ArgumentValueError, match="203 is that of 'own_code'"):
        datatype.register("own_other", 203)
    with pytest.raises(ArgumentValueError, match="it has 203"):
        datatype.register("own_code", 204)
    with pytest.raises(ArgumentValueError, match="take one from 129 to 255"):
        datatype.register("own_other", 3)
    with pytest.raises(ArgumentValueError, match=r"datatype.register\('own_none', 129\) first"):
        te.placeholder((4,), dtype="custom[own_none]32")
    with pytest.raises(ArgumentValueError, match="8, 16, 32, 64 bits"):
        te.placeholder((4,), dtype="custom[own_code]24")


def test_what_is_not_registered_is_named_with_the_call_that_registers_it():
    datatype.register("own_empty", 205)
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i].astype("custom[own_empty]16"))
    missing = 'register_op(function, "Cast", "llvm", "float", "own_empty")'
    with pytest.raises(LoweringError, match=re.escape(missing)):
        tvm.build(te.create_schedule(y.op), [x, y], "llvm")
    lower = datatype.create_lower_func({(32, 8): "f"})
    datatype.register_op(lower, "Cast", "llvm", "float", "own_empty")
    with pytest.raises(LoweringError, match=r"of \(32, 16\) bits \(there is one for \(32, 8\)\)"):
        tvm.build(te.create_schedule(y.op), [x, y], "llvm")
    with pytest.raises(LoweringError, match="register_min_func"):
        te.min_value("custom[own_empty]16")


@pytest.mark.parametrize("kind", ["graph", "debug"])
def test_a_model_computes_in_the_type_with_any_executor(own_float, kind):
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    own = relay.cast(relay.cast(x, FLOAT) / relay.cast(y, FLOAT), "float32")
    a, b = np.random.default_rng(0).uniform(1, 2, (2, 3)).astype("float32")
    run = relay.create_executor(kind, mod=tvm.IRModule.from_expr(relay.Function([x, y], own)))
    np.testing.assert_array_equal(run.evaluate()(a, b).numpy(), a / b)


@pytest.mark.parametrize(
    "op", [relay.nn.softmax, relay.rsqrt, relay.sigmoid, relay.nn.relu, relay.exp]
)
def test_operators_of_models_are_those_of_floats(own_float, op):
    x = relay.var("x", shape=(2, 5))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], op(x))))
    values = np.random.default_rng(1).uniform(0.1, 2, (2, 5)).astype("float32")
    exact = relay.create_executor("graph", mod=mod).evaluate()(values).numpy()
    own = relay.transform.InferType()(ChangeDatatype("float32", FLOAT)(mod))
    found = relay.create_executor("graph", mod=own).evaluate()(converted(values, FLOAT))
    assert found.dtype == FLOAT
    np.testing.assert_allclose(converted(found, "float32").numpy(), exact, rtol=1e-6)


@pytest.mark.parametrize("pool", [relay.nn.max_pool2d, relay.nn.avg_pool2d])
def test_windows_are_padded_with_the_least_value(own_float, pool):
    x = relay.var("x", shape=(1, 2, 6, 6))
    y = pool(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], y)))
    values = np.random.default_rng(2).uniform(-9, -1, (1, 2, 6, 6)).astype("float32")
    exact = relay.create_executor("graph", mod=mod).evaluate()(values).numpy()
    own = relay.transform.InferType()(ChangeDatatype("float32", FLOAT)(mod))
    found = relay.create_executor("graph", mod=own).evaluate()(converted(values, FLOAT))
    np.testing.assert_allclose(converted(found, "float32").numpy(), exact, rtol=1e-6)


def test_functions_of_a_library_of_the_process_compute(own_tiny):
    x, w = relay.var("x", shape=(4, 8)), relay.var("w", shape=(3, 8))
    y = relay.nn.relu(relay.nn.dense(relay.cast(x, TINY), relay.cast(w, TINY)))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.cast(y, "float32")))
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, s).astype("float32") for s in ((4, 8), (3, 8)))
    with pytest.raises(tvm.TVMError, match=r"ctypes.CDLL\(path, ctypes.RTLD_GLOBAL\)"):
        relay.create_executor("graph", mod=mod).evaluate()
    ctypes.CDLL(str(own_tiny), ctypes.RTLD_GLOBAL)
    run = relay.create_executor("graph", mod=mod).evaluate()
    np.testing.assert_array_equal(run(a, b).numpy(), np.maximum(a @ b.T, 0))
