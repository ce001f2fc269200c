"""te schedules with threads, run on devices: one kernel or several, sizes that divide and not."""

import hashlib

import numpy as np
import pytest
from run_kernels import axis, built, random, run, source

import slipway as tvm
from slipway import te
from slipway.errors import CodegenError, DeviceError, LoweringError
from slipway.runtime.device_module import DeviceModule
from slipway.target import Target


def vector_add(n, factor=32):
    a, b = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=factor)
    s[c].bind(outer, axis("blockIdx.x"))
    s[c].bind(inner, axis("threadIdx.x"))
    return s, [a, b, c]


def test_vector_add_of_any_length(any_device):
    add = built(*vector_add(te.var("n")))
    for n in (1, 31, 32, 1000, 1024):
        x, y = random(n), random(n, seed=1)
        np.testing.assert_array_equal(run(add, any_device, (x, y), (n,)), x + y)


def test_copies_of_an_expression_that_share_a_let(any_device):
    n = 64
    a, var = te.placeholder((n,), name="A"), tvm.tir.Var("v", "float32")
    b = te.compute((n,), lambda i: tvm.tir.Let(var, a[i] * 2.0, var + var * var), name="B")
    c = te.compute((n,), lambda i: b[i] - 3.0 * b[n - 1 - i], name="C")
    s = te.create_schedule(c.op)
    s[b].compute_inline()
    s[c].bind(c.op.axis[0], axis("threadIdx.x"))
    x = random(n)
    want = 2 * x + 4.0 * x.astype("float64") ** 2
    got = run(built(s, [a, c]), any_device, (x,), (n,))
    np.testing.assert_allclose(got, want - 3 * want[::-1], rtol=1e-5, atol=1e-5)


def test_vectors_of_elements_that_a_script_indexes(any_device):
    """Four elements beside each other, one four times over, and a number for all four."""
    a = te.placeholder((12,), "int32", name="A")

    def copied(inputs, outputs):
        builder = tvm.tir.ir_builder.create()
        source, out = builder.buffer_ptr(inputs[0]), builder.buffer_ptr(outputs[0])
        builder.scope_attr(axis("blockIdx.x"), "thread_extent", 1)
        out[tvm.tir.Ramp(0, 1, 4)] = source[tvm.tir.Ramp(4, 1, 4)]
        out[tvm.tir.Ramp(4, 1, 4)] = source[tvm.tir.Broadcast(2, 4)]
        out[tvm.tir.Ramp(8, 1, 4)] = 3
        return builder.get()

    c = te.extern((12,), [a], copied, dtype="int32")
    x = np.arange(12, dtype="int32") * 10
    found = run(built(te.create_schedule(c.op), [a, c]), any_device, (x,), (12,), "int32")
    np.testing.assert_array_equal(found, [40, 50, 60, 70, 20, 20, 20, 20, 3, 3, 3, 3])


def test_a_value_of_a_thousand_operations(any_device):
    """Deeper than Python's limit of recursion, and than the brackets a driver's compiler takes."""
    n, count = 32, 1000
    a = te.placeholder((n,), name="A")

    def formula(i):
        value = a[i]
        for k in range(count):
            value = value * 0.5 + a[(i + k) % n] * float(k % 7)
        return value

    c = te.compute((n,), formula, name="C")
    s = te.create_schedule(c.op)
    s[c].bind(c.op.axis[0], axis("threadIdx.x"))
    x = random(n)
    want = x.astype("float64")
    for k in range(count):
        want = want * 0.5 + np.roll(x, -k) * (k % 7)
    got = run(built(s, [a, c]), any_device, (x,), (n,))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


def test_the_source_is_a_kernel_of_opencl(device):
    text = source(built(*vector_add(64), name="myadd"))
    assert "myadd_kernel0" in text
    assert "get_group_id(0)" in text


