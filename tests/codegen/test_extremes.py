"""Max and Min of floats propagate a NaN, in one instruction where the CPU has one."""

import re

import kernels
import numpy as np
import pytest

from slipway import te
from slipway.compiler.emit import build_module
from slipway.target import Target
from slipway.transform.loop.pipeline import run_pipeline

A72 = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"
A7 = "llvm -mtriple=armv7l-linux-gnueabihf -mcpu=cortex-a7 -mattr=+neon"
V = "llvm -mtriple=riscv64-linux-gnu -mattr=+v"
SSE, AVX2, AVX512 = (
    f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}" for cpu in ("x86-64", "haswell", "skylake-avx512")
)
WORDS = re.compile(
    r"\t(v?(?:max|min)ps|v?cmp\w*ps|v?(?:blend|and|or|andn|mova)\w*ps|vpternlog\w*|"
    r"fcm\w+|bs\w|fmax\w*|fmin\w*|vmax\.f32|vmin\.f32|vbsl|vc\w\w\.f32|"
    r"vfmax\S+|vfmin\S+|vmf\w\w\S+|v\w*merge\S+)"
)


def assembly(target, compute):
    data = te.placeholder((64, 16), name="A")
    out = compute(data)
    schedule = te.create_schedule(out.op)
    if out.op.reduce_axis:
        schedule[out].reorder(out.op.reduce_axis[0], out.op.axis[0])
    schedule[out].vectorize(schedule[out].split(out.op.axis[-1], 4)[1])
    target = Target(target)
    func = run_pipeline(te.lower(schedule, [data, out]), target)
    return build_module({"kernel": func}, target).get_source("asm")


def maximum_of_columns(data):
    k = te.reduce_axis((0, 64), name="k")
    return te.compute((16,), lambda j: te.max(data[k, j], axis=k), name="B")


def maximum_number_of_columns(data):
    k = te.reduce_axis((0, 64), name="k")
    return te.compute((16,), lambda j: te.max_of_numbers(data[k, j], axis=k), name="B")


def rectified(data):
    zero = te.const(0.0, "float32")
    return te.compute((64, 16), lambda i, j: te.max(data[i, j], zero), name="B")


def clipped(data):
    low, high = (te.const(v, "float32") for v in (0.0, 6.0))
    return te.compute((64, 16), lambda i, j: te.min(te.max(data[i, j], low), high), name="B")


def count(target, compute):
    """How often each comparing instruction of vectors stands in the code."""
    found = [re.sub(r"\W.*", "", w) for w in WORDS.findall(assembly(target, compute))]
    moves = ("movaps", "vmovaps")
    return {w: found.count(w) for w in sorted(set(found)) if w not in moves}


@pytest.mark.parametrize("strict", ["", " -strict=1"])
@pytest.mark.parametrize(
    ("target", "low", "high"),
    [
        (SSE, "maxps", "minps"), (AVX2, "vmaxps", "vminps"), (AVX512, "vmaxps", "vminps"),
        (A72, "fmax", "fmin"), (A7, "vmax", "vmin"),
    ],
)  # fmt: skip
def test_bounds_cost_one_instruction_each(target, low, high, strict):
    assert set(count(target + strict, rectified)) == {low}
    both = count(target + strict, clipped)
    assert set(both) == {low, high}
    assert both[low] == both[high]


def test_webassembly_has_a_choice_that_engines_make_one_instruction_of():
    code = assembly("llvm -mtriple=wasm32", clipped)
    found = re.findall(r"f32x4\.\w+|v128\.(?:andnot|bitselect)", code)
    assert sorted(set(found)) == ["f32x4.lt", "f32x4.pmin", "v128.andnot"]  # max(x, 0) is no pmax
    low = te.const(-1.0, "float32")
    bounded = assembly(
        "llvm -mtriple=wasm32",
        lambda data: te.compute((64, 16), lambda i, j: te.max(low, data[i, j]), name="B"),
    )
    assert set(re.findall(r"f32x4\.\w+", bounded)) == {"f32x4.pmax"}
    reduced = assembly("llvm -mtriple=wasm32", maximum_of_columns)
    assert set(re.findall(r"f32x4\.\w+", reduced)) == {"f32x4.max"}
    of_numbers = assembly("llvm -mtriple=wasm32", maximum_number_of_columns)
    assert set(re.findall(r"f32x4\.\w+", of_numbers)) == {"f32x4.pmax"}


def test_riscv_takes_two_for_a_bound():
    assert len(count(V, rectified)) == 2


@pytest.mark.parametrize(("target", "word"), [(A72, "fmax"), (A7, "vmax")])
def test_a_reduction_on_arm_is_one_instruction(target, word):
    assert set(count(target, maximum_of_columns)) == {word}


