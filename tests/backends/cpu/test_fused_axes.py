"""Neighbouring axes that no read tells apart are one loop, and give the same numbers."""

import numpy as np
import pytest

import slipway
from slipway import relay, te
from slipway.backends.cpu.schedules.generic import fused_neighbours
from slipway.backends.primitive import schedule_primitive
from slipway.ir.function import IRModule
from slipway.relay.dims import Dim
from slipway.relay.expr import Function, Var
from slipway.relay.types import TensorType
from slipway.target import Target


def runs_of(make, *shapes):
    """The runs of axes of what is made of placeholders, all but the last operation inlined."""
    ins = [te.placeholder(s, name=f"p{i}") for i, s in enumerate(shapes)]
    made = make(*ins)
    outs = made if isinstance(made, list) else [made]
    schedule = te.create_schedule(outs[-1].op)
    for tensor in outs[:-1]:
        schedule[tensor].compute_inline()
    return fused_neighbours(schedule, outs[-1])


BLOCKED, CHANNELS = (2, 6, 5, 7, 16), (1, 6, 1, 1, 16)


def scaled(x, b):
    first = te.compute(BLOCKED, lambda n, c, h, w, k: x(n, c, h, w, k) * b(0, c, 0, 0, k))
    return [first, te.compute(BLOCKED, lambda *i: te.max(first(*i), te.const(0, "float32")))]


def joined(x, y):
    return te.compute(
        (2, 10, 5, 7, 16),
        lambda n, c, h, w, k: te.if_then_else(c < 6, x(n, c, h, w, k), y(n, c - 6, h, w, k)),
    )


def moved(x):
    inner = te.compute((2, 5, 7, 6), lambda n, h, w, c: x(n, c, h, w))
    return [inner, te.compute((2, 5, 7, 6), lambda *i: inner(*i) + te.const(1, "float32"))]


@pytest.mark.parametrize(
    ("make", "shapes", "runs"),
    [
        (scaled, (BLOCKED, CHANNELS), [(0, 1), (1, 2), (2, 4), (4, 5)]),
        (joined, (BLOCKED, (2, 4, 5, 7, 16)), [(0, 1), (1, 2), (2, 5)]),
        (moved, ((2, 6, 5, 7),), [(0, 1), (1, 3), (3, 4)]),
        # A part of an index, a condition, and extents that differ.
        (
            lambda x: te.compute((4, 5, 6), lambda i, j, k: x(i, j, 5 - k)),
            ((4, 5, 6),), [(0, 2), (2, 3)],
        ),
        (
            lambda x: te.compute(
                (4, 5, 6), lambda i, j, k: te.if_then_else(j < 3, x(i, j, k), x(i, j, k) + i)
            ),
            ((4, 5, 6),), [(0, 1), (1, 2), (2, 3)],
        ),
        (
            lambda x: te.compute((4, 5, 6), lambda i, j, k: x(i, j, k)),
            ((4, 5, 8),), [(0, 2), (2, 3)],
        ),
        (lambda x: te.compute((4, 5, 6), lambda i, j, k: x(k)), ((6,),), [(0, 2), (2, 3)]),
        (lambda x: te.compute((4, 5), lambda i, j: x(j, i)), ((5, 4),), [(0, 1), (1, 2)]),
    ],
)  # fmt: skip
def test_runs_of_axes(make, shapes, runs):
    assert runs_of(make, *shapes) == runs


def built(function, arrays):
    module = relay.build(IRModule((("main", function),)), target="llvm")
    import slipway
    from slipway.contrib import graph_executor

    run = graph_executor.GraphModule(module["default"](slipway.cpu()))
    for number, array in enumerate(arrays):
        run.set_input(f"x{number}", array)
    run.run()
    return run.get_output(0).numpy()


@pytest.mark.parametrize("shape", [(1, 3, 5, 7, 16), (2, 13, 1, 17, 3), (3, 2, 33, 1, 8)])
def test_the_same_numbers(shape):
    rng = np.random.default_rng(sum(shape))
    shapes = [shape, (1, shape[1], 1, 1, shape[4]), (*shape[:1], 5, *shape[2:])]
    arrays = [rng.standard_normal(s).astype("float32") for s in shapes]
    x, b, y = (Var(f"x{i}", TensorType(s, "float32")) for i, s in enumerate(shapes))
    joined = relay.concatenate((relay.nn.relu(relay.multiply(x, b)), relay.negative(y)), axis=1)
    function = Function((x, b, y), joined)
    want = relay.interpret.interpret(function, *arrays)
    np.testing.assert_array_equal(built(function, arrays), want)


def joined_blocks(n, height, width):
    """Two blocked tensors one after the other along their channels."""
    both = [
        relay.var(name, shape=(n, blocks, height, width, 16))
        for name, blocks in (("a", 2), ("b", 4))
    ]
    plain = [relay.layout_transform(x, "NCHW16c", "NCHW") for x in both]
    return Function(both, relay.layout_transform(relay.concatenate(plain, 1), "NCHW", "NCHW16c"))


def test_cores_share_rows_of_an_open_image_without_divisions():
    """Tasks of fused channels and rows divided by the height at each row: 1.3 times the time."""
    function = joined_blocks(Dim("n", 1, 2), Dim("h", 2, 128), Dim("w", 2, 128))
    module = relay.transform.InferType()(IRModule.from_expr(function))
    primitive = module["main"].with_attr("Primitive", 1)
    kernel = schedule_primitive(primitive, Target("llvm -mcpu=znver4"))
    text = str(te.lower(kernel.schedule, list(kernel.args)))
    assert "parallel" in text
    assert "// h" not in text
    assert "% h" not in text

    rng = np.random.default_rng(0)
    model = slipway.compile(function)
    for n, height, width in ((1, 2, 2), (2, 5, 128), (1, 128, 3), (2, 37, 19)):
        a, b = (rng.random((n, c, height, width, 16), np.float32) for c in (2, 4))
        np.testing.assert_array_equal(model(a, b), np.concatenate([a, b], 1))
