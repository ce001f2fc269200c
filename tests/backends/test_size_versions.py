"""Kernels of open sizes in versions: which there are, that all of them compute the same."""

from dataclasses import replace
from itertools import product as product_of

import numpy as np
import pytest

from slipway import relay, te
from slipway.arith.analyzer import Analyzer
from slipway.backends.backend import compile_target
from slipway.backends.cpu.best_together import tiles_by_rows
from slipway.backends.cpu.tile import fma
from slipway.backends.primitive import schedule_primitive
from slipway.backends.size_versions import _parts, in_versions, size_versions, sized_knobs
from slipway.backends.ways import ways_of
from slipway.compiler.kernels import _lowered, lower_kernel
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.expr import BufferLoad, SizeVar
from slipway.ir.interpreter.interpret import run as run_loops
from slipway.ir.ops import const
from slipway.ir.stmt import Evaluate, For, IfThenElse, SeqStmt
from slipway.ir.visit import substitute, walk
from slipway.relay.analysis.flat_positions import flat_positions
from slipway.relay.dims import Dim, SymbolDim
from slipway.relay.interpret import interpret
from slipway.transform.graph.fuse_ops import fuse_ops
from slipway.transform.graph.infer_type import infer_type

TARGET = compile_target("llvm -mcpu=x86-64-v3", None)
AVX512 = compile_target("llvm -mcpu=x86-64-v4", None)


def product(n, units=2):
    """One kernel: rows by packed weights, with an epilogue."""
    x, w = relay.var("x", shape=(n, 6)), relay.var("w", shape=(units, 6, 8))
    y = relay.nn.relu(relay.op.nn.contrib_dense_pack(x, w))
    return kernel(y)


def kernel(expr):
    function = fuse_ops(infer_type(expr.as_function()))
    return function.body.op


def ranges(function, target=TARGET):
    found = size_versions(function, target)
    return None if found is None else [(v.low, v.high) for v in found[1]]


@pytest.mark.parametrize(
    ("low", "high", "begins"),
    [
        (1, 8, (1, 2, 3, 4, 5, 6, 7, 8)),
        (1, 7, (1, 2, 3, 4, 5, 6, 7)),  # its upper end is a part of its own
        (1, 9, (1, 2, 3, 4, 5, 6, 7, 8, 9)),
        (1, 31, (1, 2, 3, 4, 5, 6, 7, 8, 16, 31)),
        (1, 32, (1, 2, 3, 4, 5, 6, 7, 8, 16, 32)),
        (1, 33, (1, 2, 3, 4, 5, 6, 7, 8, 16, 32)),  # but where it is large
        (2, 40, (2, 3, 4, 5, 6, 7, 8, 16, 32)),
        (5, 6, (5, 6)),
        (3, 3, (3,)),
        (100, 200, (100,)),
        (1, None, (1, 2, 3, 4, 5, 6, 7, 8, 16, 32)),
        (7, None, (7, 8, 16, 32)),
    ],
)
def test_where_parts_begin(low, high, begins):
    parts = _parts(low, high)
    assert [first for first, _ in parts] == list(begins)
    assert [last for _, last in parts] == [first - 1 for first in begins[1:]] + [high]


def test_a_part_knows_its_range():
    _, versions = size_versions(product(Dim("n", 1)), TARGET)
    for version in versions:
        if version.low == version.high:
            assert version.size == version.low
        else:
            dim = SymbolDim(version.size)
            assert (dim.low, dim.high) == (version.low, version.high)
    assert versions[-1].high is None
    assert versions[-1].size.high == -1  # the whole range, as types of arguments say it


def test_small_ranges_have_a_version_for_each_tile():
    assert ranges(product(Dim("n", 1, 8))) == [*((n, n) for n in range(1, 7)), (7, 8)]


def test_two_sizes_are_two_versions():
    assert ranges(product(Dim("n", 1, 2))) == [(1, 1), (2, 2)]


def test_parts_with_the_same_tile_are_one():
    found = ranges(product(Dim("n", 1, 500)))
    assert found[0] == (1, 1)
    assert found[-1][1] == 500
    assert len(found) <= 9


def test_what_is_scheduled_alike_for_all_sizes_has_one_version():
    x = relay.var("x", shape=(Dim("n", 1, 8), 6))
    assert ranges(kernel(relay.nn.relu(x + x))) is None
    assert ranges(product(4)) is None
    for moved in (relay.transpose(x), relay.reverse(x, 0), relay.nn.relu(relay.transpose(x))):
        assert ranges(kernel(moved)) is None  # versions for what is only moved would not pay
    image = relay.var("x", shape=(Dim("n", 1, 8), 3, 8, 8))
    taps = relay.const(np.ones((4, 3, 3, 3), np.float32))
    assert ranges(kernel(relay.nn.conv2d(image, taps))) is None