def matmul(n, m, k, virtual, tile=32, threads=8, scopes=("shared", "shared")):
    """A product with tiles in shared memory, registers, and virtual threads."""
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = te.create_schedule(c.op)
    shared = [s.cache_read(t, scope, [c]) for t, scope in zip((a, b), scopes, strict=True)]
    local = [s.cache_read(t, "local", [c]) for t in shared]
    sums = s.cache_write(c, "local")
    blocks, virtuals, inner, rest = [], [], [], []
    for number, loop in enumerate(s[c].op.axis):
        name = "yx"[number]
        block, loop = s[c].split(loop, factor=tile)
        s[c].bind(block, axis(f"blockIdx.{name}"))
        blocks.append(block)
        if virtual:
            strip, loop = s[c].split(loop, nparts=2)
            s[c].bind(strip, te.thread_axis("vthread", name=f"v{name}"))
            virtuals.append(strip)
        thread, loop = s[c].split(loop, nparts=threads)
        inner.append(thread)
        rest.append(loop)
    s[c].reorder(*blocks, *virtuals, *inner, *rest)
    along = [axis("threadIdx.y"), axis("threadIdx.x")]
    for thread, bound in zip(inner, along, strict=True):
        s[c].bind(thread, bound)
    s[sums].compute_at(s[c], inner[1])
    outer, step = s[sums].split(s[sums].op.reduce_axis[0], factor=8)
    s[sums].reorder(outer, step, *s[sums].op.axis)
    for stage in shared:
        s[stage].compute_at(s[sums], outer)
        fused = s[stage].fuse(*s[stage].op.axis)
        fused, x = s[stage].split(fused, factor=threads)
        _, y = s[stage].split(fused, factor=threads)
        s[stage].bind(y, along[0])
        s[stage].bind(x, along[1])
    for stage in local:
        s[stage].compute_at(s[sums], step)
    return s, [a, b, c]


@pytest.mark.parametrize("virtual", [False, True])
@pytest.mark.parametrize("size", [(64, 64, 32), (61, 67, 33), (100, 5, 7)])
def test_matmul_in_shared_memory(any_device, size, virtual):
    n, m, k = size
    x, y = random(n, k), random(k, m, seed=1)
    result = run(built(*matmul(n, m, k, virtual)), any_device, (x, y), (n, m))
    np.testing.assert_allclose(result, x @ y, rtol=1e-4, atol=1e-5)


def test_barriers_stand_around_what_threads_share_and_nowhere_else(device):
    text = source(built(*matmul(64, 64, 32, virtual=True)))
    # Before the tiles are filled, and before they are read: in each step of the outer loop over k.
    assert text.count("barrier(") == 2
    assert "barrier" not in source(built(*vector_add(64)))


