"""Stages that read across memory: the numbers, and that whole vectors are read and written."""

import re

import numpy as np
import pytest
from kernel_check import TARGETS, run, var

import slipway
from slipway import IRModule, relay
from slipway.backends.primitive import schedule_primitive
from slipway.compiler.kernels import lower_kernel
from slipway.contrib.graph_executor import GraphModule
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.visit import walk
from slipway.relay.interpret import interpret
from slipway.target import Target


def shuffles(body, target="llvm -mcpu=x86-64-v4"):
    function = body.as_function().with_attr("Primitive", 1)
    lowered = lower_kernel("kernel", function, Target(target))
    return sum(isinstance(node, E.Shuffle) for node in walk(lowered.body))


TRANSPOSED = {
    "two axes": lambda: relay.transpose(var("x", 3, 33, 50), (0, 2, 1)),
    "to channels last": lambda: relay.transpose(var("x", 2, 20, 7, 9), (0, 2, 3, 1)),
    "from channels last": lambda: relay.transpose(var("x", 1, 9, 11, 37), (0, 3, 1, 2)),
    "reversed": lambda: relay.transpose(var("x", 17, 5, 40), (2, 1, 0)),
    "into blocks": lambda: relay.layout_transform(var("x", 1, 32, 7, 9), "NCHW", "NCHW16c"),
    "out of blocks": lambda: relay.layout_transform(var("x", 1, 2, 7, 9, 16), "NCHW16c", "NCHW"),
    "out of filled blocks": lambda: relay.strided_slice(
        relay.layout_transform(var("x", 1, 2, 7, 9, 16), "NCHW16c", "NCHW"), [0], [24], axes=[1]
    ),
    "before axes of one": lambda: relay.transpose(var("x", 30, 20, 50, 1, 1), (2, 0, 1, 3, 4)),
    "with arithmetic": lambda: (
        relay.nn.relu(relay.transpose(var("x", 3, 33, 50), (0, 2, 1))) * var("y", 50, 1)
    ),
}


def filled_groups(dtype, groups, filters, held):
    """Channels last of groups that were padded, put first without their padding."""
    whole = relay.reshape(var("x", 1, 9, 11, groups * held, dtype=dtype), (1, 9, 11, groups, held))
    wanted = relay.strided_slice(whole, [0], [filters], axes=[4])
    return relay.transpose(relay.reshape(wanted, (1, 9, 11, groups * filters)), (0, 3, 1, 2))


TRANSPOSED["of filled groups"] = lambda: filled_groups("float32", 3, 37, 48)


def quantized(data):
    return relay.qnn.op.quantize(data, relay.const(0.05), relay.const(3), out_dtype="int8")


def real(data):
    return relay.qnn.op.dequantize(data, relay.const(0.05), relay.const(3))


NARROW_ELEMENTS = {
    "bytes": lambda: relay.transpose(var("x", 3, 33, 50, dtype="int8"), (0, 2, 1)),
    "bytes to channels last": lambda: relay.transpose(
        var("x", 2, 20, 7, 9, dtype="uint8"), (0, 2, 3, 1)
    ),
    "few bytes": lambda: relay.transpose(var("x", 9, 100, dtype="int8"), (1, 0)),
    "halves": lambda: relay.transpose(var("x", 37, 50, dtype="int16"), (1, 0)),
    "float16": lambda: relay.transpose(var("x", 37, 50, dtype="float16"), (1, 0)),
    "of filled groups, real": lambda: real(filled_groups("int8", 4, 50, 64)),
    "of two filled groups": lambda: filled_groups("uint8", 2, 17, 32),
    "quantised": lambda: relay.transpose(quantized(var("x", 2, 13, 17, 65)), (0, 2, 3, 1)),
    "real again": lambda: real(relay.transpose(var("x", 1, 9, 7, 64, dtype="int8"), (0, 3, 1, 2))),
}


