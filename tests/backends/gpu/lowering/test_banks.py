"""Banks of shared memory: what the simulated device counts, and what layouts do about it."""

import numpy as np
import pytest
import run_kernels
from run_kernels import axis, random
from tests.backends.gpu import test_kernels

import slipway as tvm
from slipway import relay, te
from slipway.backends.gpu import banks
from slipway.backends.gpu.schedules import matrix
from slipway.contrib import graph_executor
from slipway.errors import LoweringError, ScheduleError
from slipway.target import Target

TARGET = Target("cuda -arch=sm_80 -max_threads_per_block=1024", host="llvm")


@pytest.fixture
def simulated(simulators, monkeypatch):
    """A simulated GPU that counts passes over the banks."""
    found = simulators("ll")
    monkeypatch.setattr(run_kernels, "current", (TARGET, found))
    found.enter()
    found.banks = []
    yield found
    found.banks = None
    found.leave()


def transposed(pad=0, dtype="float32", together=1):
    """A tile of 32 x 32 that rows of threads fill and columns of threads read."""
    a = te.placeholder((32, 32), dtype, name="A")
    b = te.compute((32, 32), lambda i, j: a[j, i], name="B")
    s = te.create_schedule(b.op)
    tile = s.cache_read(a, "shared", [b])
    i, j = s[b].op.axis
    s[b].bind(i, axis("threadIdx.y"))
    s[b].bind(j, axis("threadIdx.x"))
    s[tile].compute_at(s[b], j)  # filled once, by all threads
    row, column = s[tile].op.axis
    if together > 1:
        column, several = s[tile].split(column, factor=together)
        s[tile].vectorize(several)
    s[tile].bind(row, axis("threadIdx.y"))
    s[tile].bind(column, axis("threadIdx.x"))
    if pad:
        s[tile].storage_align(row, 32, pad)
    return s, [a, b]


def counted(simulated, schedule, args):
    x = (random(*(int(n) for n in args[0].shape)) * 64).astype(args[0].dtype)
    function = run_kernels.built(schedule, args)
    found = run_kernels.run(function, tvm.cuda(0), [x], (32, 32), args[0].dtype)
    np.testing.assert_array_equal(found, x.T)
    return simulated.banks[-1]


def test_columns_of_a_tile_lie_in_one_bank_unless_rows_are_apart(simulated):
    """Requests and passes as NVIDIA's documents count them."""
    assert counted(simulated, *transposed()) == (32, 32 * 32, 32, 32)
    assert counted(simulated, *transposed(1)) == (32, 32, 32, 32)
    assert counted(simulated, *transposed(2)) == (32, 64, 32, 32)
    # Four bytes hold two halves: of 16 words a row, columns are in two banks.
    assert counted(simulated, *transposed(dtype="int16")) == (32, 32 * 16, 32, 32)
    # Eight bytes of each thread: two requests of half a warp.
    assert counted(simulated, *transposed(dtype="float64")) == (64, 64 * 16, 64, 64)
    assert counted(simulated, *transposed(1, "float64")) == (64, 64, 64, 64)
    # Four elements at once; 8 threads of a row, each warp fills a row.
    assert counted(simulated, *transposed(4, together=4))[2:] == (32, 32)


def test_the_cost_model_counts_what_the_simulated_device_counts(simulated):
    """Reading columns of rows that are some elements apart."""
    for pad, dtype in (
        (0, "float32"),
        (3, "float32"),
        (4, "float32"),
        (2, "float64"),
        (6, "int16"),
    ):
        size = np.dtype(dtype).itemsize
        seen = counted(simulated, *transposed(pad, dtype))
        apart = [lane * (32 + pad) * size for lane in range(32)]
        assert seen.load_passes / seen.loads == banks.passes(apart, size)


def operands(dtype, *shapes):
    return [relay.var(f"x{n}", shape=shape, dtype=dtype) for n, shape in enumerate(shapes)]


def tile(strategy, *values):
    """Knobs of a dense layer with a tile."""
    names = ("block_rows", "block_columns", "rows", "columns", "depth")
    return {"nn.dense": {"strategy": strategy, **dict(zip(names, values, strict=False))}}


def dense(dtype, rows, columns, depth):
    out = "int32" if dtype == "int8" else "float32"
    return relay.nn.dense(*operands(dtype, (rows, depth), (columns, depth)), out_dtype=out)


def conv(dtype, channels, size, made):
    given = operands(dtype, (1, channels, size, size), (made, channels, 3, 3))
    return relay.nn.conv2d(*given, padding=(1, 1), out_dtype="float32")