@pytest.mark.parametrize(("target", "v"), [(SSE, ""), (AVX2, "v")])
def test_a_reduction_on_x86_is_a_maximum_a_comparison_and_an_or(target, v):
    found = count(target, maximum_of_columns)
    assert set(found) == {f"{v}maxps", f"{v}cmpunordps", f"{v}orps"}
    assert len(set(found.values())) == 1


def test_a_reduction_with_masks_is_a_comparison_and_a_maximum():
    found = count(AVX512, maximum_of_columns)
    assert set(found) == {"vmaxps", "vcmpunordps"}
    assert found["vmaxps"] == found["vcmpunordps"]


@pytest.mark.parametrize(
    ("target", "word"),
    [(SSE, "maxps"), (AVX512, "vmaxps"), (A72, "fmax"), (A7, "vmax"), (V, "vfmax")],
)
def test_where_a_nan_may_be_passed_over_a_reduction_is_one_instruction(target, word):
    assert set(count(target, maximum_number_of_columns)) == {word}


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64", "c"])
@pytest.mark.parametrize("function", [te.max, te.min])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_reduction_keeps_every_nan_and_infinity(target, function, dtype):
    rows, columns = 9, 16
    data = te.placeholder((rows, columns), dtype, name="A")
    k = te.reduce_axis((0, rows), name="k")
    out = te.compute((columns,), lambda j: function(data[k, j], axis=k), name="B")
    schedule = te.create_schedule(out.op)
    schedule[out].reorder(k, out.op.axis[0])
    schedule[out].vectorize(schedule[out].split(out.op.axis[0], 4)[1])
    func = run_pipeline(te.lower(schedule, [data, out], name="kernel"), Target(target))
    functions, _, _ = kernels.load({"kernel": func}, target)
    given = np.random.default_rng(0).standard_normal((rows, columns)).astype(dtype)
    given[np.arange(rows), np.arange(rows)] = np.nan
    given[:, 12], given[:, 13], given[2, 14] = -np.inf, np.inf, -np.inf
    found = np.zeros(columns, dtype)
    functions["kernel"](given, found)
    np.testing.assert_array_equal(found, (np.max if function is te.max else np.min)(given, axis=0))


def maximum_of(count):
    """The maximum of neighbours in a row, as one expression."""

    def nest(data):
        def element(i, j):
            found = data[i, j]
            for n in range(1, count):
                found = te.max(found, data[i, j + n])
            return found

        return te.compute((64, 16 - count + 1 - (16 - count + 1) % 4), element, name="B")

    return nest


@pytest.mark.parametrize(("count_", "tests"), [(3, 1), (5, 2), (6, 3)])
def test_a_nest_on_x86_tests_two_at_a_time_and_the_last_not_at_all(count_, tests):
    for target, v in ((SSE, ""), (AVX2, "v"), (AVX512, "v")):
        found = count(target, maximum_of(count_))
        assert found[f"{v}maxps"] * tests == found[f"{v}cmpunordps"] * (count_ - 1)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64", "llvm -mcpu=haswell", "c"])
@pytest.mark.parametrize("function", [te.max, te.min])
def test_a_nest_keeps_the_nan_of_each_operand(target, function):
    if Target("llvm").parsed_triple.table != "x86" and "mcpu" in target:
        pytest.skip("a processor of x86")
    size, lanes = 6, 8
    data = te.placeholder((size, size, lanes), name="A")

    def element(i, j):
        a, b, c, d, e = (data[i, n, j] for n in range(5))
        zero, left = te.const(0.0, "float32"), function(function(a, b), function(c, a))
        return function(function(left, zero), function(function(d, d), e))

    out = te.compute((size, lanes), element, name="B")
    schedule = te.create_schedule(out.op)
    schedule[out].vectorize(out.op.axis[-1])
    func = run_pipeline(te.lower(schedule, [data, out], name="kernel"), Target(target))
    functions, _, _ = kernels.load({"kernel": func}, target)
    given = np.random.default_rng(0).standard_normal((size, size, lanes)).astype("float32")
    given[np.arange(size), np.arange(size), 1] = np.nan
    given[:, :, 2], given[:, :, 3], given[:, 1, 4] = np.inf, -np.inf, np.nan
    found = np.zeros((size, lanes), "float32")
    functions["kernel"](given, found)
    best = (np.max if function is te.max else np.min)(given[:, :5], axis=1)
    wanted = (np.maximum if function is te.max else np.minimum)(best, np.float32(0))
    np.testing.assert_array_equal(found, wanted)
