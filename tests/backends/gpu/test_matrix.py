"""Products on NVIDIA's matrix units, against a model of the instruction that PTX describes."""

import re

import numpy as np
import pytest
import run_kernels
from run_kernels import array, close, entered, model, run_model, var
from tests.backends.gpu import test_ptx

import slipway as tvm
from slipway import relay, te
from slipway.backends.gpu.schedules import matrix
from slipway.backends.gpu.schedules.matrix import MatrixKnobs, legal_knobs
from slipway.contrib import graph_executor
from slipway.ir.instructions.warp_products import WARP_PRODUCTS
from slipway.target import Target

TARGET = Target("cuda -arch=sm_80 -thread_warp_size=32 -max_threads_per_block=1024", host="llvm")
TURING = Target("nvidia/nvidia-t4", host="llvm")


@pytest.fixture(params=["cuda", "ll"])
def simulated(request, simulators, monkeypatch):
    """A simulated GPU with matrix units."""
    found = entered(simulators, request.param)
    monkeypatch.setattr(run_kernels, "current", (TARGET, found))
    yield found
    found.leave()


def built(body, target=TARGET):
    return model(body, target)


def run(simulated, body, target=TARGET, **inputs):
    """Return what `body` computes on the simulated GPU; its kernels are checked for races."""
    return run_model(simulated, body, target, tvm.cuda(0), r"mma\.sync", "ptx", **inputs)


@pytest.mark.parametrize("kind", sorted(WARP_PRODUCTS))
def test_every_instruction_computes_a_product(simulated, kind):
    entry = WARP_PRODUCTS[kind]
    rng = np.random.default_rng(0)
    x, w = array(rng, (48, 72), entry.a_dtype), array(rng, (40, 72), entry.b_dtype)
    given = var("x", *x.shape, dtype=entry.a_dtype), var("w", *w.shape, dtype=entry.b_dtype)
    wide = np.int64 if "int" in entry.a_dtype else np.float64
    wanted = (x.astype(wide) @ w.astype(wide).T).astype(entry.c_dtype)
    close(run(simulated, relay.nn.dense(*given, out_dtype=entry.c_dtype), x=x, w=w), wanted)


@pytest.mark.parametrize("kind", ["f16", "s8.s8", "u8.s8"])
def test_instructions_of_sm_75_are_parts_of_it(simulators, kind, tmp_path):
    """The same panels and registers, by two or four instructions."""
    entry = WARP_PRODUCTS[kind]
    rng = np.random.default_rng(7)
    x, w = array(rng, (35, 72), entry.a_dtype), array(rng, (50, 72), entry.b_dtype)
    given = var("x", *x.shape, dtype=entry.a_dtype), var("w", *w.shape, dtype=entry.b_dtype)
    body = relay.nn.dense(*given, out_dtype=entry.c_dtype)
    simulator = simulators("ll")
    simulator.enter()
    found = [run(simulator, body, target=target, x=x, w=w) for target in (TARGET, TURING)]
    simulator.leave()
    close(*found)
    ptx = built(body, TURING).lib.imported_modules[0].get_source("ptx")
    assert f"mma.sync.aligned.{entry.parts.ptx}" in ptx
    assert test_ptx.spilt(test_ptx.assembled(ptx, "sm_75", tmp_path)) == 0


@pytest.mark.parametrize(
    "size", [(1, 64, 64, 64), (1, 33, 100, 40), (3, 65, 33, 129), (2, 200, 32, 32)]
)
def test_products_of_any_extents(simulated, size):
    batch, rows, columns, depth = size
    rng = np.random.default_rng(1)
    x, w = array(rng, (batch, rows, depth), "int8"), array(rng, (batch, columns, depth), "int8")
    given = var("x", *x.shape, dtype="int8"), var("w", *w.shape, dtype="int8")
    wanted = x.astype("int32") @ w.astype("int32").transpose(0, 2, 1)
    close(run(simulated, relay.nn.batch_matmul(*given, out_dtype="int32"), x=x, w=w), wanted)


@pytest.mark.parametrize(
    ("lie", "dtype"),
    [((True, True), "int8"), ((True, False), "float16"), ((False, False), "float16")],
)
def test_operands_that_lie_the_other_way(simulators, lie, dtype):
    """Neighbours in memory are rows or columns there, and a thread gathers steps."""
    out = "int32" if dtype == "int8" else "float32"
    rng = np.random.default_rng(8)
    x, w = array(rng, (2, 40, 72), dtype), array(rng, (2, 72, 50), dtype)
    wide = (x.astype("float64") @ w.astype("float64")).astype(out)
    x = x.transpose(0, 2, 1).copy() if lie[0] else x
    w = w.transpose(0, 2, 1).copy() if lie[1] else w
    given = [var(name, *a.shape, dtype=dtype) for name, a in (("x", x), ("w", w))]
    body = relay.nn.batch_matmul(*given, transpose_a=lie[0], transpose_b=lie[1], out_dtype=out)
    simulator = simulators("ll")
    simulator.enter()
    found = run(simulator, body, x=x, w=w)
    simulator.leave()
    close(found, wide)


