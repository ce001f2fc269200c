"""Generic services of IR nodes: text, comparison, JSON, walking and rewriting."""

import copy
import pickle

import numpy as np
import pytest

from slipway import te
from slipway.errors import ArgumentValueError, LoweringError, SlipwayError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import GlobalVar, IRModule, PrimFunc
from slipway.ir.structural import structural_equal, structural_hash
from slipway.ir.text.serialize import load_json, save_json
from slipway.ir.visit import Mutator, Visitor, children, post_order, rewrite_bottom_up, substitute
from slipway.ir.visit import walk as walk_nodes


def scale(name="main", factor=2.0, n=8):
    """A small function: B[i] = A[i] * factor."""
    a, b = decl_buffer((n,), name="A"), decl_buffer((n,), name="B")
    i = E.Var("i")
    body = S.For(i, ops.const(0), ops.const(n), "serial", S.BufferStore(b, a[i] * factor, (i,)))
    pa, pb = E.Var("A", "handle"), E.Var("B", "handle")
    return PrimFunc((pa, pb), body, ((pa, a), (pb, b)), (("global_symbol", name),))


def test_text_form_of_a_function():
    assert str(scale()) == (
        "def main(A: float32[8], B: float32[8]):\n    for i in range(8):\n        B[i] = A[i] * 2f"
    )


def test_text_form_puts_parentheses_where_they_matter():
    x, y = E.Var("x"), E.Var("y")
    assert str((x + y) * 2 - (x - (y - 1))) == "(x + y) * 2 - (x - (y - 1))"
    assert str(E.Var("x") + x) == "x + x_1"
    assert str(ops.logical_and(x < y, ops.logical_or(x > 1, y > 1))) == (
        "x < y and (x > 1 or y > 1)"
    )


def test_nodes_are_immutable_and_replace_makes_a_copy():
    func = scale()
    with pytest.raises(AttributeError, match="immutable"):
        func.body = S.NOP
    other = func.replace(body=S.NOP)
    assert other.body is S.NOP
    assert func.replace(body=func.body) is func
    assert copy.deepcopy(func) is func


def test_structural_equality_maps_variables_one_to_one():
    assert structural_equal(scale(), scale())
    assert structural_hash(scale()) == structural_hash(scale())
    assert not structural_equal(scale(), scale(factor=3.0))
    x, y, z = E.Var("x"), E.Var("y"), E.Var("z")
    assert structural_equal(x + y, y + z, map_free_vars=True)
    assert not structural_equal(x + y, z + z, map_free_vars=True)
    assert not structural_equal(x + x, y + z, map_free_vars=True)
    assert not structural_equal(ops.const(1), ops.const(True))
    assert not structural_equal(ops.const(0.0), ops.const(-0.0))


def test_json_round_trip_keeps_identity_of_variables():
    func = scale()
    again = load_json(save_json(func))
    assert structural_equal(func, again)
    assert str(again) == str(func)
    store = again.body.body
    assert store.indices[0] is again.body.loop_var
    assert structural_equal(pickle.loads(pickle.dumps(func)), func)


def test_json_of_te_graphs_and_arrays():
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    again = load_json(save_json(b))
    assert structural_equal(b.op, again.op)
    value = load_json(save_json({"x": np.arange(3, dtype="int8"), "y": (1.5, None)}))
    np.testing.assert_array_equal(value["x"], np.arange(3, dtype="int8"))
    assert value["y"] == (1.5, None)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"slipway_ir": 1, "root": ["@", 4], "nodes": [], "arrays": []}', "[1]"]
)
def test_damaged_json_is_an_error(text):
    with pytest.raises(SlipwayError):
        load_json(text)


def test_json_of_a_newer_version_says_so():
    with pytest.raises(SlipwayError, match="version 99"):
        load_json('{"slipway_ir": 99, "root": null, "nodes": [], "arrays": []}')


def test_walks_visit_each_node_once():
    x = E.Var("x")
    shared = x + 1
    root = shared * shared
    assert sum(n is shared for n in walk_nodes(root)) == 1
    order = post_order(root)
    assert order[-1] is root
    assert order.index(x) < order.index(shared)
    assert children(root) == (shared, shared)


def test_rewrites_share_what_does_not_change():
    x, y = E.Var("x"), E.Var("y")
    kept = y * 3
    root = (x + 1) + kept
    changed = substitute(root, {x: ops.const(5)})
    assert str(changed) == "5 + 1 + y * 3"
    assert changed.b is kept
    assert substitute(root, {E.Var("z"): x}) is root

    def to_sub(node):
        return E.Sub(node.a, node.b) if isinstance(node, E.Add) else None

    assert str(rewrite_bottom_up(root, to_sub)) == "x - 1 - y * 3"


def test_deep_graphs_do_not_meet_the_recursion_limit():
    node = E.Var("x")
    for _ in range(5000):
        node = E.Add(node, ops.const(1))
    assert sum(1 for _ in walk_nodes(node)) == 5002
    rewrite_bottom_up(node, lambda n: None)


