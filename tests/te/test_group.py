"""Groups of stages, and functions made by hand over pointers."""

import json

import numpy as np
import pytest

import slipway as tvm
from slipway import te, tir


def chain():
    a = te.placeholder((8, 6), name="a")
    stages = [a]
    for n in range(4):
        last = stages[-1]
        stages.append(te.compute((8, 6), lambda i, j, x=last, n=n: x[i, j] * 2 + n, name=f"s{n}"))
    return stages


def reference(x):
    for n in range(4):
        x = x * 2 + n
    return x


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_group_is_computed_at_one_loop(target):
    a, b, c, d, e = chain()
    s = te.create_schedule(e.op)
    group = s.create_group(outputs=d, inputs=a, include_inputs=True)
    assert [stage.op.name for stage in group.stages] == ["s0", "s1", "s2"]
    group.compute_at(s[e], e.op.axis[0])
    assert all(s[x].attach_stage is s[e] for x in (b, c, d))
    x = np.random.default_rng(0).normal(size=(8, 6)).astype("float32")
    out = tvm.nd.empty((8, 6))
    tvm.build(s, [a, e], target)(tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), reference(x), rtol=1e-6)


def test_what_is_between_belongs_to_a_group():
    a, b, c, d, e = chain()
    s = te.create_schedule(e.op)
    names = lambda *g, **o: [x.op.name for x in s.create_group(*g, **o).stages]  # noqa: E731
    assert names(d, b) == ["s1", "s2"]
    assert names([d], [b], include_inputs=True) == ["s0", "s1", "s2"]
    s[c].compute_inline()
    group = s.create_group(d, a)
    group.compute_at(s[e], e.op.axis[0])
    assert s[c].attach_type == "inline"
    group.compute_root()
    assert s[b].attach_type == "root"
    other = te.placeholder((2,), name="other")
    with pytest.raises(tvm.TVMError, match="'s2' does not depend on other"):
        s.create_group(d, other)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_function_over_pointers(target):
    ib = tir.ir_builder.create()
    n = te.size_var("n")
    a, b = ib.pointer("float32", name="a"), ib.pointer("float32", name="b")
    with ib.new_scope():
        twice = ib.allocate("float32", 1, name="twice", scope="local")
        with ib.for_range(0, n, name="i") as i:
            twice[0] = a[i] * 2.0
            with ib.if_scope(tir.any(i > 2)):
                b[i] = twice[0]
            with ib.else_scope():
                b[i] = a[i]
    function = tir.PrimFunc([a, b.asobject(), n], ib.get())
    built = tvm.build(function, target=target)
    x = np.arange(6, dtype="float32")
    out = tvm.nd.array(np.zeros(6, "float32"))
    built(tvm.nd.array(x), out, 5)
    np.testing.assert_array_equal(out.numpy(), [0, 1, 2, 6, 8, 0])


def test_a_scans_body_is_a_group():
    x, state = te.placeholder((8, 5), name="x"), te.placeholder((8, 5), name="state")
    init = te.compute((1, 5), lambda _, i: x[0, i], name="init")
    one = te.compute((8, 5), lambda t, i: state[t - 1, i] + x[t, i], name="one")
    two = te.compute((8, 5), lambda t, i: one[t, i] * 2, name="two")
    scan = te.scan(init, two, state, inputs=x)
    s = te.create_schedule(scan.op)
    assert s[one].group is s[two].group
    assert s[scan].group is None
    with pytest.raises(tvm.TVMError, match="'one' at 'init': it belongs to a group"):
        s[one].compute_at(s[init], init.op.axis[0])
    cache = s.cache_write(two, "local")
    assert s[cache].group is s[two].group
    assert s[cache] in s[two].group.stages
    s[cache].compute_at(s[two], two.op.axis[1])
    s[one].compute_at(s[two], two.op.axis[1])
    data, out = np.arange(40, dtype="float32").reshape(8, 5), tvm.nd.empty((8, 5))
    tvm.build(s, [x, scan])(tvm.nd.array(data), out)
    want = [data[0]]
    for row in data[1:]:
        want.append((want[-1] + row) * 2)
    np.testing.assert_allclose(out.numpy(), want)


def test_a_pragma_of_a_primitives_name_is_that_primitive():
    a = te.placeholder((8, 4))
    b = te.compute((8, 4), lambda i, j: a[i, j] + 1)
    s = te.create_schedule(b.op)
    for axis, name in zip(b.op.axis, ("parallel", "vectorize"), strict=True):
        s[b].pragma(axis, name)
    kinds = [s[b].iter_var_attrs[axis].iter_type for axis in b.op.axis]
    assert kinds == [tir.IterVar.Parallelized, tir.IterVar.Vectorized]
    assert not s[b].iter_var_attrs[b.op.axis[0]].pragma_keys


def test_attributes_of_an_operation_have_values_and_are_written_as_json():
    a = te.placeholder((3,))
    attrs = {"count": 1, "list": [10, 12], "word": "x"}
    made = te.compute((3,), lambda i: a[i], attrs=attrs)
    for tensor in (made, tvm.ir.load_json(tvm.ir.save_json(made))):
        found = tensor.op.attrs
        assert found["count"].value == 1
        assert [n.value for n in found["list"]] == [10, 12]
        assert json.loads(str(found)) == attrs
