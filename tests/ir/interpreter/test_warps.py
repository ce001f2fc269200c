"""Products that threads of a warp compute together, in the interpreter, of every maker's kind."""

import re

import ml_dtypes
import numpy as np
import pytest

from slipway import IRModule, relay, transform
from slipway.backends.gpu.backend import ready_for_threads
from slipway.compiler.kernels import lower_kernel
from slipway.errors import ExecutionError, LoweringError
from slipway.ir.instructions.amd_products import AMD_PRODUCTS
from slipway.ir.instructions.simdgroup_products import SIMDGROUP_PRODUCTS
from slipway.ir.instructions.warp_products import WARP_PRODUCTS
from slipway.ir.interpreter.threads import run_threads
from slipway.ir.interpreter.warps import share_of
from slipway.script import tir as T
from slipway.target import Target

PRODUCTS = {**WARP_PRODUCTS, **SIMDGROUP_PRODUCTS, **AMD_PRODUCTS}
CPUS = ("gfx1100", "gfx1201", "gfx90a", "gfx942")


def target_of(name):
    """Return a target whose matrix units have a product."""
    if name in WARP_PRODUCTS:
        return Target("cuda -arch=sm_80", host="llvm")
    if name in SIMDGROUP_PRODUCTS:
        return Target("apple/m2-gpu", host="llvm")
    cpu = next(cpu for cpu in CPUS if re.match(AMD_PRODUCTS[name].cpus, cpu))
    return Target(f"rocm -mcpu={cpu}", host="llvm")


def drawn(rng, shape, dtype):
    if "int" in dtype:
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
    of = {"bfloat16": ml_dtypes.bfloat16}.get(dtype, dtype)
    return rng.standard_normal(shape).astype(of)


ONE_OF_EACH = ("f16", "s8.u8", "simdgroup.bf16", "wmma.u8.s8", "wmma12.bf16", "mfma.f32")
OTHERS = sorted(set(PRODUCTS) - set(ONE_OF_EACH))


@pytest.mark.parametrize(
    "name", [*ONE_OF_EACH, *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)]
)
def test_a_dense_layer_on_matrix_units(name):
    """Odd sizes: panels are padded, and warps without rows of their own read none outside."""
    entry, target = PRODUCTS[name], target_of(name)
    rng = np.random.default_rng(0)
    x, w = drawn(rng, (33, 40), entry.a_dtype), drawn(rng, (35, 40), entry.b_dtype)
    given = (relay.var("x", shape=x.shape, dtype=entry.a_dtype),
             relay.var("w", shape=w.shape, dtype=entry.b_dtype))  # fmt: skip
    layer = relay.Function(list(given), relay.nn.dense(*given, out_dtype=entry.c_dtype))
    layer = relay.transform.InferType()(IRModule.from_expr(layer))["main"]
    force = {"nn.dense": {"strategy": "threads.matrix"}}
    with transform.PassContext(opt_level=3, config={"schedules.force": force}):
        loops = ready_for_threads("layer", lower_kernel("layer", layer, target), target)
    assert name in str(loops)
    out = np.zeros((33, 35), entry.c_dtype)
    held = [a.view(np.uint16) if a.dtype.name == "bfloat16" else a for a in (x, w)]
    run_threads(loops, *held, out, warp=getattr(entry, "wave", 32))
    if entry.c_dtype == "int32":
        np.testing.assert_array_equal(out, x.astype("int64") @ w.astype("int64").T)
    else:
        wanted = x.astype("float64") @ w.astype("float64").T
        np.testing.assert_allclose(out, wanted, atol=2e-6 * np.abs(wanted).max())


def test_sums_wrap_around_as_int32_does():
    _, _, share = share_of("s8.s8")
    assert share(5).sums == (((2, 2), (2, 3)), ((3, 2), (3, 3)))


def test_one_of_which_nobody_knows_who_has_what():
    with pytest.raises(LoweringError, match="no model of the product 'cooperative"):
        share_of("cooperative.f16.16x16x16")


def test_threads_that_are_here():
    @T.prim_func
    def here(c: T.Buffer((8,), "uint32")):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            if t % 2 == 1:
                c[t] = T.tvm_warp_activemask()

    out = np.zeros(8, "uint32")
    run_threads(here, out)
    np.testing.assert_array_equal(out, [0, 0xAA] * 4)


def test_arguments_are_asked_for():
    @T.prim_func
    def here(c: T.Buffer((8,), "uint32")):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            c[t] = T.uint32(1)

    with pytest.raises(ExecutionError, match="here takes 1 arguments, got 0"):
        run_threads(here)
