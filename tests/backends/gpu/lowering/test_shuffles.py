"""Reductions whose threads hand each other their parts without memory.

One program a language has all kernels: what compiles them for this processor takes longest.
"""

import numpy as np
import pytest
import run_kernels
from tests.backends.gpu import test_ptx

import slipway as tvm
from slipway import relay, te
from slipway.contrib import graph_executor
from slipway.errors import CodegenError, DeviceError
from slipway.script import tir as T
from slipway.target import Target

TARGETS = {
    "cuda": "cuda -arch=sm_53",
    "ll": "cuda -arch=sm_80",
    "amd": "rocm -mcpu=gfx1030",
    "metal": "metal",
    "vulkan": "vulkan -thread_warp_size=8 -supported_subgroup_operations=63",
}
WORDS = {"cuda": "__shfl_down_sync", "ll": "shfl.sync.down", "amd": "ds.bpermute",
         "metal": "slw_shuffle_by", "vulkan": "OpGroupNonUniformShuffle"}  # fmt: skip
LENGTH = 333
SUM = te.comm_reducer(lambda a, b: a + b, lambda t: te.const(0, t), "sum")
LAST = te.comm_reducer(
    lambda a, b: te.Select(b == te.const(-1, b.dtype), a, b), lambda t: te.const(-1, t), "last"
)
# Name: lanes, rows of a block, dtype, how a row is reduced.  Rows of a warp or less, of several,
# of a number of warps that is no power of two; types of one word, less, and two.
CASES = {
    **{f"of_{lanes}": (lanes, rows, "float32", SUM)
       for lanes, rows in ((4, 16), (8, 4), (32, 2), (64, 4), (96, 1), (256, 1))},
    **{dtype: (16, 2, dtype, SUM)
       for dtype in ("int8", "uint16", "float16", "int64", "uint64", "float64")},
    "in_order": (64, 1, "int32", LAST),
}  # fmt: skip


def rows(name, lanes, per_block, dtype, reducer, count=18):
    """Rows that `lanes` threads along x reduce, as loops."""
    a = te.placeholder((count, LENGTH), dtype, name="A")
    k = te.reduce_axis((0, LENGTH), name="k")
    b = te.compute((count,), lambda i: reducer(a[i, k], axis=[k]), name="B")
    s = te.create_schedule(b.op)
    block, row = s[b].split(b.op.axis[0], factor=per_block)
    _, lane = s[b].split(k, factor=lanes)
    s[b].bind(block, run_kernels.axis("blockIdx.x"))
    s[b].bind(row, run_kernels.axis("threadIdx.y"))
    s[b].bind(lane, run_kernels.axis("threadIdx.x"))
    return tvm.lower(s, [a, b], name=name, simple_mode=True)


@pytest.fixture(params=TARGETS)
def language(request, monkeypatch):
    """A language with shuffles, its device, and the target that is compiled for."""
    target = Target(TARGETS[request.param], host="llvm")
    if request.param == "vulkan":
        monkeypatch.setattr(run_kernels, "current", (target, None))
        yield request.param, request.getfixturevalue("vulkan"), target
        return
    simulator = request.getfixturevalue("simulators")(request.param)
    monkeypatch.setattr(run_kernels, "current", (target, simulator))
    simulator.enter()
    yield request.param, tvm.device(simulator.kind, 0), target
    simulator.leave()


def source(function, name):
    return run_kernels.source(function, {"vulkan": "spirv", "amd": "ll"}.get(name, name))


def values(dtype, shape=(18, LENGTH)):
    rng = np.random.default_rng(3)
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min // 100, info.max // 100, shape, dtype=dtype)


