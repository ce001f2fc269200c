"""Rows made of stretches of others: repeated, and padded with what lies near their ends."""

import re

import numpy as np
import pytest
from kernel_check import TARGETS, run, var

from slipway import IRModule, TVMError, relay
from slipway.backends.primitive import schedule_primitive
from slipway.contrib.graph_executor import GraphModule
from slipway.relay.dims import Dim
from slipway.target import Target


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize(
    ("shape", "widths"),
    [
        ((3, 20), ((0, 0), (1, 1))),
        ((2, 5, 4), ((1, 0), (2, 1), (2, 3))),
        ((4, 3, 61), ((0, 0), (1, 2), (1, 2))),
        ((5, 13), ((0, 2), (6, 0))),
        ((4, 9, 7, 1), ((1, 0), (0, 0), (1, 3), (0, 0))),
        ((2, 11, 13, 3), ((0, 0), (2, 1), (1, 2), (0, 0))),
        ((9, 3), ((3, 2), (0, 0))),
        ((3, 130), ((0, 1), (2, 3))),
        ((2, 3, 127), ((0, 0), (1, 2), (1, 1))),
        ((2, 96), ((0, 0), (0, 31))),
        ((200,), ((17, 0),)),
    ],
)
def test_padded_rows(target, mode, shape, widths):
    body = relay.nn.pad(var("x", *shape), widths, pad_mode=mode)
    assert run(body, target) == "pad.rows"


MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("mode", MODES)
def test_padded_rows_of_open_length(target, mode):
    """At sizes whose tails are none, one element, and pieces of every length."""
    widths = ((0, 0), (2, 1), (1, 3))
    x = var("x", Dim("n", 1, 3), Dim("h", 3, 20), Dim("w", 4, 90))
    body = relay.add(relay.nn.pad(x, widths, 1.5, mode), relay.const(1.0))
    module = GraphModule(relay.build(IRModule.from_expr(body), target)["default"]())
    for shape in ((1, 3, 4), (3, 20, 90), (2, 5, 16), (1, 7, 17), (3, 4, 31), (2, 9, 63)):
        data = np.random.default_rng(0).standard_normal(shape).astype("float32")
        module.run(x=data)
        value = {"constant_values": 1.5} if mode == "constant" else {}
        wanted = np.pad(data, widths, mode, **value) + np.float32(1)
        np.testing.assert_array_equal(module.get_output(0).numpy(), wanted)


@pytest.mark.parametrize("mode", MODES)
def test_vectors_of_open_rows_gather_nothing(mode):
    x = var("x", Dim("n", 1, 4), 32, Dim("h", 32, 96), Dim("w", 32, 96))
    body = relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), pad_mode=mode)
    function = body.as_function().with_attr("Primitive", 1)
    target = "llvm -mcpu=x86-64-v4"
    assert schedule_primitive(function, Target(target)).implementation == "pad.rows"
    library = relay.build(IRModule.from_expr(body), target)
    asm = library.get_lib().get_source("asm")
    assert "vgather" not in asm
    assert re.search(r"vmovups\s.*%[yz]mm", asm)


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int64"])
@pytest.mark.parametrize("mode", MODES)
def test_known_rows_are_cut_where_the_padding_ends(mode, dtype):
    """No lane asks where it is, and none is loaded alone."""
    body = relay.nn.pad(var("x", 9, 11, 56, dtype=dtype), ((0, 0), (2, 1), (1, 2)), 3, mode)
    target = "llvm -mcpu=x86-64-v4"
    assert run(body, target) == "pad.rows"
    asm = relay.build(IRModule.from_expr(body), target).get_lib().get_source("asm")
    assert not re.search(r"vp?gather", asm)


def test_no_more_is_reflected_than_is_left():
    assert relay.nn.pad(var("x", 5), ((-2, 2),), pad_mode="reflect").checked_type.shape == (5,)
    with pytest.raises(TVMError, match="reflects 3 of 3 elements on axis 0"):
        relay.nn.pad(var("x", 5), ((-2, 3),), pad_mode="reflect")
    with pytest.raises(TVMError, match="reflects 4 of 3 elements on axis 0"):
        relay.nn.pad(var("x", 5), ((4, -2),), pad_mode="symmetric")


def test_mirrored_padding_of_open_axes():
    x = var("x", Dim("h", 3, 40), Dim("w", 3, 40))
    for mode in ("SYMMETRIC", "REFLECT"):
        body = relay.nn.mirror_pad(x, ((1, 2), (2, 0)), mode)
        module = GraphModule(relay.build(IRModule.from_expr(body), "llvm")["default"]())
        for shape in ((3, 3), (40, 40), (5, 17)):
            data = np.random.default_rng(1).standard_normal(shape).astype("float32")
            module.run(x=data)
            wanted = np.pad(data, ((1, 2), (2, 0)), mode.lower())
            np.testing.assert_array_equal(module.get_output(0).numpy(), wanted)
    with pytest.raises(TVMError, match=r"reaches beyond|h < 4.*h in 3\.\.40"):
        relay.nn.mirror_pad(x, ((4, 0), (0, 0)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("widths", [(2, -1), (-1, 2), (1, -3), (-2, 2), (3, -1)])
def test_what_is_cropped_is_not_continued(mode, widths):
    low, high = widths
    data = np.arange(5, dtype="float32")
    cropped = data[max(-low, 0) : 5 - max(-high, 0)]
    wanted = np.pad(cropped, (max(low, 0), max(high, 0)), mode)
    body = relay.nn.pad(var("x", 5), (widths,), pad_mode=mode)
    module = GraphModule(relay.build(IRModule.from_expr(body), "llvm")["default"]())
    module.run(x=data)
    np.testing.assert_array_equal(module.get_output(0).numpy(), wanted)


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
        relay.nn.pad(var("x", 30, 3), ((0, 0), (1, 1)), pad_mode="edge"),
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
