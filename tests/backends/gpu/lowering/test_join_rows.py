"""Loops that fill a thread's row and the loops that read it, as one, where threads run in lanes."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.backends.gpu.lowering.join_rows import join_rows
from slipway.ir import stmt as S
from slipway.ir.visit import walk
from slipway.target import Target

LANES = Target("google/swiftshader", host="llvm")


def loops(func):
    return [n for n in walk(func.body) if isinstance(n, S.For) and n.kind != S.ForKind.THREAD]


def joined(func, target=LANES):
    return join_rows(func.with_attr("target", target))


def program(read="k", write="k", init="total[0] = T.float32(0)", steps=8, rest=""):
    """Return a thread's fill of a row, and a sum over what `read` says of it."""
    return tvm.script.from_source(
        f"""
@T.prim_func
def main(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):
    for t in T.thread_binding(1, thread="threadIdx.x"):
        row = T.alloc_buffer((16,), "float32", scope="local")
        total = T.alloc_buffer((2,), "float32", scope="local")
        row[0] = T.float32(1)
        for k in T.serial(8):
            row[{write}] = a[k] * T.float32(2){rest}
        {init}
        for k in T.serial({steps}):
            total[0] = total[0] + row[{read}]
        b[0] = total[0] + row[0]
"""
    )


def test_a_fill_and_its_reader_become_one_loop():
    func = joined(program())
    (loop,) = loops(func)
    assert isinstance(loop.body, S.LetStmt)
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tvm.testing.run_threads(func, None, [a, b], "vulkan")
    assert b[0] == 56


@pytest.mark.parametrize(
    "how",
    [
        {"read": "7 - k"},  # what is filled later
        {"read": "0"},
        {"write": "0"},  # one element, of which the last value counts
        {"write": "k // 2"},
        {"steps": 7},
        {"init": "total[0] = row[3]"},
        {"init": "row[3] = T.float32(9)"},
        {"rest": " + total[0]"},  # which the sum changes
        {"rest": " + row[k]"},
    ],
)
def test_what_one_loop_would_change_stays(how):
    func = program(**how)
    assert len(loops(joined(func))) == 2


@pytest.mark.parametrize("target", ["vulkan", "opencl", "cuda -arch=sm_80", "pocl/cpu"])
def test_other_devices_keep_their_loops(target):
    func = program().with_attr("target", Target(target, host="llvm"))
    assert join_rows(func) is func


def kernel(shape, name, disabled=()):
    x = relay.var("x", shape=shape)
    body = {"softmax": relay.nn.softmax, "log_softmax": relay.nn.log_softmax}[name](x, axis=-1)
    with tvm.transform.PassContext(disabled_pass=list(disabled)):
        return relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), target=LANES)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(32, 1000), (20, 77), (17, 256)])
def test_rows_have_the_same_bits(vulkan, name, shape):
    x = np.random.default_rng(0).standard_normal(shape).astype("float32") * 4
    found = []
    for disabled in ((), ("join_rows",)):
        module = tvm.contrib.graph_executor.GraphModule(
            kernel(shape, name, disabled)["default"](vulkan)
        )
        module.run(x=x)
        found.append(module.get_output(0).numpy())
    np.testing.assert_array_equal(*found)
    shifted = x.astype("float64") - x.max(1, keepdims=True)
    wanted = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    wanted = np.exp(wanted) if name == "softmax" else wanted
    np.testing.assert_allclose(found[0], wanted, rtol=1e-5, atol=1e-6)
