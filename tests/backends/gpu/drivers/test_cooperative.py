"""Products of Vulkan's cooperative matrices: on devices that have them, and watched for races."""

import re

import numpy as np
import pytest
from run_kernels import array, close, entered, model, run_model, var

import slipway as tvm
from slipway import relay, te
from slipway.backends.gpu import languages
from slipway.backends.gpu.schedules import matrix
from slipway.backends.gpu.schedules.warp_product import (
    cooperative_products,
    lanes_of,
    matrix_sides,
    product_of_target,
    sum_bytes,
    warp_intrinsic,
)
from slipway.codegen.gpu import kernel, llvm_kernels
from slipway.contrib import graph_executor
from slipway.errors import CodegenError, DeviceError, LoweringError, TargetError
from slipway.ir.instructions.cooperative_products import named
from slipway.target import Target

SHARED = "-max_threads_per_block=1024 -max_shared_memory_per_block=32768"
SIZES = {  # of NVIDIA's, Intel's, AMD's waves of 64, and lavapipe's of processors with AVX2
    32: "f16:16x16x16,s8:16x16x32,u8:16x16x32",
    16: "f16:8x16x16,s8:8x16x32,u8:8x16x32",
    64: "f16:16x16x16,s8:16x16x16,u8:16x16x16",
    8: "f16:8x8x8,s8:8x8x8,u8:8x8x8",
}
DTYPES = {"f16": ("float16", "float32"), "s8": ("int8", "int32"), "u8": ("uint8", "int32")}


def of_lanes(lanes):
    options = f"-thread_warp_size={lanes} -cooperative_matrix={SIZES[lanes]} {SHARED}"
    return Target(f"vulkan {options}", host="llvm")


def _call(entry, op, pointers, kernel):
    """Call the model of a statement (languages/matrices.cc) in LLVM IR."""
    kind = f"_{entry.kind}" if op == "product" else ""
    numbers = (entry.rows, entry.columns, entry.depth, entry.lanes)
    given = [f"i32 {n}" for n in numbers] + pointers
    types = ", ".join(word.split()[0] for word in given)
    kernel.helpers.add(f"declare void @llvm.slw.matrix_{op}{kind}({types})")
    kernel.w.do(f"call void @llvm.slw.matrix_{op}{kind}({', '.join(given)})")
    return "0"


@pytest.fixture
def watched(simulators, monkeypatch):
    """Return what runs kernels of a target for Vulkan as LLVM IR, every access told.

    They are those of a GPU of NVIDIA's without matrix units, whose description is the other's.
    """

    def statement(self, node):
        entry = named(node.args[0].value)
        kinds = ["i32" if a.dtype == "int32" else "ptr" for a in node.args[1:]]
        values = [self.value(a) for a in node.args[1:]]
        pointers = [f"{kind} {value}" for kind, value in zip(kinds, values, strict=True)]
        return _call(entry, node.op.removeprefix("warp_"), pointers, self)

    for op in ("product", "zero", "store"):
        monkeypatch.setattr(llvm_kernels._Kernel, f"_call_warp_{op}", statement, raising=False)
    # Neither the text for people nor the assembler has a word for it.
    monkeypatch.setattr(languages, "ptx_text", lambda ir, target: ir)
    monkeypatch.setattr(kernel.KernelEmitter, "_warp_product", lambda self, node: None)
    found = entered(simulators, "ll")

    def run(target, body, **inputs):
        known = (product_of_target, lanes_of, matrix_sides, sum_bytes)
        for function in known:
            given = _of(function, target)
            monkeypatch.setattr(matrix, function.__name__, given)
        lanes = target.attrs["thread_warp_size"]
        other = Target(f"cuda -arch=sm_70 -thread_warp_size={lanes} {SHARED}", host="llvm")
        matrix.legal_knobs.cache_clear()
        made = run_model(found, body, other, tvm.cuda(0), "slw.matrix_product", "ll", **inputs)
        matrix.legal_knobs.cache_clear()
        return made

    yield run
    found.leave()