@pytest.mark.parametrize("high", [7, 8, 40])
def test_every_version_computes_what_the_operator_does(high):
    function = product(Dim("n", 1, high))
    loops = lower_kernel("f", function, TARGET)
    rng = np.random.default_rng(2)
    w = rng.standard_normal((2, 6, 8)).astype(np.float32)
    for size in {*range(1, 9), 13, high} if high > 8 else range(1, high + 1):
        x = rng.standard_normal((size, 6)).astype(np.float32)
        out = np.full((size, 16), np.nan, np.float32)
        run_loops(loops, x, w, out)
        np.testing.assert_allclose(out, interpret(function, x, w), rtol=1e-5, atol=1e-6)


def choices_of(loops):
    """Return the conditions on sizes by which a kernel chooses among its bodies."""
    return [n.condition for n in walk(loops.body) if isinstance(n, IfThenElse)]


def test_a_kernel_inside_a_loop_has_versions():
    """The rows of a recurrent product are those of the batch: one tile for all would have one."""
    n = Dim("n", 1, 8)
    state, step = relay.var("state", shape=(n, 16)), relay.var("step", shape=(n, 16))
    w = relay.var("w", shape=(2, 16, 8))
    new = relay.tanh(relay.op.nn.contrib_dense_pack(state, w) + step)
    body = relay.Function([state, step, w], relay.Tuple((new,)))
    x, first = relay.var("x", shape=(5, n, 16)), relay.var("first", shape=(n, 16))
    last = relay.scan(body, [first], [x], [relay.var("weight", shape=(2, 16, 8))])[0]
    function = fuse_ops(infer_type(last.as_function())).body.tuple_value.op
    loops = lower_kernel("f", function, TARGET)
    assert len(choices_of(loops)) >= 6


@pytest.mark.parametrize(("low", "high"), [(1, 40), (8, 15), (16, 100)])
def test_many_rows_take_the_tile_that_suits_them(low, high):
    """Tiles of eight rows would compute 16 for 9, and 24 for 17."""
    loops = lower_kernel("f", product(Dim("n", low, high), units=8), TARGET)
    assert len(choices_of(loops)) >= (8 if low == 1 else 1)


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("low", [8, 16])
def test_tiles_by_rows_compute_little_more_than_there_is(target, low):
    """Cycles by the model are within a tenth, over all sizes, of those of the best tile."""
    micro = fma(compile_target(f"llvm -mcpu={target}", None))
    found = tiles_by_rows(micro, Dim("n", low, 2 * low - 1), 16)
    if low < 16:
        micro = replace(micro, from_l1=True)
    ratios = []
    for rows in range(low, 2 * low):
        own = min(micro.all_cycles(tile, rows, 16) for tile in micro.tiles(low, 16))
        ratios.append(min(micro.all_cycles(k.knobs, rows, 16) for k in found) / own)
    assert sum(ratios) / len(ratios) < 1.1


def test_a_kernel_on_a_device_with_threads_stays_one():
    function = product(Dim("n", 1, 8))
    gpu = compile_target("opencl", None)
    assert size_versions(function, TARGET) is not None
    requested = []

    def lowered(part, _kernel):
        requested.append(part)
        return lower_kernel("f", part, TARGET)

    made = in_versions(function, gpu, lowered)
    assert requested == [function]
    assert isinstance(made.body, IfThenElse)  # what `lowered` gave, and nothing around it
    assert sum(isinstance(n, IfThenElse) for n in walk(made.body)) >= 5
    in_versions(function, TARGET, lowered)
    assert len(requested) == 1 + len(ranges(function))


def test_versions_share_the_arguments_and_the_size_of_the_kernel():
    """No buffer, pointer or size of a version's own is left: nothing would give it a value."""
    function = product(Dim("n", 1, 8))
    own = set()

    def lowered(part, _kernel):
        """Return loops that also read an argument through a view, and by its pointer."""
        func = lower_kernel("f", part, TARGET)
        buffers = [buffer for _, buffer in func.buffer_map]
        own.update(map(id, buffers), (id(buffer.data) for buffer in buffers))
        own.update(id(n) for b in buffers for n in walk(b) if isinstance(n, SizeVar))
        view = decl_buffer((2, *buffers[0].shape), "float32", "view", data=buffers[0].data)
        read = BufferLoad(view, tuple(const(0, "int32") for _ in view.shape))
        whole = BufferLoad(buffers[0], tuple(const(0, "int32") for _ in buffers[0].shape))
        pointer = buffers[0].access_ptr("r")
        return func.with_body(SeqStmt((*map(Evaluate, (read, whole, pointer)), func.body)))

    made = in_versions(function, TARGET, lowered)
    arguments = [buffer for _, buffer in made.buffer_map]
    theirs = {id(node) for buffer in arguments for node in walk(buffer)}
    left = [node for node in walk(made.body) if id(node) in own - theirs]
    assert not left
    views = [n for n in walk(made.body) if isinstance(n, Buffer) and n.name == "view"]
    assert len(views) == 7
    assert {id(view.data) for view in views} == {id(arguments[0].data)}
    reads = [n for n in walk(made.body) if isinstance(n, BufferLoad)]
    assert sum(read.buffer is arguments[0] for read in reads) == 7


