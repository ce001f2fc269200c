"""Simplify under loops and branches."""

import numpy as np

import slipway as tvm
from slipway import te, tir
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.transform.loop.simplify import simplify

A = decl_buffer((64,), "int32", name="A")
P = E.Var("A", "handle")
i, j = E.Var("i"), E.Var("j")


def text(body):
    lines = str(simplify(PrimFunc((P,), body, ((P, A),)))).splitlines()[1:]
    return "\n".join(line[4:] for line in lines)


def loop(var, extent, body, first=0):
    return S.For(var, ops.const(first), ops.const(extent), "serial", body)


def put(value, at):
    return S.BufferStore(A, ops.as_expr(value), (ops.as_expr(at),))


def test_a_decided_branch_is_taken():
    body = loop(i, 16, S.IfThenElse(i < 16, put(1, i // 4 * 4 + i % 4), put(2, i)))
    assert text(body) == "for i in range(16):\n    A[i] = 1"


def test_loops_of_one_step_and_of_none():
    assert text(loop(i, 1, put(1, i), first=5)) == "A[5] = 1"
    assert text(loop(i, 0, put(1, i))) == "pass"


def test_an_inner_condition_known_from_the_branch_around_it():
    inner = S.IfThenElse(i + 2 < 12, put(1, i), put(2, i))
    body = loop(i, 16, S.IfThenElse(i < 10, inner, S.IfThenElse(i < 10, put(3, i), put(4, i))))
    assert text(body) == (
        "for i in range(16):\n    if i < 10:\n        A[i] = 1\n    else:\n        A[i] = 4"
    )


def test_the_else_of_a_conjunction_knows_nothing_of_its_parts():
    both = ops.logical_and(i < 10, j < 10)
    rest = S.IfThenElse(i < 10, put(1, i), put(2, i))
    body = loop(i, 16, loop(j, 16, S.IfThenElse(both, put(0, i), rest)))
    assert "A[i] = 1" in text(body)
    assert "A[i] = 2" in text(body)


def test_a_condition_on_memory_is_asked_again():
    condition = A[0] < 1
    body = S.IfThenElse(condition, S.seq([put(5, 0), S.IfThenElse(condition, put(1, 1))]))
    assert text(body).count("if A[0] < 1") == 2


def test_vector_arithmetic_of_ramps_and_broadcasts():
    ramp = E.Ramp(i * 4, ops.const(1), 4)
    index = E.Add(E.Mul(ramp, E.Broadcast(ops.const(2), 4)), E.Broadcast(ops.const(3), 4))
    body = loop(i, 4, S.BufferStore(A, E.Broadcast(ops.const(0), 4), (index,)))
    assert "A[ramp(i * 8 + 3, 2, 4)] = broadcast(0, 4)" in text(body)


def test_blocks_are_simplified_with_their_axes():
    """`tir.transform.Simplify()(sch.mod)` of a script ended in a KeyError at the first block."""
    a = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    b = te.compute((4,), lambda i: te.sum(a[i, k] * 1.0, axis=k), name="B")
    sch = tir.Schedule(te.create_prim_func([a, b]))
    i, k = sch.get_loops("B")
    sch.split(i, [4, 1])
    sch.split(k, [2, 4])
    module = tir.transform.Simplify()(sch.mod)
    text = module.script()
    assert "T.axis.reduce(8, k_0 * 4 + k_1)" in text
    assert "* T.float32(1.0)" not in text
    assert "i_1" not in text
    out = tvm.nd.empty((4,))
    values = np.arange(32, dtype="float32").reshape(4, 8)
    tvm.build(module, target="llvm")(tvm.nd.array(values), out)
    np.testing.assert_array_equal(out.numpy(), values.sum(1))
