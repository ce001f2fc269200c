"""Every operator of the registry on NaN, infinities, denormals, -0 and the largest numbers.

All sample cases of an operator are one model, compiled and compared with the NumPy reference.
"""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import TypeInferenceError
from slipway.relay import op_registry
from slipway.relay.expr import Call, Function, Tuple, TupleGetItem, Var
from slipway.relay.op_registry import OpPattern
from slipway.relay.types import TensorType, TupleType
from slipway.runtime import cpu
from slipway.runtime.graph import graph_executor
from slipway.runtime.ndarray import numpy_dtype

OPS = op_registry.load_ops()
# These compute in float32 whatever the dtype of their data.
IN_FLOAT32 = {
    "image.grid_sample", "image.resize", "vision.roi_align", "nn.deformable_im2col",
    "vision.roi_align_adaptive",
    "nn.contrib_conv1d_pairs", "nn.contrib_conv2d_pairs", "nn.contrib_conv3d_pairs",
    "nn.contrib_dense_pairs",
}  # fmt: skip
DENORMAL_STEPS = 8  # what elementary functions may be off by where results are denormal
FLOATS = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-5, "float64": 1e-12}


# Which zero comes out of two is not defined; NumPy's power takes the root for the exponent 0.5.
# A sum's zero has the sign of what the sum begins with.
ANY_ZERO = {
    "clip", "maximum", "minimum", "nn.relu", "power", "vision.roi_align", "nn.contrib_column_sum",
    "vision.roi_align_adaptive",
}  # fmt: skip
# Parameters are folded into the weights before, or into a factor and a shift.
PARAMETERS = {"nn.batch_norm"}
# The transforms subtract infinities: a NaN in the whole tile (docs/numerics.md).  Products of
# weights in blocks round their data to bytes: an infinity is NaN or an infinity in the row.
TRANSFORMED = {
    "nn.contrib_conv2d_winograd_nchwc", "nn.contrib_winograd_tiles", "nn.contrib_winograd_image",
    "nn.contrib_conv3d_winograd_nchwc",
    "nn.contrib_block_dense", "nn.contrib_expert_dense", "nn.contrib_conv2d_nchwc_by_size",
}  # fmt: skip
# The reduction of an argument is only good to so much (docs/codegen.md), and a position that is
# 65,504 images away is only known to a hundredth of an element in float32.
NO_GREAT = {"sin", "cos", "tan", "image.grid_sample"}


def specials(dtype, which, name):
    """The special values of a dtype: what is no finite number, what is small, or all."""
    import ml_dtypes

    info = ml_dtypes.finfo(numpy_dtype(dtype))
    smallest, largest = float(info.smallest_subnormal), float(info.max)
    no_numbers = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    small = [0.0, -0.0, smallest, -5 * smallest, float(info.tiny), -float(info.tiny)]
    if which == "small":
        return small
    if which == "other":
        return no_numbers
    great = [] if name in NO_GREAT else [largest, -largest]
    return [*no_numbers, *small, *great, 0.5, -0.5, 1.0, -1.0, 2.5, -1.5]


def changed(value, dtype, choice, share, rng):
    """The argument with its floats in `dtype`, and a share of them replaced by some of `choice`."""
    if isinstance(value, (tuple, list)):
        return tuple(changed(v, dtype, choice, share, rng) for v in value)
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return array
    array = array.astype(numpy_dtype(dtype))
    here = rng.random(array.shape) < share
    array[here] = rng.choice(choice, int(here.sum())).astype(array.dtype)
    return array


def changes(name, arrays, dtype, rng):
    """Ways to put special values among the arguments of an operator.

    Where elements are added up, what is no number only goes into the first argument: the others
    are weights and parameters, which a border, a zero or an algorithm may leave out or repeat.
    """
    if OPS[name].pattern <= OpPattern.INJECTIVE and name not in PARAMETERS:
        choice = specials(dtype, "all", name)
        yield [changed(a, dtype, choice, 0.7, rng) for a in arrays]
        return
    small, other = specials(dtype, "small", name), specials(dtype, "other", name)
    yield [changed(a, dtype, small, 0.3, rng) for a in arrays]
    if name in TRANSFORMED:
        return
    first, *rest = arrays
    plain = [changed(a, dtype, other, 0.0, rng) for a in rest]
    yield [changed(first, dtype, other, 0.1, rng), *plain]


def variables_of(arrays, prefix):
    found, values = [], {}
    for number, array in enumerate(arrays):
        name = f"{prefix}_{number}"
        if isinstance(array, tuple):
            inner, more = variables_of(array, name)
            found.append(Tuple(tuple(inner)))
            values.update(more)
        else:
            found.append(Var(name, TensorType(array.shape, array.dtype.name)))
            values[name] = array
    return found, values