def by_size(costs=(36, 40, 9)):
    """A convolution of four channels with its kernel in both forms, and an epilogue."""
    data = relay.var("x", shape=(1, 1, Dim("h", 1, 9), Dim("w", 1, 9), 4))
    direct = relay.var("direct", shape=(1, 1, 3, 3, 4, 4))
    tiles = relay.var("tiles", shape=(1, 6, 6, 1, 4, 4))
    made = relay.op.nn.contrib_conv2d_nchwc_by_size(
        data, direct, tiles, 1, "NCHW4c", "OIHW4i4o", costs=costs
    )
    return kernel(relay.nn.relu(made))


def test_open_sizes_choose_between_two_ways():
    """Each of them has a kernel of its own; both forms of weights are the whole kernel's."""
    function = by_size()
    found = ways_of(function)
    assert "winograd" in str(found.other)
    assert "winograd" not in str(found.one)
    loops = lower_kernel("f", function, TARGET)
    rng = np.random.default_rng(2)
    direct, tiles = (
        rng.standard_normal(t.checked_type.shape).astype("float32") for t in function.params[1:]
    )
    for height, width in ((1, 1), (2, 4), (1, 9), (9, 9), (4, 5)):
        x = rng.standard_normal((1, 1, height, width, 4)).astype("float32")
        cost = 36 * -(-height // 4) * -(-width // 4) + 40
        way = found.one if 9 * height * width < cost else found.other
        out = np.full((1, 1, height, width, 4), np.nan, np.float32)
        run_loops(loops, x, direct, tiles, out)
        np.testing.assert_allclose(out, interpret(way, x, direct, tiles), rtol=1e-4, atol=1e-4)


def test_versions_of_a_way_are_chosen_inside_of_it():
    loops = lower_kernel("f", by_size(), TARGET)
    body = loops.body
    assert isinstance(body, IfThenElse)
    assert "h" in str(body.condition)
    assert not any(isinstance(n, SizeVar) and n.name not in "hw" for n in walk(body))


def winograd(high):
    data = relay.var("x", shape=(1, 2, Dim("h", 1, high), Dim("w", 1, high), 8))
    kernel = relay.var("kernel", shape=(2, 6, 6, 2, 8, 8))
    made = relay.op.nn.contrib_conv2d_winograd_nchwc(data, kernel, 1, "NCHW8c")
    return made.as_function().with_attr("Primitive", 1)


def test_a_kernel_takes_the_cheapest_knobs_of_several():
    function = winograd(64)
    table = sized_knobs(function, TARGET)
    assert 1 < len({str(entry.knobs) for entry in table}) == len(table)
    seen = []

    def lowered(part, kernel):
        seen.append(kernel.choice.knobs)
        return lower_kernel("f", part, TARGET)

    loops = in_versions(function, TARGET, lowered)
    assert seen == [entry.knobs for entry in table]
    assert isinstance(loops.body, IfThenElse)
    sizes = {v.name: v for entry in table for v in walk(entry.cost) if isinstance(v, SizeVar)}
    taken = set()
    for high, wide in product_of((1, 5, 17, 33, 64), repeat=2):
        values = {sizes["h"]: const(high, "int32"), sizes["w"]: const(wide, "int32")}
        costs = [Analyzer().simplify(substitute(e.cost, values)).value for e in table]
        taken.add(costs.index(min(costs)))
    assert len(taken) > 1


def test_knobs_that_serve_the_whole_range_have_no_versions():
    """The cut ranges would have the same tiles, each with a kernel of its own."""
    data = relay.var("x", shape=(Dim("n", 1, 2), 8, Dim("h", 2, 16), Dim("w", 2, 16), 16))
    weights = relay.var("kernel", shape=(4, 6, 6, 8, 16, 16))
    target = compile_target("llvm -mcpu=znver4", None)
    function = kernel(relay.op.nn.contrib_conv2d_winograd_nchwc(data, weights, 1, "NCHW16c"))
    table = sized_knobs(function, target)
    seen = []

    def lowered(part, made):
        seen.append(made.choice.knobs)
        return lower_kernel("f", part, target)

    in_versions(function, target, lowered)
    assert seen == [entry.knobs for entry in table]
    assert len(seen) == 1


def test_an_image_of_few_tiles_is_one_block():
    """Cores share its channels; in blocks of a row of tiles each row would be padded for itself."""
    n, h, w = Dim("n", 1, 2), Dim("h", 2, 16), Dim("w", 2, 16)
    data = relay.var("x", shape=(n, 8, h, w, 16))
    weights = relay.var("kernel", shape=(8, 6, 6, 8, 16, 16))
    made = relay.op.nn.contrib_conv2d_winograd_nchwc(data, weights, 1, "NCHW16c")
    table = sized_knobs(kernel(made), AVX512)
    ten = const(10, "int32")
    values = {v: ten for entry in table for v in walk(entry.cost) if isinstance(v, SizeVar)}
    costs = [Analyzer().simplify(substitute(e.cost, values)).value for e in table]
    assert table[costs.index(min(costs))].knobs.block_rows == 4


def test_rows_of_an_image_choose_their_tile():
    """Forty positions are five tiles of eight or four of ten."""
    data = relay.var("x", shape=(1, 4, Dim("h", 32, 160), Dim("w", 32, 160), 16))
    weights = relay.var("kernel", shape=(8, 4, 3, 3, 16, 16))
    made = relay.op.nn.contrib_conv2d_nchwc(data, weights, (2, 2), (1, 1, 1, 1))
    rows = {entry.knobs.rows for entry in sized_knobs(kernel(made), AVX512)}
    assert len(rows) > 1


def test_a_block_of_tiles_pads_its_own_rows():
    """Which row a tile of open columns lies in has a bound, so that no whole image is copied."""
    function = winograd(64)
    for entry in sized_knobs(function, TARGET):
        kernel = schedule_primitive(function, TARGET, entry.knobs)
        pads = [
            node.extent.value
            for node in walk(te.lower(kernel.schedule, list(kernel.args)).body)
            if isinstance(node, For) and node.loop_var.name == "i2"
        ]
        assert pads
        rows = min(entry.knobs.block_rows, 16)
        assert max(pads) <= 4 * rows + 2


def pointwise(height, width, image=True):
    """A convolution of one tap, a residual of the same image (or one for all), and an epilogue."""
    data = relay.var("x", shape=(2, 2, height, width, 8))
    weight = relay.var("weight", shape=(3, 2, 1, 1, 8, 8))
    size = (height, width) if image else (1, 1)
    residual = relay.var("residual", shape=(2, 3, *size, 8))
    made = relay.op.nn.contrib_conv2d_nchwc(data, weight, padding=0, data_layout="NCHW8c")
    return kernel(relay.nn.relu(made + residual))


@pytest.mark.parametrize("image", [True, False])
@pytest.mark.parametrize(("height", "width"), [(Dim("h", 1, 9), Dim("w", 1, 9)), (3, Dim("w", 1))])
def test_a_convolution_of_one_tap_has_versions_by_its_number_of_positions(height, width, image):
    function = pointwise(height, width, image)
    requested = []

    def lowered(part, made):
        requested.append(part)
        return _lowered("f", part, made, target=TARGET)

    loops = in_versions(function, TARGET, lowered)
    assert len(requested) <= 7
    assert all(part.params[0].checked_type.shape[2] == 1 for part in requested)
    assert [b.shape for _, b in loops.buffer_map] == [
        b.shape for _, b in lower_kernel("f", function, TARGET).buffer_map
    ]
    rng = np.random.default_rng(2)
    for h, w in ((1, 1), (2, 3), (9, 1), (5, 7), (9, 9)) if height != 3 else ((3, 1), (3, 20)):
        shapes = ((2, 2, h, w, 8), (3, 2, 1, 1, 8, 8), (2, 3, *((h, w) if image else (1, 1)), 8))
        inputs = [rng.standard_normal(shape).astype("float32") for shape in shapes]
        out = np.full((2, 3, h, w, 8), np.nan, np.float32)
        run_loops(loops, *inputs, out)
        np.testing.assert_allclose(out, interpret(function, *inputs), rtol=1e-4, atol=1e-5)


def test_only_images_that_no_window_reads_are_flat():
    h, w = Dim("h", 1, 9), Dim("w", 1, 9)
    assert flat_positions(pointwise(h, w)) is not None
    assert flat_positions(pointwise(4, 5)) is None
    data, weight = relay.var("x", shape=(1, 1, h, w, 8)), relay.var("k", shape=(1, 1, 3, 3, 8, 8))
    window = relay.op.nn.contrib_conv2d_nchwc(data, weight, padding=1, data_layout="NCHW8c")
    assert flat_positions(kernel(window)) is None
    weight = relay.var("k", shape=(1, 1, 1, 1, 8, 8))
    made = relay.op.nn.contrib_conv2d_nchwc(data, weight, padding=0, data_layout="NCHW8c")
    columns = relay.var("columns", shape=(1, 1, 1, w, 8))  # one for each column of the image
    assert flat_positions(kernel(relay.nn.relu(made + columns))) is None