# Planes that become the few channels of pixels.
NARROW = {
    "an image": lambda: relay.transpose(var("x", 1, 3, 17, 29), (0, 2, 3, 1)),
    "a long image": lambda: relay.transpose(var("x", 3, 131, 96), (1, 2, 0)),
    "pairs": lambda: relay.transpose(var("x", 2, 301), (1, 0)),
    "with arithmetic": lambda: (
        relay.transpose(var("x", 2, 3, 20, 33), (0, 2, 3, 1)) * var("y", 3) + var("z", 3)
    ),
    "with a function": lambda: relay.exp(relay.transpose(var("x", 3, 20, 33), (1, 2, 0))),
    "reversed": lambda: relay.transpose(var("x", 3, 20, 33), (2, 1, 0)),
}


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize("name", [*TRANSPOSED, *NARROW, *NARROW_ELEMENTS])
def test_numbers(name, target):
    run((TRANSPOSED | NARROW | NARROW_ELEMENTS)[name](), target)


@pytest.mark.parametrize("cpu", ["haswell", "x86-64-v4"])
@pytest.mark.parametrize("name", ["an image", "a long image", "pairs", "with arithmetic"])
def test_pixels_are_stored_without_looking_for_each_element(name, cpu):
    """Vectors over several pixels would take a division for each lane."""
    module = IRModule.from_expr(NARROW[name]())
    library = relay.build(module, target=f"llvm -mcpu={cpu}")
    assembly = library.get_lib().get_source("asm")
    assert "\tvdivp" not in assembly
    assert "\tvgather" not in assembly


@pytest.mark.parametrize("name", [*TRANSPOSED, *NARROW_ELEMENTS])
def test_tiles_are_turned_in_registers(name):
    made = (TRANSPOSED | NARROW_ELEMENTS)[name]()
    assert shuffles(made) >= 8  # eight lanes take 24, four take 8


def test_what_runs_along_memory_is_left_alone():
    assert shuffles(relay.transpose(var("x", 6, 5, 64), (1, 0, 2))) == 0
    assert shuffles(relay.nn.relu(var("x", 32, 64))) == 0
    assert shuffles(relay.transpose(var("x", 64, 3), (1, 0))) == 0  # too narrow


def test_c_has_no_vectors_to_turn():
    assert shuffles(TRANSPOSED["two axes"](), "c") == 0


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize("channels", [2, 3, 4, 5])
def test_few_channels_are_taken_apart(target, channels):
    run(relay.transpose(var("x", 1, 9, 37, channels), (0, 3, 1, 2)), target)


H, W, N = relay.Dim("h", 9, 40), relay.Dim("w", 16, 70), relay.Dim("n", 1, 3)
OPEN = {
    "into blocks": lambda: relay.layout_transform(var("x", N, 24, H, W), "NCHW", "NCHW8c"),
    "out of blocks": lambda: relay.layout_transform(var("x", N, 3, H, W, 8), "NCHW8c", "NCHW"),
    "to channels last": lambda: relay.transpose(var("x", N, 24, H, W), (0, 2, 3, 1)),
    "from channels last": lambda: relay.transpose(var("x", N, H, W, 24), (0, 3, 1, 2)),
    "two open axes": lambda: relay.transpose(var("x", N, H, W), (0, 2, 1)),
    "short ones": lambda: relay.transpose(var("x", N, relay.Dim("t", 1, 40), W), (0, 2, 1)),
}


@pytest.mark.parametrize("name", OPEN)
def test_open_sizes_are_read_in_whole_vectors_too(name):
    body = OPEN[name]()
    assert shuffles(body, "llvm -mcpu=x86-64-v3") > 0
    function = body.as_function()
    module = slipway.compile(slipway.IRModule.from_expr(function), "llvm", quiet=True)
    shape = function.params[0].checked_type.shape
    rng = np.random.default_rng(0)
    for n, h, w in ((1, 9, 16), (3, 40, 70), (2, 17, 33), (1, 12, 64)):
        sizes = {"n": n, "h": h, "t": h, "w": w}
        x = rng.random([sizes.get(str(d), d) for d in shape], dtype="float32")
        np.testing.assert_array_equal(module(x), interpret(function, x))


def test_the_shortest_sizes_are_right_as_well():
    """Below a vector there is no last tile to shift: element by element."""
    t = relay.Dim("t", 1, 40)
    function = relay.transpose(var("x", 5, t, 24), (0, 2, 1)).as_function()
    module = slipway.compile(slipway.IRModule.from_expr(function), "llvm", quiet=True)
    for length in (1, 2, 7, 8, 9, 40):
        x = np.random.default_rng(0).random((5, length, 24), dtype="float32")
        np.testing.assert_array_equal(module(x), x.transpose(0, 2, 1))


