"""Scatters that store each update where it belongs, against what NumPy does one by one."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.backends.primitive import schedule_primitive
from slipway.target import Target

MEET = {"update": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": max, "min": min}


def scattered(data, axis, indices, updates, reduction):
    """The updates in order; an index outside is left out."""
    out = data.copy()
    for index in np.ndindex(*indices.shape):
        at = int(indices[index])
        at += data.shape[axis] * (at < 0)
        if 0 <= at < data.shape[axis]:
            there = (*index[:axis], at, *index[axis + 1 :])
            out[there] = MEET[reduction](out[there], updates[index])
    return out


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_updates_that_meet_or_lie_outside(target):
    rng = np.random.default_rng(0)
    cases = [((5, 7, 9), 0, (3, 6, 9), "update"), ((5, 7, 9), 1, (5, 20, 9), "add")]
    cases += [((300, 90), 1, (300, 50), "mul"), ((7,), 0, (40,), "max"), ((2, 7), 1, (2, 9), "min")]
    given, outs = {}, []
    for number, (shape, axis, reach, reduction) in enumerate(cases):
        arrays = [
            rng.standard_normal(shape).astype("float32"),
            rng.integers(-shape[axis] - 1, shape[axis] + 1, reach),
            rng.standard_normal(reach).astype("float32"),
        ]
        inputs = [
            relay.var(f"{kind}{number}", shape=a.shape, dtype=str(a.dtype))
            for kind, a in zip("diu", arrays, strict=True)
        ]
        given |= {v.name_hint: a for v, a in zip(inputs, arrays, strict=True)}
        outs.append((inputs, relay.scatter_elements(*inputs, axis, reduction), arrays))
    function = relay.Function(
        [v for vs, _, _ in outs for v in vs], relay.Tuple([o[1] for o in outs])
    )
    library = relay.build(tvm.IRModule.from_expr(function), target)
    model = tvm.contrib.graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    model.run(**given)
    for number, (_, axis, _, reduction) in enumerate(cases):
        data, indices, updates = outs[number][2]
        wanted = scattered(data, axis, indices, updates, reduction)
        np.testing.assert_allclose(model.get_output(number).numpy(), wanted, rtol=1e-5)


@pytest.mark.parametrize("reduction", ["update", "add"])
def test_the_work_is_that_of_the_updates(reduction):
    """Not (elements) x (updates): no loop over the updates inside one over the data."""
    names = {"d": (64, 512), "i": (1, 8), "u": (8, 512)}
    d, i, u = (
        relay.var(n, shape=s, dtype="int64" if n == "i" else "float32") for n, s in names.items()
    )
    body = relay.scatter_nd(d, i, u, mode=reduction)
    function = relay.Function([d, i, u], body).with_attr("Primitive", 1)
    kernel = schedule_primitive(function, Target("llvm -mcpu=x86-64-v4"))
    assert kernel.choice.strategy.name == "scatter.stores"
    text = str(tvm.lower(kernel.schedule, list(kernel.args), simple_mode=True))
    assert text.count("for ") == 5  # vectors of the data; updates, vectors of their slices