def row_sums(n, m, width, reducer=te.sum, factored=False):
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    b = te.compute((n,), lambda i: reducer(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(s[b].op.reduce_axis[0], factor=width)
    if factored:
        part = s.rfactor(b, inner)
        s[b].bind(s[b].op.axis[0], axis("blockIdx.x"))
        s[b].bind(s[b].op.reduce_axis[0], axis("threadIdx.x"))
        s[part].compute_at(s[b], s[b].op.reduce_axis[0])
    else:
        block, row = s[b].split(s[b].op.axis[0], factor=4)
        s[b].bind(block, axis("blockIdx.x"))
        s[b].bind(row, axis("threadIdx.y"))
        s[b].bind(inner, axis("threadIdx.x"))
    return s, [a, b]


@pytest.mark.parametrize("factored", [False, True])
@pytest.mark.parametrize(("n", "m", "width"), [(8, 128, 32), (7, 100, 48), (5, 33, 1)])
def test_sums_across_threads(any_device, n, m, width, factored):
    x = random(n, m)
    result = run(built(*row_sums(n, m, width, factored=factored)), any_device, (x,), (n,))
    np.testing.assert_allclose(result, x.sum(1), rtol=1e-4, atol=1e-5)


def test_maximum_across_threads(any_device):
    x = random(7, 33)
    result = run(built(*row_sums(7, 33, 16, te.max)), any_device, (x,), (7,))
    np.testing.assert_array_equal(result, x.max(1))


def test_argmax_across_threads(any_device):
    n, m = 6, 50
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    argmax = te.comm_reducer(
        lambda x, y: (
            te.if_then_else(x[1] >= y[1], x[0], y[0]),
            te.if_then_else(x[1] >= y[1], x[1], y[1]),
        ),
        lambda t0, t1: (te.const(-1, t0), te.min_value(t1)),
        name="argmax",
    )
    index, value = te.compute((n,), lambda i: argmax((k, a[i, k]), axis=k), name="B")
    s = te.create_schedule(index.op)
    _, inner = s[index].split(s[index].op.reduce_axis[0], factor=16)
    s[index].bind(s[index].op.axis[0], axis("blockIdx.x"))
    s[index].bind(inner, axis("threadIdx.x"))
    find = built(s, [a, index, value])
    x = random(n, m)
    first = tvm.nd.array(np.zeros(n, "int32"), any_device)
    second = tvm.nd.array(np.zeros(n, "float32"), any_device)
    find(tvm.nd.array(x, any_device), first, second)
    np.testing.assert_array_equal(first.numpy(), x.argmax(1))
    np.testing.assert_array_equal(second.numpy(), x.max(1))


def softmax(n, m, bind):
    x = te.placeholder((n, m), name="X")
    k, r = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="r")
    top = te.compute((n,), lambda i: te.max(x[i, k], axis=k), name="top")
    powers = te.compute((n, m), lambda i, j: te.exp(x[i, j] - top[i]), name="powers")
    total = te.compute((n,), lambda i: te.sum(powers[i, r], axis=r), name="total")
    out = te.compute((n, m), lambda i, j: powers[i, j] / total[i], name="out")
    s = te.create_schedule(out.op)
    bind(s, top, powers, total, out)
    return s, [x, out]


def test_several_kernels_hand_memory_to_each_other(any_device):
    def bind(s, *stages):
        for tensor in stages:
            axes = tensor.op.axis
            fused = axes[0] if len(axes) == 1 else s[tensor].fuse(*axes)
            block, thread = s[tensor].split(fused, factor=16)
            s[tensor].bind(block, axis("blockIdx.x"))
            s[tensor].bind(thread, axis("threadIdx.x"))

    x = random(9, 21)
    function = built(*softmax(9, 21, bind))
    wanted = np.exp(x - x.max(1, keepdims=True))
    wanted /= wanted.sum(1, keepdims=True)
    assert len(function.imported_modules[0].kernels) == 4
    np.testing.assert_allclose(
        run(function, any_device, (x,), x.shape), wanted, rtol=1e-5, atol=1e-6
    )


def test_one_kernel_with_stages_in_a_block(any_device):
    """Each row is a block's: the stages inside meet at barriers, and share what is not a result."""

    def bind(s, top, powers, total, out):
        rows, columns = s[out].op.axis
        s[out].bind(rows, axis("blockIdx.x"))
        thread = axis("threadIdx.x")
        _, inner = s[out].split(columns, factor=8)
        s[out].bind(inner, thread)
        for tensor in (top, powers, total):
            s[tensor].compute_at(s[out], rows)
        for tensor in (top, total):
            _, inner = s[tensor].split(s[tensor].op.reduce_axis[0], factor=8)
            s[tensor].bind(inner, thread)
        _, inner = s[powers].split(s[powers].op.axis[1], factor=8)
        s[powers].bind(inner, thread)

    x = random(9, 21)
    function = built(*softmax(9, 21, bind))
    wanted = np.exp(x - x.max(1, keepdims=True))
    wanted /= wanted.sum(1, keepdims=True)
    assert len(function.imported_modules[0].kernels) == 1
    np.testing.assert_allclose(
        run(function, any_device, (x,), x.shape), wanted, rtol=1e-5, atol=1e-6
    )


# -- what is refused -------------------------------------------------------------------------------


def test_loops_without_threads_are_refused():
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1, name="B")
    with pytest.raises(LoweringError, match=r"'B' are bound to no thread.*bind"):
        built(te.create_schedule(b.op), [a, b])


def test_a_block_of_too_many_threads_is_refused():
    with pytest.raises(CodegenError, match=r"kernel big_kernel0 has 512 threads.*runs 256"):
        built(*vector_add(1024, factor=512), name="big")
    built(*vector_add(1024, factor=512), Target("opencl -max_threads_per_block=512", host="llvm"))


def test_too_much_shared_memory_is_refused():
    a = te.placeholder((64, 256), name="A")
    b = te.compute((64, 256), lambda i, j: a[63 - i, j], name="B")
    s = te.create_schedule(b.op)
    copy = s.cache_read(a, "shared", [b])
    block, thread = s[b].split(b.op.axis[1], factor=256)
    s[b].reorder(block, thread, b.op.axis[0])
    s[b].bind(block, axis("blockIdx.x"))
    s[copy].compute_at(s[b], block)
    s[copy].bind(s[copy].op.axis[0], axis("threadIdx.x"))
    s[b].bind(thread, axis("threadIdx.x"))
    with pytest.raises(
        CodegenError, match=r"kernel_kernel0 uses 64 KB of shared memory.*has 32 KB"
    ):
        built(s, [a, b])


