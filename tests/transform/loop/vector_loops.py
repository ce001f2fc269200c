"""Loops that are to run in lanes, run: what comes out, and how many lanes each store has."""

import operator

import numpy as np

from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.ir.visit import walk
from slipway.transform.loop.vectorize_loop import vectorize_loop

A, B, OUT = (decl_buffer((400,), name=n) for n in ("A", "B", "Out"))
TABLE = decl_buffer((400,), "int32", name="Table")
U, V = E.Var("u"), E.Var("v")
LANES = 16  # of float32 in 64 bytes
KINDS = {E.LT: operator.lt, E.LE: operator.le, E.GT: operator.gt, E.GE: operator.ge}
PLAIN = {
    **KINDS, E.EQ: operator.eq, E.NE: operator.ne, E.Add: operator.add, E.Sub: operator.sub,
    E.Mul: operator.mul, E.FloorDiv: operator.floordiv, E.FloorMod: operator.mod, E.Min: min,
    E.Max: max, E.And: lambda a, b: a and b, E.Or: lambda a, b: a or b,
}  # fmt: skip


def scalar(node, values):
    """Return the value of an expression of loop variables."""
    if isinstance(node, E.IntImm):
        return node.value
    if isinstance(node, E.Var):
        return values[node]
    if isinstance(node, E.Call):
        assert node.op == "likely"
        return scalar(node.args[0], values)
    if isinstance(node, E.Not):
        return not scalar(node.a, values)
    return PLAIN[type(node)](scalar(node.a, values), scalar(node.b, values))


def stores(stmt, values):
    """Yield the lanes of each store that runs."""
    match stmt:
        case S.SeqStmt():
            for part in stmt.stmts:
                yield from stores(part, values)
        case S.For():
            first = scalar(stmt.min, values)
            for step in range(first, first + scalar(stmt.extent, values)):
                yield from stores(stmt.body, {**values, stmt.loop_var: step})
        case S.IfThenElse():
            taken = stmt.then_case if scalar(stmt.condition, values) else stmt.else_case
            if taken is not None:
                yield from stores(taken, values)
        case S.LetStmt():
            yield from stores(stmt.body, values)
        case S.BufferStore():
            yield stmt.value.lanes


def in_lanes(body, extent, first=0, outer=1, target=None, buffers=(A, B, TABLE, OUT)):
    """Return the function that runs `body` in lanes of V inside of a loop over U."""
    loop = S.For(V, ops.const(first), ops.const(extent), S.ForKind.VECTORIZED, body)
    loop = S.For(U, ops.const(0), ops.const(outer), S.ForKind.SERIAL, loop)
    handles = tuple(E.Var(b.name, "handle") for b in buffers)
    func = PrimFunc(handles, loop, tuple(zip(handles, buffers, strict=True)))
    if target is not None:
        func = func.with_attr("target", target)
    made = verify(vectorize_loop(func), "flat")
    rng = np.random.default_rng(0)
    given = [rng.integers(-8, 9, b.shape[0].value).astype(b.dtype) for b in buffers]
    mine, theirs = [x.copy() for x in given], [x.copy() for x in given]
    run(made, *mine)
    run(func, *theirs)
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
    return made


def ran(made):
    return list(stores(made.body, {}))


def store(value, index=None):
    return S.BufferStore(OUT, value, (U * 40 + V if index is None else index,))


def pieces(extent, lanes=LANES, together=LANES):
    """Return the lanes of the pieces of a loop: full ones, and a tail that registers hold."""
    found = []
    while extent:
        part = lanes if extent >= lanes else extent
        if together < part < lanes:
            part = 1 << (part.bit_length() - 1)
        found.append(part)
        extent -= part
    return found


def split(steps, lanes=LANES):
    return [steps[n : n + lanes] for n in range(0, len(steps), lanes)]


def one_vector(value, extent=16):
    """Return the vector store of a value that has one."""
    made = in_lanes(store(value), extent)
    (only,) = (n for n in walk(made.body) if isinstance(n, S.BufferStore))
    assert only.value.lanes == extent, made
    return only