def _of(function, target):
    return lambda _, *args: function(target, *args)


def dense(rng, kind, rows, columns, depth):
    """Return a layer, its operands, and what it is to compute."""
    dtype, of = DTYPES[kind]
    x, w = array(rng, (rows, depth), dtype), array(rng, (columns, depth), dtype)
    given = var("x", *x.shape, dtype=dtype), var("w", *w.shape, dtype=dtype)
    wide = np.int64 if "int" in dtype else np.float64
    wanted = (x.astype(wide) @ w.astype(wide).T).astype(of)
    return relay.nn.dense(*given, out_dtype=of), {"x": x, "w": w}, wanted


@pytest.mark.parametrize("kind", sorted(DTYPES))
@pytest.mark.parametrize("lanes", sorted(SIZES))
def test_every_type_and_any_extents(watched, kind, lanes):
    for size in ((48, 40, 72), (33, 100, 41)):
        body, inputs, wanted = dense(np.random.default_rng(0), kind, *size)
        close(watched(of_lanes(lanes), body, **inputs), wanted)


@pytest.mark.parametrize("knobs", [(64, 64, 8, 8), (32, 128, 4, 4), (128, 64, 2, 8)])
def test_threads_with_several_matrices_and_what_follows(watched, knobs):
    names = ("block_rows", "block_columns", "rows", "columns")
    force = {"strategy": "threads.matrix", **dict(zip(names, knobs, strict=True)), "stages": 1}
    rng = np.random.default_rng(4)
    x, w, b = (array(rng, n, "float16") for n in ((3, 150, 48), (3, 140, 48), (140,)))
    given = [var(n, *a.shape, dtype="float16") for n, a in (("x", x), ("w", w))]
    made = relay.nn.batch_matmul(*given, out_dtype="float32")
    made = relay.nn.relu(relay.add(made, var("b", 140, dtype="float32")))
    config = {"schedules.force": {"nn.batch_matmul": force}}
    with tvm.transform.PassContext(opt_level=3, config=config):
        found = watched(of_lanes(32), made, x=x, w=w, b=b.astype("float32"))
    wide = x.astype("float64") @ w.astype("float64").transpose(0, 2, 1) + b.astype("float64")
    close(found, np.maximum(wide, 0).astype("float32"))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_convolutions(watched, layout):
    rng = np.random.default_rng(3)
    x, w = array(rng, (2, 64, 9, 7), "int8"), array(rng, (64, 32, 3, 3), "int8")

    def call(x, w, layout, kernel):
        return relay.nn.conv2d(
            var("x", *x.shape, dtype="int8"), var("w", *w.shape, dtype="int8"),
            padding=(1, 1), strides=(2, 1), groups=2, channels=64, kernel_size=(3, 3),
            data_layout=layout, kernel_layout=kernel, out_dtype="int32",
        )  # fmt: skip

    plain = model(call(x, w, "NCHW", "OIHW"), Target("llvm"))
    module = graph_executor.GraphModule(plain["default"](tvm.cpu(0)))
    module.run(x=x, w=w)
    wanted, kernel = module.get_output(0).numpy(), "OIHW"
    if layout == "NHWC":
        x, w, kernel = x.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy(), "HWIO"
        wanted = wanted.transpose(0, 2, 3, 1)
    close(watched(of_lanes(32), call(x, w, layout, kernel), x=x, w=w), wanted)


def spirv(kind, lanes):
    body, inputs, wanted = dense(np.random.default_rng(1), kind, 70, 72, 96)
    library = model(body, of_lanes(lanes))
    return library, inputs, wanted, library.lib.imported_modules[0].get_source("spirv")