@pytest.mark.parametrize("kind", ["opencl", "vulkan"])
def test_shared_memory_that_only_the_target_has_is_refused(kind, device, vulkan):
    """PoCL ended the process and lavapipe computed something else."""
    n = 16 << 20
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[n - 1 - i], name="b")
    s = te.create_schedule(b.op)
    held = s.cache_read(a, "shared", [b])
    block, rest = s[b].split(b.op.axis[0], nparts=1)
    s[b].bind(block, axis("blockIdx.x"))
    s[held].compute_at(s[b], block)
    for stage, loop in ((s[b], rest), (s[held], s[held].op.axis[0])):
        stage.bind(stage.split(loop, factor=64)[1], axis("threadIdx.x"))
    target = Target(f"{kind} -max_shared_memory_per_block={4 * n}", host="llvm")
    function = tvm.build(s, [a, b], target, name="boast")
    where = vulkan if kind == "vulkan" else device
    x = tvm.nd.array(random(n), where)
    with pytest.raises(DeviceError, match=rf"boast_kernel0 has {4 * n} bytes .* {kind}\(0\) has "):
        function(x, tvm.nd.empty((n,), "float32", where))
    add = tvm.build(*vector_add(64), Target(kind, host="llvm"), name="after")
    found = run(add, where, (random(64), random(64)), (64,))
    np.testing.assert_allclose(found, 2 * random(64), rtol=1e-6)


def test_a_tensor_elsewhere_is_refused(device):
    add = built(*vector_add(8, factor=8))
    with pytest.raises(ValueError, match="on a device of kind cpu, expected opencl; copy it"):
        add(*(tvm.nd.array(random(8)) for _ in range(3)))


def test_code_that_is_not_loaded_is_named(device, tmp_path):
    add = built(*vector_add(40, factor=8), name="elsewhere")
    add.save(tmp_path / "elsewhere.o")
    host = tvm.runtime.load_module(tmp_path / "elsewhere.o")
    arrays = [tvm.nd.array(random(40), device) for _ in range(3)]
    with pytest.raises(DeviceError, match=r"kernel elsewhere_kernel0 is not loaded.*\.cl"):
        host(*arrays)
    add.imported_modules[0].save(tmp_path / "elsewhere.cl")
    host.import_module(tvm.runtime.load_module(tmp_path / "elsewhere.cl"))
    host(*arrays)
    wanted = arrays[0].numpy() + arrays[1].numpy()
    np.testing.assert_array_equal(arrays[2].numpy(), wanted)


def test_exported_libraries_carry_the_kernels(device, tmp_path):
    for ending in ("so", "tar"):
        add = built(*vector_add(48, factor=8), name=f"carried_{ending}")
        add.export_library(tmp_path / f"lib.{ending}")
        again = tvm.runtime.load_module(tmp_path / f"lib.{ending}")
        x, y = random(48), random(48, seed=1)
        np.testing.assert_array_equal(run(again, device, (x, y), (48,)), x + y)


def test_code_that_the_driver_refuses_is_told_with_its_log(device, tmp_path):
    add = built(*vector_add(56, factor=8), name="spoilt")
    add.save(tmp_path / "spoilt.o")
    text = source(add)
    host = (tmp_path / "spoilt.o").read_bytes()
    # The same digest, other code: what a driver says of it is the error.
    wrong = text.replace("A[", "missing[", 1)
    old, new = (hashlib.sha256(t.encode()).hexdigest().encode() for t in (text, wrong))
    assert old in host
    (tmp_path / "spoilt.o").write_bytes(host.replace(old, new))
    held = DeviceModule("opencl", 4, wrong.encode(), ["spoilt_kernel0"]).load()
    function = tvm.runtime.load_module(tmp_path / "spoilt.o")
    function.import_module(held)
    with pytest.raises(DeviceError, match=r"refused the code of kernel spoilt_kernel0.*missing"):
        function(*(tvm.nd.array(random(56), device) for _ in range(3)))


def test_time_is_that_of_the_finished_work(device):
    add = built(*vector_add(256))
    arrays = [tvm.nd.array(random(256), device) for _ in range(3)]
    measured = add.time_evaluator(add.entry_name, device, number=3)(*arrays)
    assert measured.mean > 0