def test_a_matmul_of_float16(simulators):
    rng = np.random.default_rng(8)
    x, w = array(rng, (40, 64), "float16"), array(rng, (64, 48), "float16")
    body = relay.nn.matmul(*(var(n, *a.shape, dtype="float16") for n, a in (("x", x), ("w", w))))
    simulator = simulators("ll")
    simulator.enter()
    found = run(simulator, body, x=x, w=w)
    simulator.leave()
    np.testing.assert_allclose(
        found, x.astype("float32") @ w.astype("float32"), rtol=2e-3, atol=2e-3
    )


@pytest.mark.parametrize(
    "knobs", [(64, 64, 8, 8), (128, 32, 4, 8), (32, 128, 4, 4), (64, 64, 2, 8)]
)
@pytest.mark.parametrize("dtype", ["int8", "float16"])
def test_threads_with_several_sums(simulated, monkeypatch, dtype, knobs):
    """Each of a thread's parts has registers of its own, whatever the tile."""
    out = "int32" if dtype == "int8" else "float32"
    chosen = MatrixKnobs(*knobs)
    assert chosen in legal_knobs(TARGET)
    monkeypatch.setattr(matrix, "legal_knobs", lambda target: (chosen,))
    rng = np.random.default_rng(4)
    x, w = array(rng, (150, 96), dtype), array(rng, (140, 96), dtype)
    given = var("x", *x.shape, dtype=dtype), var("w", *w.shape, dtype=dtype)
    wide = x.astype("float64") @ w.astype("float64").T
    close(run(simulated, relay.nn.dense(*given, out_dtype=out), x=x, w=w), wide.astype(out))


def test_what_follows_a_product_is_in_its_kernel(simulated):
    """And a model in float16 sums in float32, rounds once, and converts nothing before."""
    rng = np.random.default_rng(2)
    x, w, b = (array(rng, shape, "float16") for shape in ((50, 96), (70, 96), (70,)))
    given = [var(n, *a.shape, dtype="float16") for n, a in (("x", x), ("w", w), ("b", b))]
    body = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(*given[:2]), given[2]))
    found = run(simulated, body, x=x, w=w, b=b)
    assert len(simulated.launched) == 1
    product = (x.astype("float32") @ w.astype("float32").T).astype("float16")
    assert found.dtype == "float16"
    wanted = np.maximum(product + b, 0).astype("float32")
    np.testing.assert_allclose(found.astype("float32"), wanted, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("dtype", "groups"), [("int8", 2), ("float16", 1)])
def test_convolutions(simulated, layout, dtype, groups):
    rng = np.random.default_rng(3)
    out = "int32" if dtype == "int8" else "float32"
    x = array(rng, (2, 32 * groups, 9, 8), dtype)
    w = array(rng, (32 * groups, 32, 3, 3), dtype)
    kernel = {"NCHW": "OIHW", "NHWC": "HWIO"}[layout]

    def call(shape_x, shape_w, dtype, out, layout, kernel):
        return relay.nn.conv2d(
            var("x", *shape_x, dtype=dtype), var("w", *shape_w, dtype=dtype), padding=(1, 1),
            strides=(2, 1), groups=groups, channels=32 * groups, kernel_size=(3, 3),
            data_layout=layout, kernel_layout=kernel, out_dtype=out,
        )  # fmt: skip

    plain = built(call(x.shape, w.shape, "float32", "float32", "NCHW", "OIHW"), Target("llvm"))
    module = graph_executor.GraphModule(plain["default"](tvm.cpu(0)))
    module.run(x=x.astype("float32"), w=w.astype("float32"))
    wanted = module.get_output(0).numpy().astype(out)
    if layout == "NHWC":
        x, w = x.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy()
        wanted = wanted.transpose(0, 2, 3, 1)
    close(run(simulated, call(x.shape, w.shape, dtype, out, layout, kernel), x=x, w=w), wanted)


def fetched(ptx):
    """Return the instructions of global loads."""
    return set(re.findall(r"ld\.global(?:\.nc)?\.([.\w]+)", ptx))


