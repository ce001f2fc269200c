"""Walks see all nodes, and look for them only in fields that can hold any."""

import pytest

import slipway.backends.cpu.backend
import slipway.relay
import slipway.te  # noqa: F401  (node classes are known once their modules are loaded)
from slipway import te
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.node import NODE_CLASSES, Node, node
from slipway.ir.visit import children, map_children, nesting, post_order_by, walk


@pytest.mark.parametrize("name", sorted(NODE_CLASSES))
def test_fields_that_walks_leave_out_are_plain_values(name):
    kind = NODE_CLASSES[name]
    told = {}
    for base in reversed(kind.__mro__):
        told.update(getattr(base, "__annotations__", {}))
    left_out = {str(told[field]) for field in kind.FIELDS if field not in kind.INNER}
    assert left_out <= {"str", "int", "float", "bool", "tuple[int, ...]"}


def test_walk_finds_what_all_fields_hold():
    a = te.placeholder((4, 6), name="A")
    b = te.compute((4, 6), lambda i, j: te.if_then_else(i < 2, a[i, j], te.exp(a[i - 2, j])))
    s = te.create_schedule(b.op)
    func = te.lower(s, [a, b])

    def below(value):
        if isinstance(value, Node):
            return [value] + [n for f in value.FIELDS for n in below(getattr(value, f))]
        return [n for item in value for n in below(item)] if isinstance(value, tuple) else []

    assert {id(n) for n in walk(func.body)} == {id(n) for n in below(func.body)}


def test_what_is_known_is_looked_up_and_not_copied():
    """Importers fold node by node, with all nodes before it known: a copy each is quadratic."""

    class Known(dict):
        def __iter__(self):
            raise AssertionError("walked")

    x = E.Var("x", "int32")
    inner = x + 1
    whole = inner * 2
    known = Known({id(inner): None})
    assert [n for n in post_order_by([whole], children, known) if not isinstance(n, E.IntImm)] == [
        whole
    ]
    assert not any(n is x or n is inner for n in post_order_by([whole], children, known))


def test_a_class_of_somebody_elses_may_leave_its_fields_open():
    @node
    class Pair(Node):
        one: object
        label: "str"

    pair = Pair(E.IntImm("int32", 3), "x")
    assert children(pair) == (pair.one,)
    changed = map_children(pair, lambda n: E.IntImm("int32", 4))
    assert (changed.one.value, changed.label) == (4, "x")
    del NODE_CLASSES["Pair"]


def test_a_class_derived_from_a_node_has_children_of_its_own():
    three, four = E.IntImm("int32", 3), E.IntImm("int32", 4)

    @node
    class Base(Node):
        one: E.PrimExpr

    @node
    class Derived(Base):
        more: "tuple[E.PrimExpr | None, ...]"

    class Plain(Derived):  # declares no fields
        pass

    base = Base(three)
    assert (children(base), map_children(base, lambda n: four).one) == ((three,), four)
    for cls in (Derived, Plain):
        made = cls(three, (four, None, (three,)))
        assert children(made) == (three, four, three)
        assert map_children(made, lambda n: n) is made
        other = map_children(made, lambda n: four if n is three else n)
        assert type(other) is cls
        assert (other.one, other.more) == (four, (four, None, (four,)))
    for name in ("Base", "Derived"):
        del NODE_CLASSES[name]


def test_annotations_of_loops_are_walked():
    ahead = E.Var("ahead", "int32")
    loop = S.For(E.Var("i", "int32"), E.IntImm("int32", 0), E.IntImm("int32", 4), "serial",
                 S.NOP, None, (("prefetch", (ahead,)),))  # fmt: skip
    assert any(found is ahead for found in walk(loop))


def test_statements_are_found_in_order_and_once_without_expressions():
    buffer = decl_buffer((8,), "float32", "A")
    store = S.BufferStore(buffer, E.FloatImm("float32", 1.0), (E.IntImm("int32", 0),))
    branch = S.IfThenElse(E.IntImm("bool", 1), store, S.NOP)
    loop = S.For(E.Var("i"), E.IntImm("int32", 0), E.IntImm("int32", 4), "serial", branch)
    root = S.SeqStmt((loop, store, S.Evaluate(E.IntImm("int32", 2))))
    assert S.statements(root) == [root, loop, branch, store, S.NOP, root.stmts[2]]


def test_depths_are_kept_and_count_the_deepest_way():
    first = x = E.Var("x", "int32")
    for _ in range(30):  # 2**30 ways down
        x = E.Add(x, x)
    assert nesting(x.a) == 30
    assert nesting(E.Mul(first, E.Add(x, first))) == 33
    assert [nesting(node) for node in (x, x.a.b, first)] == [31, 29, 1]
    assert nesting(x, lambda node: node.FIELDS and [node.a] if node is x else []) == 2
