"""Kernels of many tensors and of many loops: functions of bounded size, as many as are needed."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te
from slipway.backends.backend import compile_target
from slipway.codegen.llvm.module import emit_kernel
from slipway.compiler.kernels import LoweredKernels
from slipway.compiler.relay_build import kernel_graph
from slipway.transform.context import PassContext

sys.path.append(str(Path(__file__).parents[3]))
from benchmarks.compile_chains import chain


def texts(kind, count):
    """Return the LLVM IR of each kernel of a wide operator."""
    target = compile_target("llvm")
    with PassContext(opt_level=3):
        kernels = LoweredKernels(kernel_graph(chain(kind, count), target), target)
        return [emit_kernel(n, kernels[n], target, "arena").text for n in kernels]


def pieces_of(text):
    return re.findall(r"^define internal i32 @\S*\.piece\d+\(.*?^}", text, re.M | re.S)


@pytest.mark.parametrize("kind", ["parts", "fields", "joined", "stacked"])
def test_twice_the_tensors_are_twice_the_code_in_functions_no_longer(kind):
    few, many = (texts(kind, count) for count in (66, 132))
    assert len(few) == len(many)  # kernels of fields are one
    few, many = "".join(few), "".join(many)
    assert len(many) < 2.2 * len(few)
    pieces = pieces_of(many)
    assert len(pieces) >= 6
    assert max(p.partition(")")[0].count("ptr noalias") for p in pieces) <= 24
    longest = max(p.count("\n") for p in pieces_of(few))
    assert max(p.count("\n") for p in pieces) <= longest + 2


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64", "c"])
def test_a_split_of_many_parts(target):
    x = relay.var("x", shape=(4, 211))
    cuts = [int(c) for c in np.cumsum(np.arange(69) % 5 + 1)]
    parts = relay.split(x, [c for c in cuts if c <= 211], axis=1)
    function = relay.Function([x], parts.astuple())
    value = np.random.default_rng(0).normal(size=(4, 211)).astype("float32")
    built = relay.build(tvm.IRModule.from_expr(function), target=target)
    module = tvm.contrib.graph_executor.GraphModule(built["default"](tvm.cpu()))
    module.run(x=value)
    for n, want in enumerate(relay.interpret.interpret(function, value)):
        np.testing.assert_array_equal(module.get_output(n).numpy(), want)


def test_many_stages_one_after_the_other():
    """Each a loop of its own, and a memory: 60 of them are three functions."""
    start = te.placeholder((16,), name="start")
    value = start
    for number in range(60):
        value = te.compute((16,), lambda i, v=value: v[i] * 0.5 + v[15 - i], name=f"s{number}")
    schedule = te.create_schedule(value.op)
    module = tvm.build(schedule, [start, value], "llvm")
    given = np.random.default_rng(0).normal(size=16).astype("float32")
    got = tvm.nd.array(np.zeros(16, "float32"))
    module(tvm.nd.array(given), got)
    for _ in range(60):
        given = given * np.float32(0.5) + given[::-1]
    np.testing.assert_allclose(got.numpy(), given, rtol=1e-5, atol=1e-6)
