"""Products on AMD's matrix units (WMMA of RDNA 3 and 4, MFMA of CDNA), against models of them."""

import re

import numpy as np
import pytest
from run_kernels import (
    array,
    close,
    entered,
    in_layout,
    model,
    on_processor,
    run_model,
    strided_groups,
    var,
)

import slipway as tvm
from slipway import relay
from slipway.backends.gpu.schedules.matrix import MatrixKnobs, legal_knobs
from slipway.backends.gpu.schedules.warp_product import product_of_target
from slipway.ir.instructions.amd_products import AMD_PRODUCTS
from slipway.target import Target

TARGETS = {
    name: Target(f"rocm -mcpu={name} -max_threads_per_block=1024", host="llvm")
    for name in ("gfx1100", "gfx1201", "gfx90a", "gfx942")
}
TARGET = TARGETS["gfx1100"]


@pytest.fixture
def amd(simulators):
    """A simulated GPU of AMD's."""
    found = entered(simulators, "amd")
    yield found
    found.leave()


def built(body, target=TARGET):
    return model(body, target)


def run(amd, body, target=TARGET, **inputs):
    """Return what `body` computes on matrix units, watched for races."""
    return run_model(amd, body, target, tvm.rocm(0), "v_w?mf?ma_", "asm", **inputs)


@pytest.mark.parametrize("kind", sorted(AMD_PRODUCTS))
def test_every_instruction_computes_a_product(amd, kind):
    entry = AMD_PRODUCTS[kind]
    rng = np.random.default_rng(0)
    x, w = array(rng, (50, 72), entry.a_dtype), array(rng, (39, 72), entry.b_dtype)
    given = var("x", *x.shape, dtype=entry.a_dtype), var("w", *w.shape, dtype=entry.b_dtype)
    wide = np.int64 if "int" in entry.a_dtype else np.float64
    wanted = (x.astype(wide) @ w.astype(wide).T).astype(entry.c_dtype)
    target = next(t for cpu, t in TARGETS.items() if re.match(entry.cpus, cpu))
    close(run(amd, relay.nn.dense(*given, out_dtype=entry.c_dtype), target, x=x, w=w), wanted)


@pytest.mark.parametrize(
    "knobs", [(64, 64, 8, 8), (32, 128, 4, 4), (64, 64, 2, 8), (128, 64, 8, 4)]
)
def test_threads_with_several_columns(amd, knobs):
    chosen = MatrixKnobs(*knobs)
    assert chosen in legal_knobs(TARGET)
    names = ("block_rows", "block_columns", "rows", "columns")
    force = {"strategy": "threads.matrix", **dict(zip(names, knobs, strict=True)), "stages": 1}
    rng = np.random.default_rng(4)
    x, w = array(rng, (3, 150, 48), "int8"), array(rng, (3, 140, 48), "int8")
    given = var("x", *x.shape, dtype="int8"), var("w", *w.shape, dtype="int8")
    config = {"schedules.force": {"nn.batch_matmul": force}}
    with tvm.transform.PassContext(opt_level=3, config=config):
        found = run(amd, relay.nn.batch_matmul(*given, out_dtype="int32"), x=x, w=w)
    np.testing.assert_array_equal(found, x.astype("int32") @ w.astype("int32").transpose(0, 2, 1))


@pytest.mark.parametrize("cpu", sorted(TARGETS))
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_convolution_with_what_follows(amd, layout, cpu):
    """Odd sizes, two groups, strides; a model in float16 rounds its sums once."""
    rng = np.random.default_rng(3)
    x, w = array(rng, (2, 64, 9, 7), "float16"), array(rng, (64, 32, 3, 3), "float16")
    b = array(rng, (64,), "float16")

    def call(x, w, b, layout, kernel, dtype):
        made = strided_groups(x, w, layout, kernel, dtype)
        bias = var("b", *b.shape, dtype=dtype)
        return relay.nn.relu(relay.nn.bias_add(made, bias, axis=layout.index("C")))

    wide = {name: a.astype("float32") for name, a in (("x", x), ("w", w), ("b", b))}
    wanted = on_processor(call(x, w, b, "NCHW", "OIHW", "float32"), **wide)
    x, w, wanted, kernel = in_layout(layout, x, w, wanted)
    body = call(x, w, b, layout, kernel, "float16")
    found = run(amd, body, TARGETS[cpu], x=x, w=w, b=b)
    assert len(amd.launched) == 1
    np.testing.assert_allclose(found.astype("float32"), wanted, rtol=2e-3, atol=5e-2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
@pytest.mark.parametrize("cpu", ["gfx1100", "gfx1151", "gfx1200", "gfx90a", "gfx942", "gfx950"])
def test_registers_are_not_spilt(cpu, dtype):
    given = var("x", 512, 512, dtype=dtype), var("w", 512, 512, dtype=dtype)
    body = relay.nn.dense(*given, out_dtype="int32" if dtype == "int8" else "float32")
    code = built(body, Target(f"rocm -mcpu={cpu}", host="llvm")).lib.imported_modules[0]
    text = code.get_source("asm")
    assert re.search("v_w?mf?ma_", text)
    assert re.findall(r"vgpr_spill_count: *(\d+)", text) == ["0"]
    wave = "64" if cpu.startswith("gfx9") else "32"
    assert re.findall(r"wavefront_size: *(\d+)", text) == [wave]
    assert re.search("__builtin_amdgcn_w?mf?ma_", code.get_source("hip"))


@pytest.mark.parametrize("cpu", ["gfx900", "gfx908", "gfx1030", "gfx1250"])
def test_other_generations_have_none(cpu):
    given = var("x", 64, 64, dtype="int8"), var("w", 64, 64, dtype="int8")
    body = relay.nn.dense(*given, out_dtype="int32")
    code = built(body, Target(f"rocm -mcpu={cpu}", host="llvm")).lib.imported_modules[0]
    assert not re.search("w?mf?ma_i32", code.get_source("asm"))


def test_numbers_that_gfx90a_takes_as_zero():
    """Its matrix units flush small float16 numbers; a strict target computes without them."""
    for options, wanted in (
        ("gfx90a", True),
        ("gfx90a -strict=1", False),
        ("gfx942 -strict=1", True),
    ):
        target = Target(f"rocm -mcpu={options}")
        found = product_of_target(target, "float16", "float16", "float32")
        assert (found is not None) == wanted
        assert product_of_target(target, "float32", "float32", "float32") is not None
