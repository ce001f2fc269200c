"""Rows made of stretches of others: repeated, and padded with what lies near their ends."""

import re

import pytest
from kernel_check import TARGETS, run, var

from slipway import IRModule, relay


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize(
    ("shape", "widths"),
    [
        ((3, 130), ((0, 1), (2, 3))),
        ((2, 3, 127), ((0, 0), (1, 2), (1, 1))),
        ((2, 96), ((0, 0), (0, 31))),
        ((200,), ((17, 0),)),
    ],
)
def test_padded_rows(target, mode, shape, widths):
    body = relay.nn.pad(var("x", *shape), widths, pad_mode=mode)
    assert run(body, target) == "pad.rows"


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize(
    ("shape", "reps"),
    [
        ((4, 3, 70), (1, 1, 3)), ((4, 5, 13), (1, 3, 1)), ((4, 5, 7), (2, 3, 1)), ((40,), (2, 3)),
        ((2, 1, 33), (1, 4, 1)), ((3, 16), (5, 1)), ((2, 200), (3, 2)),
        ((9, 40, 41), (3, 1, 1)), ((5, 2003), (5, 1)),
    ],
)  # fmt: skip
def test_repeated_rows(target, shape, reps):
    body = relay.tile(var("x", *shape), reps)
    assert run(body, target) == "tile.rows"


def test_tasks_are_stretches_of_a_repetition():
    """A vector is a load and a store; to find its place takes no division."""
    body = relay.tile(var("x", 33, 64, 64), (3, 1, 1))
    library = relay.build(IRModule.from_expr(body), target="llvm -mcpu=haswell")
    blocks = re.split(r"\n\.?L?\w+:", library.get_lib().get_source("asm"))
    (copying,) = [block for block in blocks if "vmovups\t%ymm" in block]
    assert "imul" not in copying
    assert copying.count("\n\t") < 12


@pytest.mark.parametrize(
    "body",
    [
        relay.nn.pad(var("x", 3, 20), ((0, 0), (1, 1)), pad_mode="edge"),  # shorter than vectors
        relay.nn.pad(var("x", 3, 200), ((1, 1), (0, 0)), pad_mode="edge"),
        relay.nn.pad(var("x", 3, 200), ((1, 1), (2, -3)), pad_mode="edge"),
        relay.tile(var("x", 3, 5), (1, 4)),
        relay.tile(var("x", 3, 50), (1, 1)),
    ],
)
def test_others_are_elementwise(body):
    assert run(body, "llvm") == "loops.elementwise"


@pytest.mark.parametrize("moved", [lambda y: relay.transpose(y), lambda y: relay.reshape(y, (-1,))])
@pytest.mark.parametrize(
    "made",
    [
        lambda x: relay.tile(x, (1, 3)),
        lambda x: relay.nn.pad(x, ((0, 0), (4, 5)), pad_mode="reflect"),
    ],
)
def test_what_follows_in_the_kernel(made, moved):
    x = var("x", 6, 100)
    run(moved(relay.exp(made(relay.tanh(x)))), "llvm")
    run(relay.add(made(x), var("y", 6, 1)), "llvm")