def test_visitor_and_mutator_dispatch_by_class_name():
    names = []

    class Loads(Visitor):
        def visit_BufferLoad(self, node):
            names.append(node.buffer.name)
            self.generic_visit(node)

    class Negate(Mutator):
        def visit_FloatImm(self, node):
            return E.FloatImm(node.dtype, -node.value)

    func = scale()
    Loads().visit(func)
    assert names == ["A"]
    assert "* -2f" in str(Negate().visit(func))


def test_operators_match_types_as_classic_tvm_does():
    i, x, h = E.Var("i"), E.Var("x", "float32"), E.Var("h", "float16")
    assert (i + 1).dtype == "int32"
    assert (i + x).dtype == "float32"
    assert (h + x).dtype == "float32"
    assert (i + 1.5).dtype == "float32"
    assert (i // 2).dtype == "int32"
    assert isinstance(i == i, E.EQ)
    assert bool(i == i) is True
    assert len({i: 1, x: 2}) == 2
    with pytest.raises(LoweringError, match="no truth value"):
        bool(i < 3)
    with pytest.raises(LoweringError, match="zero"):
        i // 0
    with pytest.raises(LoweringError, match="both sides must have"):
        E.Add(i, x)


def test_constants_fold_and_wrap():
    assert int(ops.const(300, "uint8")) == 44
    assert int(ops.const(200, "int8")) == -56
    assert int(ops.floordiv(ops.const(-7), 2)) == -4
    assert int(ops.truncdiv(ops.const(-7), 2)) == -3
    assert int(ops.truncmod(ops.const(-7), 2)) == -1
    assert int(ops.floormod(ops.const(-7), 2)) == 1
    assert float(ops.const(1.5) + 2) == 3.5


def test_modules_are_updated_by_copy():
    module = IRModule.from_functions({"f": scale("f"), "g": scale("g")})
    assert list(module) == ["f", "g"]
    newer = module.update("g", scale("g", 5.0)).update("h", scale("h"))
    assert "5f" in str(newer["g"])
    assert "h" in newer
    assert "h" not in module
    assert "f" in module.functions
    assert GlobalVar("g") in module.functions
    assert module.functions.get("h") is None
    with pytest.raises(KeyError, match="no function 'x'; it has: f, g"):
        module["x"]
    # A name from going through the functions is a name, and a pair where a pair is taken.
    for name in module.functions:
        assert name.name_hint == next(iter(name))
        assert module[name] is module.functions[name] is module.functions.get(name.name)
        assert name in module.functions
        module.update_func(name, scale(name.name, 7.0))
        assert "7f" in str(module[name])
    assert list(module) == ["f", "g"]


def test_attributes_and_buffers_are_looked_up_by_name():
    """What passes of classic scripts read of a function, and that rewriting keeps it so."""
    func = scale("f").with_attr({"global_symbol": "g", "tir.noalias": True}).with_attr("k", 1)
    for one in (func, func.with_body(func.body), func.mapped(lambda n: n)):
        assert one.attrs["global_symbol"] == "g"
        assert "k" in one.attrs
        assert "Compiler" not in one.attrs
        assert one.attrs.get("Compiler") is None
        assert sorted(one.attrs.keys()) == ["global_symbol", "k", "noalias"]
        assert [b.name for b in one.buffer_map.values()] == [b.name for _, b in one.buffer_map]
        for handle, buffer in one.buffer_map.items():
            assert one.buffer_map[handle] is one.buffer_map.get(handle) is buffer
            assert handle in one.buffer_map
            assert any(child is buffer for child in children(one))
    with pytest.raises(KeyError, match="no attribute 'Compiler'; it has: global_symbol"):
        func.attrs["Compiler"]
    assert "k" not in func.without_attr("k").attrs
    renamed = substitute(func, {buffer: buffer.replace(name="other")})
    assert "other" in [b.name for b in renamed.buffer_map.values()]
    module = IRModule.from_functions({"f": func}).with_attr("runtime", "crt").with_attr("a", 2)
    assert module.get_attr("runtime") == "crt"
    assert module.get_attr("none") is None


def test_nodes_take_numbers_and_axes():
    x, k = E.Var("x", "float32"), te.reduce_axis((0, 8), "k")
    assert str(E.Max(x, 0.0)) == "max(x, 0f)"
    assert str(E.Select(k > 3, k, 0)) == "select(k > 3, k, 0)"
    assert E.Select(k > 3, k, 0).true_value is k.var
    assert E.LT(1, k).b is k.var
    assert E.Add(k, 1).dtype == "int32"


def test_a_pointer_takes_classic_arguments():
    """access_ptr(mask, ptr_type, content_lanes, offset, extent)."""
    buffer = decl_buffer((16,), "float32", "A")
    for made in (buffer.access_ptr("r", offset=8, extent=4), buffer.access_ptr(1, "handle", 4, 8)):
        assert [a.value for a in made.args[1:]] == [8, 1]
    with pytest.raises(ArgumentValueError, match="ptr_type is 'float32'"):
        buffer.access_ptr("r", "float32")