def leaves(variables):
    for variable in variables:
        if isinstance(variable, Tuple):
            yield from leaves(variable.fields)
        else:
            yield variable


def widened(value):
    if isinstance(value, tuple):
        return tuple(widened(v) for v in value)
    return value.astype(np.float32) if value.dtype.name in ("float16", "bfloat16") else value


def expected(definition, attrs, arrays, out_types):
    """The reference on these values; that of half types is computed in float32 and rounded."""
    found = definition.evaluate(attrs, *(widened(a) for a in arrays))
    found = found if isinstance(found, tuple) else (np.asarray(found),)
    with np.errstate(all="ignore"):
        return [
            np.asarray(f).astype(numpy_dtype(t.dtype))
            for f, t in zip(found, out_types, strict=True)
        ]


def differences(found, want, tolerance, exact, signs):
    """What is wrong with a result: the first places, in words."""
    assert found.shape == want.shape
    assert found.dtype == want.dtype
    smallest = float(np.finfo(np.float32).smallest_subnormal) if found.dtype.itemsize < 8 else 0.0
    if found.dtype.name == "bfloat16":  # AVX512-BF16 rounds denormal numbers to zero
        smallest = float(np.finfo(np.float32).tiny)
    if found.dtype.kind in "biu":
        bad = found != want
    else:
        with np.errstate(all="ignore"):
            a, b = found.astype(np.float64), want.astype(np.float64)
            floor = 0.0 if exact else 1.0  # sums cancel
            close = (
                np.abs(a - b)
                <= tolerance * np.maximum(np.abs(b), floor) + DENORMAL_STEPS * smallest
            )
            bad = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.isfinite(b) & close))
        if signs:
            bad |= (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    return [
        f"{tuple(int(v) for v in p)}: {found[tuple(p)]}, not {want[tuple(p)]}"
        for p in np.argwhere(bad)[:4]
    ]


def cases(name, dtype):
    """(attrs, arrays, variables, values, call) of each case that the operator takes in a dtype."""
    definition = OPS[name]
    for number, case in enumerate(definition.cases):
        rng = np.random.default_rng(number)
        for way, arrays in enumerate(changes(name, case.arrays(seed=number), dtype, rng)):
            variables, values = variables_of(arrays, f"c{number}_{way}")
            if not any(v.dtype == numpy_dtype(dtype) for v in values.values()):
                continue
            try:
                call = Call(definition.op, tuple(variables), case.attrs)
                op_registry.infer_call(call)
            except TypeInferenceError:
                continue
            yield case.attrs, arrays, variables, values, call


def check(name, dtype, target):
    definition = OPS[name]
    params, feeds, results, wanted = [], {}, [], []
    for attrs, arrays, variables, values, call in cases(name, dtype):
        whole = isinstance(call.type, TupleType)
        types = call.type.fields if whole else (call.type,)
        results += [TupleGetItem(call, i) for i in range(len(types))] if whole else [call]
        wanted += expected(definition, attrs, arrays, types)
        params += leaves(variables)
        feeds.update(values)
    if not results:
        return None
    mod = relay.transform.InferType()(Function(tuple(params), Tuple(tuple(results))))
    module = graph_executor.GraphModule(relay.build(mod, target=target)["default"](cpu(0)))
    for key, value in feeds.items():
        module.set_input(key, value)
    module.run()
    signs = definition.pattern <= OpPattern.INJECTIVE and name not in ANY_ZERO
    exact = definition.pattern <= OpPattern.INJECTIVE
    tolerance = max(FLOATS[dtype], 2e-5 if name in IN_FLOAT32 else 0.0)
    wrong = []
    for number, want in enumerate(wanted):
        found = module.get_output(number).numpy()
        wrong += [f"output {number} {w}" for w in differences(found, want, tolerance, exact, signs)]
    return wrong


@pytest.mark.parametrize("name", sorted(OPS))
def test_special_values(name):
    assert not check(name, "float32", "llvm")


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(OPS))
@pytest.mark.parametrize(
    ("dtype", "target"),
    [
        *((dtype, "llvm") for dtype in FLOATS if dtype != "float32"),
        *((dtype, "c") for dtype in FLOATS),
        ("float32", "llvm -mcpu=x86-64"), ("float32", "llvm -mcpu=haswell"),
        ("float32", "llvm -strict=1"),
    ],
)  # fmt: skip
def test_special_values_elsewhere(name, dtype, target):
    assert not check(name, dtype, target)


