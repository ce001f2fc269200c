"""Relaxed SIMD: products in sums are one instruction, in vectors of any number of registers."""

import re

import pytest

import slipway as tvm
from slipway import te


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lanes", [2, 4, 8, 12, 16, 32])
def test_every_vector_is_fused(dtype, lanes):
    a, b, c = (te.placeholder((2 * lanes,), dtype, name) for name in "abc")
    out = te.compute((2 * lanes,), lambda i: a[i] * b[i] - c[i], name="out")
    schedule = te.create_schedule(out.op)
    lane = schedule[out].split(out.op.axis[0], lanes)[1]
    schedule[out].vectorize(lane)
    register = 128 // int(dtype[5:])

    def instructions(features):
        target = f"llvm -mtriple=wasm32{features}"
        code = tvm.build(schedule, [a, b, c, out], target).get_source("asm")
        return {n: len(re.findall(rf"\t{n}\b", code)) for n in ("mul", "relaxed_madd")} | {
            n: len(re.findall(rf"\tf\d\dx\d\.{n}\b", code)) for n in ("mul", "relaxed_madd")
        }

    plain, relaxed = instructions(""), instructions(" -mattr=+relaxed-simd")
    assert plain["relaxed_madd"] == 0
    if lanes >= register:
        assert relaxed["mul"] == 0
        assert relaxed["relaxed_madd"] == plain["mul"] > 0
