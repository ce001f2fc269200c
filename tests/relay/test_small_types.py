"""Types stored in a byte: conversions equal ml_dtypes on every code, compiled by LLVM and as C."""

import ml_dtypes
import numpy as np
import pytest

import slipway as tvm
from slipway import dtypes, relay
from slipway.errors import CodegenError, TypeInferenceError
from slipway.relay.interpret import interpret
from slipway.relay.ops.tensor.small_types import FORMATS, largest
from slipway.runtime import cpu
from slipway.runtime.graph import graph_executor

FLOATS = (*FORMATS, "float8_e8m0fnu")
INTEGERS = ("int2", "uint2", "int4", "uint4")


def kind(dtype):
    return np.dtype(getattr(ml_dtypes, dtype))


def codes(dtype):
    """All values of a type."""
    if dtype in INTEGERS:
        low, high = dtypes.int_range(dtype)
        return np.arange(low, high + 1).astype(kind(dtype))
    return np.arange(1 << dtypes.bits_of(dtype), dtype=np.uint8).view(kind(dtype))


def compiled(exprs, target, **values):
    mod = relay.transform.InferType()(relay.Tuple(exprs).as_function())
    module = graph_executor.GraphModule(relay.build(mod, target=target)["default"](cpu(0)))
    for name, value in values.items():
        module.set_input(name, value)
    module.run()
    return [module.get_output(i).numpy() for i in range(len(exprs))]


def awkward_floats(dtype):
    """Values around every code and its midpoints, and everything special."""
    exact = codes(dtype).astype(np.float32)
    exact = np.unique(exact[np.isfinite(exact)])
    middle = (exact[1:] + exact[:-1]) / 2
    points = np.concatenate([exact, middle])
    sides = [np.nextafter(points, np.float32(s)) for s in (-np.inf, np.inf)]
    rng = np.random.default_rng(1)
    random = rng.integers(0, 1 << 32, 2000, np.uint64).astype(np.uint32).view(np.float32)
    special = np.float32([0.0, -0.0, np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-30])
    return np.concatenate([points, *sides, random, special]).astype(np.float32)


def same(found, wanted):
    assert found.dtype == wanted.dtype
    nan = np.isnan(wanted.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(found.astype(np.float32)), nan)
    np.testing.assert_array_equal(found.view(np.uint8)[~nan], wanted.view(np.uint8)[~nan])


def variable(name, value):
    return relay.var(name, shape=value.shape, dtype=value.dtype.name)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_every_code_converts(target):
    values = {dtype: codes(dtype) for dtype in (*FLOATS, *INTEGERS)}
    exprs = [relay.cast(variable(n, v), "float32") for n, v in values.items()]
    for found, value in zip(compiled(exprs, target, **values), values.values(), strict=True):
        np.testing.assert_array_equal(found, value.astype(np.float32), err_msg=value.dtype.name)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_floats_round_as_in_ml_dtypes(target):
    values = {dtype: awkward_floats(dtype) for dtype in FLOATS}
    powers = values["float8_e8m0fnu"]  # subnormal numbers lie outside its law of rounding
    normal = (np.abs(powers) >= 2.0**-126) | (powers == 0) | np.isnan(powers)
    values["float8_e8m0fnu"] = powers[normal]
    exprs, wanted = [], []
    for dtype, value in values.items():
        x = variable(dtype, value)
        exprs.append(relay.cast(x, dtype))
        wanted.append(value.astype(kind(dtype)))
        if dtype in FORMATS:
            top = largest(dtype)
            exprs.append(relay.cast(x, dtype, saturate=True))
            wanted.append(np.clip(value, -top, top).astype(kind(dtype)))
    found = compiled(exprs, target, **values)
    for got, reference, want in zip(
        found, interpret(relay.Tuple(exprs), **values), wanted, strict=True
    ):
        same(got, want)
        same(reference, want)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_integers_wrap(target):
    sources = ("int32", "float32", "uint8", "int64")
    values = {source: np.arange(256).astype(source) for source in sources}
    variables = [variable(n, v) for n, v in values.items()]
    exprs = [relay.cast(x, d) for x in variables for d in INTEGERS]
    wanted = [np.arange(256).astype(kind(d)) for _ in sources for d in INTEGERS]
    found = compiled(exprs, target, **values)
    for got, reference, want in zip(
        found, interpret(relay.Tuple(exprs), **values), wanted, strict=True
    ):
        same(got, want)
        same(reference, want)


def test_elements_move():
    exprs, values, wanted = [], {}, []
    for dtype in ("float8_e5m2", "int4"):
        values[dtype] = value = np.arange(-6, 6).reshape(3, 4).astype(kind(dtype))
        x = variable(dtype, value)
        exprs.append(relay.concatenate([relay.transpose(x, (1, 0)), relay.reshape(x, (4, 3))], 1))
        wanted.append(np.concatenate([value.T, value.reshape(4, 3)], 1))
    for got, want in zip(compiled(exprs, "llvm", **values), wanted, strict=True):
        same(got, want)


def test_arithmetic_is_refused():
    x = relay.var("x", shape=(4,), dtype="float8_e4m3fn")
    with pytest.raises(TypeInferenceError, match=r"argument 'lhs' holds float8_e4m3fn.*cast"):
        relay.add(x, x)


def test_loops_that_compute_with_them_are_refused():
    from slipway import te
    from slipway.compiler.driver import build

    a = te.placeholder((8,), "int2", name="A")
    b = te.compute((8,), lambda i: a[i] * a[i], name="B")
    for target in ("llvm", "c"):
        with pytest.raises(CodegenError, match="int2 cannot be computed with"):
            build(te.create_schedule(b.op), [a, b], target)


@pytest.mark.parametrize("opt_level", [0, 2])
def test_parameters_of_four_bits(opt_level, tmp_path):
    """Kept as int4 where nothing folds them; the same after a trip through a file."""
    weights = np.arange(-8, 7).astype(ml_dtypes.int4)
    x, w = relay.var("x", shape=(15,), dtype="float32"), relay.var("w", shape=(15,), dtype="int4")
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.cast(w, "float32") * x))
    with tvm.transform.PassContext(opt_level=opt_level):
        library = relay.build(mod, target="llvm", params={"w": tvm.nd.array(weights)})
    path = tmp_path / "model.tar"
    library.export_library(str(path))
    for made in (library, tvm.runtime.load_module(str(path))):
        module = graph_executor.GraphModule(made["default"](cpu(0)))
        module.set_input("x", np.full(15, 2, "float32"))
        module.run()
        np.testing.assert_array_equal(module.get_output(0).numpy(), weights.astype("float32") * 2)