@pytest.mark.parametrize("moved", [(0, 2, 1, 3), (2, 0, 1, 3)])
def test_heads_of_an_open_length_that_begins_at_one_are_copied_in_vectors(moved):
    """Whether an axis has several elements is a matter of time only, and need not be known."""
    n, t = relay.Dim("n", 1, 4), relay.Dim("t", 1, 128)
    x = relay.var("x", shape=(n, t, 64))
    body = relay.transpose(relay.reshape(x, (n, t, 2, 32)), moved)
    function = body.as_function().with_attr("Primitive", 1)
    target = Target("llvm -mcpu=x86-64-v3")
    assert schedule_primitive(function, target).implementation == "loops.elementwise"
    lowered = lower_kernel("kernel", function, target)
    stores = [node for node in walk(lowered.body) if isinstance(node, S.BufferStore)]
    assert stores
    assert all(s.value.lanes > 1 for s in stores)
    module = GraphModule(relay.build(IRModule.from_expr(body), "llvm")["default"]())
    for rows, length in ((1, 1), (4, 128), (2, 33)):
        data = np.random.default_rng(0).standard_normal((rows, length, 64)).astype("float32")
        module.run(x=data)
        wanted = data.reshape(rows, length, 2, 32).transpose(moved)
        np.testing.assert_array_equal(module.get_output(0).numpy(), wanted)


OPEN_COPIES = {
    "into blocks": ((1, 32), (0, 1, 2, 3), ("NCHW", "NCHW16c")),
    "out of blocks": ((1, 2, 16), (0, 1, 3, 4, 2), ("NCHW16c", "NCHW")),
    "to channels last": ((1, 20), (0, 1, 2, 3), ("NCHW", "NHWC")),
    "from channels last": ((1, 20), (0, 2, 3, 1), ("NHWC", "NCHW")),
}


@pytest.mark.parametrize("name", OPEN_COPIES)
def test_images_that_may_have_one_position_are_exchanged_in_registers(name):
    """A whole tile asks nothing but whether it is one: a position below h * w lies in a row."""
    (_, *channels), order, layouts = OPEN_COPIES[name]
    n, h, w = relay.Dim("n", 1, 3), relay.Dim("h", 1, 24), relay.Dim("w", 1, 80)

    def shape(n, h, w):
        given = (n, channels[0], h, w, *channels[1:])
        if len(channels) == 2:
            return given
        return tuple(given[a] for a in order)

    body = relay.layout_transform(relay.var("x", shape=shape(n, h, w)), *layouts)
    assert shuffles(body) > 0
    function = body.as_function().with_attr("Primitive", 1)
    lowered = lower_kernel("kernel", function, Target("llvm -mcpu=x86-64-v4"))
    whole = next(s for s in walk(lowered.body) if isinstance(s, S.IfThenElse)).then_case
    assert not any(isinstance(node, S.IfThenElse) for node in walk(whole))
    module = GraphModule(relay.build(IRModule.from_expr(body), "llvm")["default"]())
    for size in ((1, 1, 1), (2, 1, 5), (1, 3, 5), (3, 24, 80), (1, 4, 16), (2, 7, 33)):
        x = np.random.default_rng(0).standard_normal(shape(*size)).astype("float32")
        module.run(x=x)
        fixed = relay.var("x", shape=x.shape)
        wanted = interpret(relay.layout_transform(fixed, *layouts).as_function(), x)
        np.testing.assert_array_equal(module.get_output(0).numpy(), wanted)


@pytest.mark.parametrize("dtype", ["int8", "float16"])
@pytest.mark.parametrize("channels", [13, 33])
def test_a_padded_row_of_a_narrow_type_is_one_vector(dtype, channels):
    """Of bytes to 33 channels in blocks of 16 vectors of 64 took eight times as long."""
    x = var("x", 2, channels, 9, 11, dtype=dtype)
    padded = relay.nn.pad(x, ((0, 0), (0, -channels % 16), (0, 0), (0, 0)))
    body = relay.layout_transform(padded, "NCHW", "NCHW16c")
    kernel = schedule_primitive(
        body.as_function().with_attr("Primitive", 1), Target("llvm -mcpu=x86-64-v4")
    )
    text = str(slipway.lower(kernel.schedule, list(kernel.args), simple_mode=True))
    assert re.findall(r"vectorized for \S+ in range\((\d+)\)", text) == ["16"]
    run(body, "llvm")