LAYERS = {
    "dense": (((60, 64), (40, 64)), lambda x, w: relay.nn.dense(x, w, out_dtype="float32")),
    "NHWC": (
        ((1, 7, 9, 32), (3, 3, 32, 40)),
        lambda x, w: relay.nn.conv2d(
            x, w, padding=(1, 1), data_layout="NHWC", kernel_layout="HWIO", out_dtype="float32"
        ),
    ),
    "NCHW": (
        ((1, 32, 7, 9), (40, 32, 3, 3)),
        lambda x, w: relay.nn.conv2d(x, w, padding=(1, 1), out_dtype="float32"),
    ),
}


@pytest.mark.parametrize("layer", list(LAYERS))
def test_operands_are_fetched_sixteen_bytes_at_once(simulators, layer):
    """Of a dense layer both, of convolutions the image or the weights, whichever lie so."""
    shapes, call = LAYERS[layer]
    rng = np.random.default_rng(3)
    x, w = (array(rng, shape, "float16") for shape in shapes)
    library = built(call(var("x", *shapes[0], dtype="float16"), relay.const(w)))
    code = library.lib.imported_modules[0]
    ptx = code.get_source("ptx")
    assert "cp.async.cg.shared.global" in ptx  # by the device itself
    assert fetched(ptx) == {"b16"}  # what is gathered, and operands that begin anywhere
    simulator = simulators("ll")
    simulator.learn(code)
    simulator.enter()
    module = graph_executor.GraphModule(library["default"](tvm.cuda(0)))
    module.run(x=x)
    found = module.get_output(0).numpy()
    simulator.leave()
    plain = call(var("x", *shapes[0], dtype="float32"), relay.const(w.astype("float32")))
    module = graph_executor.GraphModule(built(plain, Target("llvm"))["default"](tvm.cpu(0)))
    module.run(x=x.astype("float32"))
    close(found, module.get_output(0).numpy())


def test_vectors_of_tensors_that_begin_anywhere(simulators, monkeypatch):
    """A kernel of its own takes a caller's memory as it is: then each element comes by itself."""
    a = te.placeholder((4, 64), "float16", name="A")
    b = te.compute((4, 64), lambda i, j: a[i, j] * a[i, j], name="B")
    s = te.create_schedule(b.op)
    thread, lanes = s[b].split(b.op.axis[1], factor=8)
    s[b].vectorize(lanes)
    s[b].bind(b.op.axis[0], te.thread_axis("blockIdx.x"))
    s[b].bind(thread, te.thread_axis("threadIdx.x"))
    function = tvm.build(s, [a, b], TARGET)
    code = function.imported_modules[0]
    assert fetched(code.get_source("ptx")) == {"b16", "v4.b32"}
    simulator = simulators("ll")
    simulator.learn(code)
    simulator.enter()
    x = array(np.random.default_rng(3), (4, 64), "float16")
    for shift in (0, 2, 8):
        monkeypatch.setattr(simulator, "shift", shift)
        found = run_kernels.run(function, tvm.cuda(0), [x], (4, 64), "float16")
        np.testing.assert_array_equal(found, x * x)
    simulator.leave()


def forced(stages, *tile):
    knobs = dict(zip(("block_rows", "block_columns", "rows", "columns"), tile, strict=True))
    force = {"strategy": "threads.matrix", **knobs, "stages": stages}
    names = ("nn.dense", "nn.conv2d")
    return tvm.transform.PassContext(
        opt_level=3, config={"schedules.force": dict.fromkeys(names, force)}
    )


@pytest.mark.parametrize(("dtype", "stages"), [("float16", 3), ("int8", 2)])
def test_panels_some_steps_ahead(simulated, monkeypatch, dtype, stages):
    """Sixteen bytes at once where a caller's memory begins so; the numbers of one stage anyway."""
    rng = np.random.default_rng(9)
    depth = 320 if dtype == "int8" else 160
    x, w = array(rng, (35, depth), dtype), array(rng, (40, depth), dtype)
    out = "int32" if dtype == "int8" else "float32"
    given = var("x", *x.shape, dtype=dtype), var("w", *w.shape, dtype=dtype)
    body = relay.nn.dense(*given, out_dtype=out)
    with forced(1, 64, 32, 4, 4):
        found = [run(simulated, body, x=x, w=w)]
    with forced(stages, 64, 32, 4, 4):
        library = built(body)
    simulated.learn(library.lib.imported_modules[0])
    kernel = library.lib["tvmgen_default_fused_nn_dense"]
    for shift in (0, 8):
        monkeypatch.setattr(simulated, "shift", shift)
        found.append(run_kernels.run(kernel, tvm.cuda(0), [x, w], (35, 40), out))
        np.testing.assert_array_equal(found[0], found[-1])
    wide = x.astype("float64") @ w.astype("float64").T
    close(found[0], wide.astype(out))


