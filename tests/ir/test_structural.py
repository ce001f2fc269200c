"""structural_equal and assert_structural_equal: what is free, what is bound, what differs."""

import pytest

import slipway as tvm
from slipway import relay, te
from slipway.errors import StructuralMismatchError
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.structural import structural_digest
from slipway.script import tir as T


def relu_of(name, dtype="float32"):
    x = relay.var(name, shape=(2, 3), dtype=dtype)
    return relay.Function([x], relay.nn.relu(x))


def loop(buffer, index_of):
    i = E.Var("i")
    store = S.BufferStore(buffer, E.FloatImm("float32", 1.0), (index_of(i),))
    return S.For(i, E.IntImm("int32", 0), E.IntImm("int32", 4), "serial", store)


def whole(extent):
    buffer = decl_buffer((extent,), "float32", "A")
    handle = E.Var("a", "handle")
    return PrimFunc((handle,), loop(buffer, lambda i: i), ((handle, buffer),))


def test_free_variables_are_equal_to_themselves_alone():
    x, y = E.Var("x"), E.Var("y")
    assert tvm.ir.structural_equal(x + 1, x + 1)
    assert not tvm.ir.structural_equal(x + 1, y + 1)
    assert tvm.ir.structural_equal(x + 1, y + 1, map_free_vars=True)
    assert not tvm.ir.structural_equal([x, y], [y, x])
    assert tvm.ir.structural_equal([x, y], [y, x], map_free_vars=True)
    a, b = relay.var("a", shape=(2,)), relay.var("a", shape=(2,))
    assert not tvm.ir.structural_equal(relay.exp(a), relay.exp(b))
    assert tvm.ir.structural_equal(relay.exp(a), relay.exp(b), map_free_vars=True)


def test_bound_variables_correspond():
    assert tvm.ir.structural_equal(relu_of("x"), relu_of("y"))
    assert tvm.ir.structural_equal(whole(4), whole(4))
    n, m = te.var("n"), te.var("m")
    assert tvm.ir.structural_equal(whole(n), whole(m))  # the caller gives the extent

    def let(name):
        v = relay.var(name, shape=(2,))
        return relay.Let(v, relay.const([1.0, 2.0]), relay.add(v, v))

    assert tvm.ir.structural_equal(let("p"), let("q"))


def test_a_buffer_that_nothing_declares_is_free():
    one, two = (decl_buffer((4,), "float32", "A") for _ in range(2))
    assert tvm.ir.structural_equal(loop(one, lambda i: i), loop(one, lambda i: i))
    assert not tvm.ir.structural_equal(loop(one, lambda i: i), loop(two, lambda i: i))
    inside = [S.Allocate(b, loop(b, lambda i: i)) for b in (one, two)]
    assert tvm.ir.structural_equal(*inside)


def test_a_variable_that_is_bound_elsewhere_is_free_outside():
    i, j, n, m = (E.Var(name) for name in "ijnm")
    bound = [E.Let(v, E.IntImm("int32", 1), v + 1) for v in (i, j)]
    assert tvm.ir.structural_equal(*bound)
    assert not tvm.ir.structural_equal(bound[0] + n, bound[1] + m)
    extents = [S.Allocate(decl_buffer((v,), "int8", "A"), S.NOP) for v in (n, m)]
    assert not tvm.ir.structural_equal(*extents)


def test_te_computations_are_compared_over_their_axes():
    a = te.placeholder((8, 4), name="a")
    k, r = te.reduce_axis((0, 4)), te.reduce_axis((0, 4))
    one = te.compute((8,), lambda i: te.sum(a[i, k], k), name="s")
    two = te.compute((8,), lambda j: te.sum(a[j, r], r), name="s")
    assert tvm.ir.structural_equal(one.op, two.op)


def test_the_assertion_shows_the_first_difference():
    tvm.ir.assert_structural_equal(relu_of("x"), relu_of("y"))
    with pytest.raises(StructuralMismatchError, match="str 'float32' and str 'int8'"):
        tvm.ir.assert_structural_equal(relu_of("x"), relu_of("x", "int8"))
    with pytest.raises(ValueError, match="Var x and Var x: a free variable"):
        tvm.ir.assert_structural_equal(E.Var("x"), E.Var("x"))
    tvm.ir.assert_structural_equal(E.Var("x"), E.Var("y"), map_free_vars=True)


def test_hashes_of_equals_are_equal():
    x, y = E.Var("x"), E.Var("y")
    for free in (False, True):
        hashes = {tvm.ir.structural_hash(v + 1, map_free_vars=free) for v in (x, y)}
        assert len(hashes) == 1
    assert tvm.ir.structural_hash(whole(4)) == tvm.ir.structural_hash(whole(4))


def test_names_of_functions_and_blocks_and_the_order_of_mappings_do_not_count():
    """As TVM's do not: maps have no order there, and a block's name is a hint."""

    @T.prim_func
    def first(a: T.handle, b: T.handle):
        T.func_attr({"tir.noalias": True, "extra": 1})
        A = T.match_buffer(a, [8])
        B = T.match_buffer(b, [8])
        for i in range(8):
            with T.block("B"):
                T.block_attr({"x": 1, "y": 2})
                v = T.axis.spatial(8, i)
                B[v] = A[v] + 1.0

    @T.prim_func
    def second(a: T.handle, b: T.handle):
        T.func_attr({"extra": 1, "tir.noalias": True})
        D = T.match_buffer(b, [8])
        C = T.match_buffer(a, [8])
        for i in range(8):
            with T.block("other"):
                T.block_attr({"y": 2, "x": 1})
                v = T.axis.spatial(8, i)
                D[v] = C[v] + 1.0

    @T.prim_func
    def swapped(a: T.handle, b: T.handle):
        T.func_attr({"extra": 1, "tir.noalias": True})
        D = T.match_buffer(a, [8])
        C = T.match_buffer(b, [8])
        for i in range(8):
            with T.block("other"):
                T.block_attr({"y": 2, "x": 1})
                v = T.axis.spatial(8, i)
                D[v] = C[v] + 1.0

    tvm.ir.assert_structural_equal(first, second)
    assert tvm.ir.structural_hash(first) == tvm.ir.structural_hash(second)
    assert structural_digest(first) != structural_digest(second)  # code of other symbols
    assert not tvm.ir.structural_equal(first, swapped)
    modules = [tvm.IRModule({name: first}) for name in ("f", "g")]
    assert not tvm.ir.structural_equal(*modules)


def test_an_object_is_the_same_as_itself_alone():
    x = E.Var("x")
    assert x.same_as(x)
    assert (x + 0).same_as(x)
    assert not x.same_as(E.Var("x"))
    data = relay.var("data", shape=(1,))
    assert relay.Function([data], data).body.same_as(data)