WIDE, NARROW = (128, 128, 8, 8, 16), (64, 128, 4, 8, 8)
# What is computed, how, and the most passes for a store.
LAYERS = {
    "dense": (dense("float32", 130, 120, 40), tile("threads.shared", *WIDE), 1.1),
    "dense of other knobs": (dense("float32", 64, 128, 43), tile("threads.shared", *NARROW), 1),
    "dense float16": (dense("float16", 128, 72, 64), tile("threads.matrix", 64, 64, 4, 4), 1),
    "dense int8": (dense("int8", 64, 96, 128), tile("threads.matrix", 64, 32, 4, 2), 1),
    "dense of bytes": (dense("int8", 128, 128, 64), tile("threads.dot", *WIDE), 1),
    "conv float16": (conv("float16", 16, 9, 40), {}, 1.5),
}  # fmt: skip


@pytest.mark.parametrize("name", list(LAYERS))
def test_tiles_in_shared_memory_are_read_and_filled_in_one_pass(simulated, name):
    """But at the edge of a matrix, and where fewer sectors of global memory are worth a pass."""
    body, force, most = LAYERS[name]
    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    with tvm.transform.PassContext(config={"schedules.force": force}):
        library = relay.build(module, target=TARGET)
    simulated.learn(library.lib.imported_modules[0])
    graph_executor.GraphModule(library["default"](tvm.cuda(0))).run()
    seen = simulated.banks[-1]
    assert seen.loads > 0
    assert seen.load_passes == seen.loads
    assert seen.store_passes <= most * seen.stores


def swizzled(unit=1, dtype="float32", together=1):
    s, args = transposed(0, dtype, together)
    next(stage for stage in s.stages if stage.scope == "shared").swizzle(unit)
    return s, args


def test_a_swizzled_tile_takes_one_pass_both_ways(simulated):
    """Without memory between its rows."""
    assert counted(simulated, *swizzled()) == (32, 32, 32, 32)
    assert counted(simulated, *swizzled(dtype="float64")) == (64, 64, 64, 64)
    # Two rows of halves are no more than the banks, and 16 words of each row.
    assert counted(simulated, *swizzled(2, "int16")) == (32, 32, 32, 32)
    assert counted(simulated, *swizzled(4, together=4)) == (32, 128, 32, 32)


def swizzled_product(n, m, k, stages=1):
    schedule, args = test_kernels.matmul(n, m, k, True)
    panels = [stage for stage in schedule.stages if stage.scope == "shared"]
    for number, stage in enumerate(panels):
        stage.swizzle(1 + number)
        if stages > 1:
            stage.double_buffer(stages)
    return schedule, args


def test_a_product_of_swizzled_panels_in_every_language(any_device):
    """Rows of 8 and of 32 elements, the latter two at a time; the edge of a matrix."""
    function = run_kernels.built(*swizzled_product(61, 67, 33))
    x, y = random(61, 33), random(33, 67, seed=1)
    found = run_kernels.run(function, any_device, [x, y], (61, 67))
    np.testing.assert_allclose(found, x @ y, rtol=1e-4, atol=1e-4)


def test_swizzled_panels_are_filled_ahead(simulated):
    """By copies that go on while threads compute; the processor keeps rows as they are."""
    schedule, args = swizzled_product(40, 36, 50, stages=3)
    function = run_kernels.built(schedule, args)
    assert "slw_async_wait<1>" in run_kernels.source(function, "cuda")
    assert "^" in run_kernels.source(function, "cuda")
    x, y = random(40, 50), random(50, 36, seed=1)
    found = run_kernels.run(function, tvm.cuda(0), [x, y], (40, 36))
    np.testing.assert_allclose(found, x @ y, rtol=1e-4, atol=1e-4)
    assert simulated.banks[-1].loads > 0


def test_what_cannot_be_swizzled_is_an_error():
    schedule, (_, output) = transposed()
    panel = next(stage for stage in schedule.stages if stage.scope == "shared")
    with pytest.raises(ScheduleError, match="cannot swizzle stage 'B': it is an output"):
        schedule[output].swizzle()
    for unit in (0, 3, "two", -4):
        with pytest.raises(ScheduleError, match="give a power of two"):
            panel.swizzle(unit)
    panel.swizzle()
    with pytest.raises(ScheduleError, match="its rows are swizzled"):
        panel.storage_align(panel.op.axis[0], 32, 1)
    aligned = transposed(1)[0]
    with pytest.raises(ScheduleError, match="storage_align has moved its rows apart"):
        next(stage for stage in aligned.stages if stage.scope == "shared").swizzle()


def test_an_instruction_that_reads_by_address_takes_no_swizzled_rows(monkeypatch):
    """It would find other elements there."""
    share = matrix._Tiles._share

    def permuted(self, panel, *given):
        share(self, panel, *given)
        self.schedule[panel].alignments.clear()
        self.schedule[panel].swizzle(8)

    monkeypatch.setattr(matrix._Tiles, "_share", permuted)
    body = dense("float16", 64, 64, 64)
    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    with pytest.raises(LoweringError, match="gets the address of 'right', whose rows are swizzled"):
        relay.build(module, target=TARGET)
