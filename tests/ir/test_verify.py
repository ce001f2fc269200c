"""The verifier names what is wrong, and accepts what the pipeline makes."""

import pytest

from slipway import te
from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.verify import verify
from slipway.transform.instruments import VerifyEachPass
from slipway.transform.loop.pipeline import run_pipeline


def function(body, *buffers):
    params = tuple(E.Var(b.name, "handle") for b in buffers)
    return PrimFunc(params, body, tuple(zip(params, buffers, strict=True)))


A = decl_buffer((4, 4), name="A")
i = E.Var("i")
AXIS = E.IterVar(None, E.Var("v"))
TRUE = ops.const(True, "bool")


def loop(body, kind="serial"):
    return S.For(i, ops.const(0), ops.const(4), kind, body)


@pytest.mark.parametrize(
    ("stage", "func", "words"),
    [
        ("loops", function(S.BufferStore(A, A[i, 0], (i, i)), A), "variable i is used outside"),
        ("loops", function(loop(S.BufferStore(A, A[i, 0], (i, i)))), "outside its allocation"),
        ("loops", function(loop(S.BufferStore(A, A[i, 0], (i,))), A), "with 1 indices"),
        ("loops", function(loop(loop(S.NOP)), A), "defined inside its own scope"),
        (
            "loops",
            function(loop(S.BufferStore(A, ops.const(1), (i, i))), A),
            "takes float32 here, got int32",
        ),
        ("loops", function(S.IfThenElse(ops.const(1), S.NOP), A), "needs bool"),
        (
            "loops",
            function(S.Block("b", (AXIS,), (), TRUE, S.NOP)),
            "block b has 1 axes, 0 values",
        ),
        ("flat", function(loop(S.BufferStore(A, A[i, 0], (i, i))), A), "not flat"),
        ("ready", function(loop(S.NOP, "vectorized"), A), "vectorized loop i is left"),
        (
            "loops",
            function(S.Evaluate(E.Call("float32", "exp", ())), A),
            "exp takes 1 arguments, got 0",
        ),
    ],
)
def test_faults_are_named(stage, func, words):
    with pytest.raises(LoweringError, match=words):
        verify(func, stage)


def test_te_nodes_do_not_belong_in_loops():
    t = te.placeholder((4, 4), name="T")
    with pytest.raises(LoweringError, match="ProducerLoad belongs to te"):
        verify(function(loop(S.BufferStore(A, t[i, i], (i, i))), A))


def test_the_pipeline_gives_legal_functions_at_every_stage():
    t = te.placeholder((33, 20), name="T")
    u = te.compute((33, 20), lambda a, b: t[a, b] * 2.0, name="U")
    s = te.create_schedule(u.op)
    s[u].vectorize(s[u].split(u.op.axis[1], 8)[1])
    s[u].unroll(u.op.axis[0])
    func = te.lower(s, [t, u])
    verify(func, "loops")
    verify(run_pipeline(func, instruments=[VerifyEachPass()]), "ready")


def test_an_unknown_stage_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="one of loops, flat, ready"):
        verify(function(S.NOP), "emission")