def test_panels_of_several_steps_take_what_a_launch_gives(simulators, tmp_path):
    """Beyond 48 KB; a convolution copies its weights so, and gathers its image."""
    rng = np.random.default_rng(10)
    x, w = array(rng, (1, 32, 13, 13), "float16"), array(rng, (32, 3, 3, 32), "float16")
    body = relay.nn.conv2d(
        var("x", *x.shape, dtype="float16"), var("w", *w.shape, dtype="float16"), groups=1,
        padding=(1, 1), kernel_size=(3, 3), channels=32, kernel_layout="OHWI", out_dtype="float32",
    )  # fmt: skip
    knobs = MatrixKnobs(128, 128, 8, 8, 3)
    assert knobs.panel_bytes((16, 32)) > 49152
    assert knobs in legal_knobs(TARGET)
    assert not [k for k in legal_knobs(TURING) if k.stages > 1]
    simulator = simulators("ll")
    simulator.enter()
    with forced(3, 128, 128, 8, 8):
        found = run(simulator, body, x=x, w=w)
        ptx = built(body).lib.imported_modules[0].get_source("ptx")
    simulator.leave()
    plain = relay.nn.conv2d(
        var("x", *x.shape, dtype="float32"), var("w", *w.shape, dtype="float32"), padding=(1, 1),
        kernel_size=(3, 3), channels=32, kernel_layout="OHWI",
    )  # fmt: skip
    module = graph_executor.GraphModule(built(plain, Target("llvm"))["default"](tvm.cpu(0)))
    module.run(x=x.astype("float32"), w=w.astype("float32"))
    close(found, module.get_output(0).numpy())
    assert ".extern .shared" in ptx
    assert test_ptx.spilt(test_ptx.assembled(ptx, "sm_80", tmp_path)) == 0


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_90a", "sm_100"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
@pytest.mark.parametrize("kind", ["dense", "convolution"])
def test_kernels_are_assembled_without_spills(kind, dtype, arch, tmp_path):
    out = "int32" if dtype == "int8" else "float32"
    if kind == "dense":
        given = var("x", 512, 512, dtype=dtype), var("w", 512, 512, dtype=dtype)
        body = relay.nn.dense(*given, out_dtype=out)
    else:
        given = var("x", 1, 64, 28, 28, dtype=dtype), var("w", 64, 64, 3, 3, dtype=dtype)
        body = relay.nn.conv2d(*given, padding=(1, 1), out_dtype=out)
    target = Target(f"cuda -arch={arch} -max_threads_per_block=1024", host="llvm")
    ptx = built(body, target).lib.imported_modules[0].get_source("ptx")
    assert ("mma.sync" in ptx) == (dtype != "bfloat16" or arch != "sm_75")
    assert test_ptx.spilt(test_ptx.assembled(ptx, arch, tmp_path)) == 0


def test_older_devices_have_none():
    body = relay.nn.dense(
        var("x", 64, 64, dtype="int8"), var("w", 64, 64, dtype="int8"), out_dtype="int32"
    )
    ptx = built(body, Target("cuda -arch=sm_72", host="llvm")).lib.imported_modules[0]
    assert "mma.sync" not in ptx.get_source("ptx")


def test_blocks_fit_the_device():
    small = Target("cuda -arch=sm_80 -max_threads_per_block=64 -max_shared_memory_per_block=8192")
    knobs = legal_knobs(small)
    assert knobs
    assert all(k.threads <= 64 for k in knobs)
    assert MatrixKnobs(32, 32, 4, 4) in knobs
    assert MatrixKnobs(128, 128, 8, 8) not in knobs


def test_an_image_smaller_than_a_tile_with_more_in_the_kernel(simulated):
    """The pixels of one image are the fused axis itself, also past its end."""
    rng = np.random.default_rng(5)
    x, w = array(rng, (1, 40, 7, 7), "float16"), array(rng, (64, 40, 1, 1), "float16")
    b = array(rng, (64, 1, 1), "float32")
    product = relay.nn.conv2d(
        var("x", *x.shape, dtype="float16"), var("w", *w.shape, dtype="float16"),
        out_dtype="float32",
    )  # fmt: skip
    found = run(simulated, relay.add(product, var("b", 64, 1, 1, dtype="float32")), x=x, w=w, b=b)
    assert len(simulated.launched) == 1
    wanted = np.einsum("oc,cyx->oyx", w[:, :, 0, 0].astype("float64"), x[0].astype("float64")) + b
    close(found[0], wanted.astype("float32"))