@pytest.mark.parametrize("lanes", sorted(SIZES))
def test_what_the_code_says(lanes):
    """Its sizes, and that memory which threads hand each other is not their own matter."""
    text = spirv("s8", lanes)[3]
    (entry,) = [p for p in cooperative_products(of_lanes(lanes)) if p.kind == "s8"]
    size = f"{entry.rows}x{entry.columns}x{entry.depth}"
    assert re.search(rf'OpModuleProcessed "\w+: matrices of s8:{size}"', text)
    assert re.search(rf'OpModuleProcessed "\w+: subgroups of {lanes}"', text)
    assert "OpMemoryModel Logical Vulkan" in text
    assert len(re.findall("= OpTypeCooperativeMatrixKHR ", text)) == 3
    assert "MatrixASignedComponentsKHR" in text
    loads = re.findall("OpCooperativeMatrixLoadKHR.*", text)
    stores = re.findall("OpCooperativeMatrixStoreKHR.*", text)
    assert loads
    assert stores
    assert all(line.endswith(" NonPrivatePointer") for line in (*loads, *stores))
    assert " Coherent" not in text
    plain = model(dense(np.random.default_rng(1), "s8", 70, 72, 96)[0], Target("vulkan"))
    assert "CooperativeMatrix" not in plain.lib.imported_modules[0].get_source("spirv")


@pytest.mark.parametrize("kind", sorted(DTYPES))
def test_a_device_multiplies_them_or_says_what_it_lacks(vulkan, kind):
    library, inputs, wanted, _ = spirv(kind, 8)
    module = graph_executor.GraphModule(library["default"](vulkan))
    said = ""
    try:
        module.run(**inputs)
    except DeviceError as error:
        said = str(error)
    if said:
        lacks = "has no cooperative matrices|multiplies no matrices of .* Compile it with"
        assert re.search(rf"vulkan\(0\).*({lacks}|has subgroups of)", said)
    else:
        close(module.get_output(0).numpy(), wanted)


@pytest.mark.parametrize("size", ["f16:16x16", "f64:8x8x8", "f16:8x0x8", "16x16x16"])
def test_sizes_that_are_none(size):
    target = Target(f"vulkan -thread_warp_size=32 -cooperative_matrix={size}", host="llvm")
    with pytest.raises(TargetError, match=rf"{size}' is no size of matrices.*f16:16x16x16"):
        model(dense(np.random.default_rng(0), "f16", 64, 64, 64)[0], target)


def test_sizes_that_no_schedule_divides_are_left_alone():
    for options in ("32 -cooperative_matrix=f16:16x64x16", "7 -cooperative_matrix=f16:8x8x8"):
        target = Target(f"vulkan -thread_warp_size={options}", host="llvm")
        code = model(dense(np.random.default_rng(0), "f16", 64, 64, 64)[0], target)
        assert "CooperativeMatrix" not in code.lib.imported_modules[0].get_source("spirv")


def by_hand(threads):
    """Return a schedule that names the instruction, of so many threads."""
    entry = named("f16:8x8x8:8")
    lane = te.thread_axis("threadIdx.x")
    a = te.placeholder((8, 8), "float16", "a")
    b = te.placeholder((1, 8), "float16", "b")
    k = te.reduce_axis((0, 8), "k")
    of = "float32"
    c = te.compute(
        (8, 1), lambda i, j: te.sum(a[i, k].astype(of) * b[j, k].astype(of), axis=k), name="c"
    )
    one = te.compute((threads, 8, 1), lambda t, i, j: c[i, j], name="one")
    s = te.create_schedule(one.op)
    s[one].bind(one.op.axis[0], lane)
    s[c].compute_at(s[one], one.op.axis[0])
    s[c].tensorize(c.op.axis[0], warp_intrinsic(entry, lane))
    return s, [a, b, one]


def test_blocks_of_parts_of_subgroups_are_refused():
    with pytest.raises(LoweringError, match=r"whole subgroups of 8 threads, and a block has 12"):
        tvm.build(*by_hand(12), Target("vulkan", host="llvm"))


@pytest.mark.parametrize("language", ["opencl", "webgpu"])
def test_other_languages_have_none(language):
    with pytest.raises(CodegenError, match=r"no product of a warp \(f16:8x8x8:8"):
        tvm.build(*by_hand(8), Target(language, host="llvm"))
