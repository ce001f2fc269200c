"""Floats that become integers whatever they are: one instruction where a CPU has it."""

import re

import pytest

from slipway import te
from slipway.compiler.emit import build_module
from slipway.target import Target
from slipway.transform.loop.pipeline import run_pipeline

COMPARED = re.compile(
    r"^\s+(fcm\w\w|fcmp|vcmp\S*|vcm\S*|vpt\S*|vmf[lg]\S+|flt\.s|fle\.s|f32(?:x4)?\.[lg][te])\b",
    re.M,
)
TARGETS = {
    "NEON": "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72",
    "M4": "llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m4",
    "M55": "llvm -mtriple=thumbv8.1m.main-none-eabihf -mcpu=cortex-m55",
    "F": "llvm -mtriple=riscv32-unknown-elf -mattr=+m,+f",
    "V": "llvm -mtriple=riscv64-linux-gnu -mattr=+v",
    "wasm": "llvm -mtriple=wasm32",
}
LANES = {"M4": (1,), "F": (1,)}


def compared(target, lanes):
    """Return the comparisons of floats in a kernel that converts them."""
    data = te.placeholder((64,), name="A")
    out = te.compute((64,), lambda i: te.to_integer(data[i], "int8"), name="B")
    schedule = te.create_schedule(out.op)
    schedule[out].vectorize(schedule[out].split(out.op.axis[0], lanes)[1])
    func = run_pipeline(te.lower(schedule, [data, out]), Target(target))
    return COMPARED.findall(build_module({"kernel": func}, Target(target)).get_source("asm"))


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_compared_where_an_instruction_holds_them(name):
    for lanes in LANES.get(name, (1, 4)):
        assert compared(TARGETS[name], lanes) == [], lanes


def test_what_a_unit_does_not_know_is_compared():
    assert compared("llvm -mtriple=armv7l-linux-gnueabihf -mcpu=cortex-a7 -mattr=+neon", 1) == []
    soft = Target("llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m4")
    data = te.placeholder((8,), "float64", name="A")
    out = te.compute((8,), lambda i: te.to_integer(data[i], "int32"), name="B")
    func = run_pipeline(te.lower(te.create_schedule(out.op), [data, out]), soft)
    text = build_module({"kernel": func}, soft).get_source("ll")
    assert "fptosi.sat" not in text
    assert "fcmp" in text
