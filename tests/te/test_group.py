"""Groups of stages, and functions made by hand over pointers."""

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