def test_the_check_sees_a_lost_nan_an_infinity_and_the_sign_of_a_zero():
    want = np.array([np.nan, np.inf, -0.0, 1.0, -np.inf], np.float32)
    found = np.array([0.0, 3e38, 0.0, 1.0, -np.inf], np.float32)
    assert len(differences(found, want, 1e-5, True, True)) == 3


INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint32", "uint64")


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_floats_become_integers_whatever_they_are(target):
    values = [np.nan, np.inf, -np.inf, 2.0**31, -(2.0**31), 3e9, -3e9, 1e19, -1e19, 300.7, -1.5,
              127.0, 2.0**63, 2.0**64, -(2.0**63), 1e30]  # fmt: skip
    given = np.array(values, np.float32)
    x = relay.var("x", shape=given.shape, dtype="float32")
    body = Tuple(tuple(relay.cast(x, dtype) for dtype in INTEGERS))
    mod = relay.transform.InferType()(Function((x,), body))
    module = graph_executor.GraphModule(relay.build(mod, target=target)["default"](cpu(0)))
    module.set_input("x", given)
    module.run()
    for number, dtype in enumerate(INTEGERS):
        middle = "int64" if dtype in ("uint32", "int64", "uint64") else "int32"
        low, high = np.iinfo(middle).min, np.iinfo("uint64" if dtype == "uint64" else middle).max
        want = [0 if v != v else int(min(max(v, low), high)) for v in given.astype(float).tolist()]
        bits = np.dtype(dtype).itemsize * 8
        wrapped = np.array([w & ((1 << bits) - 1) for w in want], f"uint{bits}").view(dtype)
        np.testing.assert_array_equal(module.get_output(number).numpy(), wrapped, dtype)
        folded = OPS["cast"].evaluate(OPS["cast"].attrs_type(dtype), given)
        np.testing.assert_array_equal(folded, wrapped, dtype)


def check_powers(base, exponent, want, target):
    """Compare powers that a kernel computes, and those folded at compile time, with `want`."""
    dtype = str(base.dtype)
    x, y = (relay.var(n, shape=base.shape, dtype=dtype) for n in "xy")
    folded = relay.add(
        relay.power(relay.const(base, dtype), relay.const(exponent, dtype)), relay.subtract(x, x)
    )
    mod = relay.transform.InferType()(Function((x, y), Tuple((relay.power(x, y), folded))))
    module = graph_executor.GraphModule(relay.build(mod, target=target)["default"](cpu(0)))
    module.set_input("x", base)
    module.set_input("y", exponent)
    module.run()
    for number in range(2):
        np.testing.assert_array_equal(module.get_output(number).numpy(), want)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_powers_of_integers(target, dtype):
    base = np.array([2, -3, 3, 10, 0, 0, 1, -1, -1, 7, -2], dtype)
    exponent = np.array([-1, 3, 4, 2, 0, 5, -9, -3, -4, 2, 6], dtype)
    want = np.array([0, -27, 81, 100, 1, 0, 1, -1, 1, 49, 64], dtype)
    check_powers(base, exponent, want, target)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64", "c"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_powers_of_integers_that_overflow_wrap(target, dtype):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(5)
    base = rng.integers(info.min, info.max, 77, dtype, endpoint=True)
    base[:6] = 3, 7, info.max, info.min, 10, 2
    exponent = rng.integers(0, min(info.max, 255), 77, dtype, endpoint=True)
    exponent[:6] = 39, 21, 3, 1, 18, 61
    want = [pow(int(b), int(e), 1 << info.bits) for b, e in zip(base, exponent, strict=True)]
    want = np.array(want, f"uint{info.bits}").view(dtype)
    check_powers(base, exponent, want, target)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp_of_infinities(target, keepdims):
    low, high, nan = -np.inf, np.inf, np.nan
    rows = np.array(
        [[low] * 3, [low, 1, low], [high, 1, 2], [high, low, 3], [high, nan, 1], [nan, low, low],
         [high] * 3, [3e38, 3e38, 0], [-3e38, -3e38, -3e38]], "float32",
    )  # fmt: skip
    want = np.array([low, 1, high, high, nan, nan, high, 3e38, -3e38], "float32")
    want = want.reshape(-1, 1) if keepdims else want
    x = relay.var("x", shape=rows.shape, dtype="float32")
    mod = relay.transform.InferType()(Function((x,), relay.logsumexp(x, 1, keepdims)))
    module = graph_executor.GraphModule(relay.build(mod, target=target)["default"](cpu(0)))
    module.set_input("x", rows)
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), want, rtol=1e-6)