def tree(x, lanes):
    """Return the sums of rows in the order of the tree in shared memory, each rounded."""
    steps = -(-x.shape[1] // lanes)
    padded = np.zeros((x.shape[0], steps * lanes), x.dtype)
    padded[:, : x.shape[1]] = x
    parts = np.zeros((x.shape[0], lanes), x.dtype)
    for step in range(steps):
        parts = (parts + padded[:, step * lanes : (step + 1) * lanes]).astype(x.dtype)
    half = 1 << (lanes - 1).bit_length() - 1
    while half:
        count = min(half, parts.shape[1] - half)
        parts[:, :count] = (parts[:, :count] + parts[:, half : half + count]).astype(x.dtype)
        parts, half = parts[:, :half], half // 2
    return parts[:, 0]


def test_rows_have_the_bits_of_a_tree(language):
    """In each language, on each type, with the operands in their order, and without a race."""
    name, device, target = language
    lacks = {"float64"} if name == "metal" else set()
    cases = {key: case for key, case in CASES.items() if key not in lacks}
    function = run_kernels.built([rows(key, *case) for key, case in cases.items()], None, target)
    assert WORDS[name] in source(function, name)
    for key, (lanes, _, dtype, reducer) in cases.items():
        x = values(dtype)
        found = run_kernels.run(function[key], device, [x], x.shape[:1], dtype)
        wanted = tree(x, lanes) if reducer is SUM else [r[r != -1][-1] for r in in_lanes(x, lanes)]
        np.testing.assert_array_equal(found, wanted, err_msg=key)


def in_lanes(x, lanes):
    """Return the elements of rows in the order in which a tree would take them."""
    order = sorted(range(x.shape[1]), key=lambda k: (bits_reversed(k % lanes, lanes), k // lanes))
    return x[:, order]


def bits_reversed(lane, lanes):
    return int(f"{lane:0{(lanes - 1).bit_length()}b}"[::-1], 2)


def test_a_warp_needs_neither_memory_nor_barrier(language):
    """Also for a softmax, whose threads all want the maximum and the sum."""
    name, device, target = language
    x = relay.var("x", shape=(6, 90))
    lanes = {"metal": 16, "vulkan": 8}.get(name, 32)
    force = {"nn.softmax": {"strategy": "threads.rows", "lanes": lanes, "rows": 1}}
    body = relay.Function([x], relay.nn.softmax(x))
    with tvm.transform.PassContext(opt_level=3, config={"schedules.force": force}):
        library = relay.build(tvm.IRModule.from_expr(body), target=target)
    module = library.lib.imported_modules[0]
    text = module.get_source({"vulkan": "spirv", "amd": "ll"}.get(name, name))
    for word in ("__shared__", "addrspace(3)", "threadgroup float", "Workgroup\n", "barrier",
                 "__syncthreads", "ControlBarrier"):  # fmt: skip
        assert word not in text, word
    simulator = run_kernels.current[1]
    if simulator is not None:
        simulator.learn(module)
    given = run_kernels.random(6, 90)
    running = graph_executor.GraphModule(library["default"](device))
    running.run(x=given)
    powers = np.exp(given - given.max(-1, keepdims=True))
    wanted = powers / powers.sum(-1, keepdims=True)
    np.testing.assert_allclose(running.get_output(0).numpy(), wanted, rtol=1e-5, atol=1e-6)


@T.prim_func
def handed_over(a: T.Buffer((64,), "float32"), b: T.Buffer((3, 64), "float32")):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        b[0, t] = T.tvm_warp_shuffle(T.tvm_warp_activemask(), a[t], 5, 8, 8)
        b[1, t] = T.tvm_warp_shuffle_up(T.tvm_warp_activemask(), a[t], 3, 8, 8)
        b[2, t] = T.call_intrin("float32", "tir.tvm_warp_shuffle_down", 0xFFFFFFFF, a[t], 3, 8, 8)


def test_classic_names_mean_what_they_did(language):
    """Who asks beyond the row of threads has its own value."""
    _, device, target = language
    function = run_kernels.built(handed_over, None, target, "handed_over")
    x = run_kernels.random(64)
    found = run_kernels.run(function, device, [x], (3, 64))
    positions = np.arange(64)
    inside = positions % 8
    np.testing.assert_array_equal(found[0], x[positions - inside + 5])
    np.testing.assert_array_equal(found[1], x[np.where(inside >= 3, positions - 3, positions)])
    np.testing.assert_array_equal(found[2], x[np.where(inside < 5, positions + 3, positions)])


@pytest.mark.parametrize("kind", ["opencl", "webgpu"])
def test_languages_without_are_told_by_name(kind):
    """Reductions there go through shared memory; what asks for a shuffle is refused."""
    target = Target(f"{kind} -thread_warp_size=32", host="llvm")
    built = tvm.build([rows("sums", 32, 2, "float32", SUM)], target=target)
    assert "shuffle" not in built.imported_modules[0].get_source()
    with pytest.raises(CodegenError, match=r"have no warp_shuffle: .* cuda, rocm, metal or vulkan"):
        tvm.build(handed_over, target=target, name="handed_over")


def test_rows_of_a_shuffle_are_powers_of_two():
    @T.prim_func
    def odd(a: T.Buffer((64,), "float32"), b: T.Buffer((64,), "float32")):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            b[t] = T.tvm_warp_shuffle(0xFFFFFFFF, a[t], 5, 12, 32)

    with pytest.raises(CodegenError, match=r"rows of 12 threads.*a power of two"):
        tvm.build(odd, target=Target("cuda", host="llvm"), name="odd")


def test_a_device_with_other_subgroups_says_so(vulkan):
    target = Target("vulkan -thread_warp_size=128 -supported_subgroup_operations=16", host="llvm")
    function = tvm.build([rows("sums", 128, 1, "float32", SUM)], target=target)
    x = values("float32")
    words = (
        r"has subgroups of \d+ to \d+ threads, and kernel sums_kernel0 .* of 128.*-thread_warp_size"
    )
    with pytest.raises(DeviceError, match=words):
        run_kernels.run(function["sums"], vulkan, [x], (18,))


def test_half_a_warp_at_a_shuffle_is_an_error(simulators, monkeypatch):
    """It hangs a device, or gives it any number: the simulated one counts who comes."""

    @T.prim_func
    def half(a: T.Buffer((32,), "float32"), b: T.Buffer((32,), "float32")):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            if t < 16:
                b[t] = T.tvm_warp_shuffle(0xFFFFFFFF, a[t], 20, 32, 32)

    simulator = simulators("ll")
    target = Target("cuda", host="llvm")
    monkeypatch.setattr(run_kernels, "current", (target, simulator))
    simulator.enter()
    function = run_kernels.built(half, None, target, "half")
    with pytest.raises(
        DeviceError, match="only some threads of a block meet a barrier, or of a warp"
    ):
        run_kernels.run(function, tvm.cuda(0), [run_kernels.random(32)], (32,))
    simulator.leave()


@pytest.mark.parametrize("arch", ["sm_53", "sm_75", "sm_90a"])
def test_kernels_are_assembled_without_spills(arch, tmp_path):
    target = Target(f"cuda -arch={arch}", host="llvm")
    cases = [rows(key, *case) for key, case in CASES.items()] + [handed_over]
    report = test_ptx.assembled(
        run_kernels.source(tvm.build(cases, target=target), "ptx"), arch, tmp_path
    )
    assert test_ptx.spilt(report) == 0