@pytest.mark.parametrize("virtual", [False, True])
def test_memory_inside_one_axis_of_threads_is_that_threads_row(any_device, virtual):
    """Computed for each thread along y, read by all along x: a row each, shared in the row."""
    n, m, k = 13, 12, 8
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    out = te.compute((n, m), lambda i, j: c[i, j] * 3 - 1, name="D")
    s = te.create_schedule(out.op)
    rows, columns = s[out].op.axis
    block, row = s[out].split(rows, factor=8)
    other, column = s[out].split(columns, factor=4)
    if virtual:
        strip, row = s[out].split(row, nparts=2)
        s[out].bind(strip, axis("vthread"))
        s[out].reorder(block, other, strip, row, column)
    else:
        s[out].reorder(block, other, row, column)
    tags = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
    for loop, tag in zip((block, other, row, column), tags, strict=True):
        s[out].bind(loop, axis(tag))
    s[c].compute_at(s[out], row)
    x, y = random(n, k), random(k, m, seed=1)
    result = run(built(s, [a, b, out]), any_device, (x, y), (n, m))
    np.testing.assert_allclose(result, x @ y * 3 - 1, rtol=1e-4, atol=1e-4)


def converted(n, given, made):
    A = te.placeholder((n,), name="A", dtype=given)
    B = te.compute((n,), lambda i: A[i].astype(made), name="B")
    s = te.create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], factor=64)
    s[B].bind(block, axis("blockIdx.x"))
    s[B].bind(thread, axis("threadIdx.x"))
    return s, [A, B]


def test_every_half_is_converted_exactly(any_device):
    """Subnormal and infinite ones too, and what is read is what is written."""
    halves = np.arange(1 << 16, dtype="uint16").view("float16")
    function = built(*converted(1 << 16, "float16", "float32"))
    found = run(function, any_device, [halves], (1 << 16,))
    np.testing.assert_array_equal(found, halves.astype("float32"))


def test_floats_round_to_halves_as_on_the_processor(any_device):
    ties = np.arange(0x3800, 0x3C00, dtype="uint16").view("float16").astype("float32")
    step = np.float32(2.0**-12)
    tiny = np.linspace(-7e-5, 7e-5, 4096, dtype="float32")  # around the least normal half
    edges = np.array([65504, 65519.99, 65520, 1e6, np.inf, -np.inf, 0, -0.0, 2.0**-25], "float32")
    x = np.concatenate([ties, ties + step, ties - step, tiny, edges, random(4000) * 100])
    with np.errstate(over="ignore"):
        wanted = x.astype("float16")
    function = built(*converted(len(x), "float32", "float16"))
    found = run(function, any_device, [x], (len(x),), "float16")
    np.testing.assert_array_equal(found.view("uint16"), wanted.view("uint16"))


def test_arrays_of_numpys_default_type_are_converted_where_they_lie(any_device, request):
    schedule, args = vector_add(64)
    name = f"wide_{request.node.callspec.id}"  # each function is warned of once in a process
    function = built(schedule, args, name=name)
    x = np.arange(64, dtype="float64")
    a, out = tvm.nd.array(x, any_device), tvm.nd.array(np.zeros(64, "float32"), any_device)
    with pytest.warns(UserWarning, match="converted from float64 to float32"):
        function(a, tvm.nd.array(x.astype("float32"), any_device), out)
    np.testing.assert_array_equal(out.numpy(), x * 2)


@pytest.mark.parametrize("kind", ["opencl", "cuda", "vulkan", "webgpu", "metal", "rocm"])
def test_strict_targets_round_products_and_sums_apart(kind):
    a, b, c = (te.placeholder((64,), name=n) for n in "abc")
    out = te.compute((64,), lambda i: a[i] * b[i] + c[i])
    texts = []
    for options in ("", " -strict=1"):
        schedule = te.create_schedule(out.op)
        schedule[out].bind(out.op.axis[0], te.thread_axis("threadIdx.x"))
        target = Target(kind + options, host="llvm")
        module = tvm.build(schedule, [a, b, c, out], target).imported_modules[0]
        languages = {"vulkan": "spirv", "webgpu": "wgsl", "cuda": "ptx", "rocm": "asm"}
        texts.append(module.get_source(languages.get(kind, kind)).lower())
    assert ["fma" in text for text in texts] == [True, False]
