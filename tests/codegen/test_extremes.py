"""A maximum of floats is one instruction where a NaN's way allows it."""

import re

import pytest

from slipway import te
from slipway.codegen.build import build_module
from slipway.passes.pipeline import run_pipeline
from slipway.target import Target

A72 = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"
A7 = "llvm -mtriple=armv7l-linux-gnueabihf -mcpu=cortex-a7 -mattr=+neon"
V = "llvm -mtriple=riscv64-linux-gnu -mattr=+v"


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


def greatest_of_columns(data):
    k = te.reduce_axis((0, 64), name="k")
    return te.compute((16,), lambda j: te.max(data[k, j], axis=k), name="B")


def greater_of_two(data):
    return te.compute((32, 16), lambda i, j: te.max(data[i, j], data[i + 32, j]), name="B")


@pytest.mark.parametrize(
    ("target", "instruction"), [(A72, "fmaxnm"), (A7, r"vmax\.f32"), (V, r"vfmax\.vv")]
)
def test_a_reduction_takes_what_there_is(target, instruction):
    assert re.search(rf"\t{instruction}\t", assembly(target, greatest_of_columns))


@pytest.mark.parametrize("target", [A72 + " -strict=1", A7 + " -strict=1", V + " -strict=1"])
def test_strict_code_keeps_to_the_second_operand(target):
    assert not re.search(r"\t(v?fmax|vmax)", assembly(target, greatest_of_columns))


@pytest.mark.parametrize("target", [A72, A7, V])
def test_of_two_unknown_values_a_nan_is_kept_where_it_is_the_second(target):
    assert not re.search(r"\t(v?fmax|vmax)", assembly(target, greater_of_two))


def test_a_bound_is_a_known_number():
    clipped = te.const(6.0, "float32")
    code = assembly(
        A7, lambda data: te.compute((64, 16), lambda i, j: te.min(clipped, data[i, j]), name="B")
    )
    assert "\tvmin.f32\t" in code
