"""Attention in one kernel, without its matrix of scores."""

import re

import numpy as np
import pytest
import run_kernels
from tests.backends.gpu import test_ptx

import slipway as tvm
from slipway import relay
from slipway.backends.gpu.schedules import attention
from slipway.contrib import graph_executor
from slipway.relay.ops.nn.attention import AttentionAttrs, attention_call
from slipway.target import Target
from slipway.tuning.explain_gpu import explain_gpu_model

IN_STEP = "-thread_warp_size=32 -max_threads_per_block=256"
FORCED = {name: {"strategy": "threads.attention"} for name in ("nn.attention", "nn.attention_bias")}

# Shapes of query, key, value and perhaps bias, and attributes.
CASES = {
    "plain": ([(1, 5, 2, 4), (1, 7, 2, 4), (1, 7, 2, 6)], AttentionAttrs()),
    "whole chunks": ([(1, 16, 2, 32), (1, 64, 2, 32), (1, 64, 2, 40)], AttentionAttrs()),
    "causal, fewer heads": (
        [(2, 4, 19, 8), (2, 2, 19, 8), (2, 19, 2, 9)],
        AttentionAttrs(0.3, "TopLeft", "BNSH", "BNSH", "BSNH", "BNSH"),
    ),
    "transposed key": (
        [(1, 17, 3, 8), (1, 3, 8, 21), (1, 21, 3, 16)],
        AttentionAttrs(None, "BottomRight", "BSNH", "BNHS", "BSNH", "BNSH"),
    ),
    "bias": (
        [(1, 20, 4, 5), (1, 33, 1, 5), (1, 33, 1, 12), (33, 1, 1, 1)],
        AttentionAttrs(1.0, "", "BSNH", "BSNH", "BSNH", "BSNH", "TSNB"),
    ),
}


def network(name, dtype="float32", follow=lambda y: y):
    shapes, attrs = CASES[name]
    given = [relay.var(f"x{i}", shape=s, dtype=dtype) for i, s in enumerate(shapes)]
    made = follow(attention_call(attrs, *given))
    rng = np.random.default_rng(0)
    values = {f"x{i}": rng.standard_normal(s).astype(dtype) for i, s in enumerate(shapes)}
    return tvm.IRModule.from_expr(relay.Function(given, made)), values


def result(mod, values, target, where, simulator=None, forced=None):
    """Return what a module computes, and its kernels."""
    with tvm.transform.PassContext(opt_level=3, config={"schedules.force": forced or {}}):
        made = relay.build(mod, target=target)
    if simulator is not None:
        simulator.learn(made.lib.imported_modules[0])
    module = graph_executor.GraphModule(made["default"](where))
    module.run(**values)
    kernels = made.lib.imported_modules[0].kernels if made.lib.imported_modules else []
    return module.get_output(0).numpy(), kernels


def wanted(mod, values):
    return result(mod, values, Target("llvm"), tvm.cpu(0))[0]


@pytest.mark.parametrize("name", CASES)
def test_attention_is_one_kernel_in_every_language(any_device, name):
    target, simulator = run_kernels.current
    mod, values = network(name)
    found, kernels = result(mod, values, target, any_device, simulator, FORCED)
    assert len(kernels) == 1
    np.testing.assert_allclose(found, wanted(mod, values), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("knobs", [(8, 1), (8, 16), (16, 4), (64, 2)])
def test_blocks_of_any_size(simulators, monkeypatch, knobs):
    simulator = simulators("ll")
    simulator.enter()
    lanes, rows = knobs
    forced = {n: {**f, "lanes": lanes, "rows": rows} for n, f in FORCED.items()}
    for name in CASES:
        mod, values = network(name)
        found, _ = result(mod, values, Target("cuda", host="llvm"), tvm.cuda(0), simulator, forced)
        np.testing.assert_allclose(found, wanted(mod, values), rtol=1e-5, atol=2e-6)
    simulator.leave()


def test_rows_whose_first_chunks_are_masked(device):
    """Chunks without a key that counts add nothing; a row without any is no number."""
    mod, values = network("bias")
    bias = np.full((33, 1, 1, 1), -np.inf, "float32")
    bias[30] = 0.5
    found, _ = result(mod, {**values, "x3": bias}, run_kernels.OPENCL, device, None, FORCED)
    rows = np.broadcast_to(values["x2"][:, 30:31], found.shape)
    np.testing.assert_allclose(found, rows, rtol=1e-6)
    bias[30] = -np.inf
    found, _ = result(mod, {**values, "x3": bias}, run_kernels.OPENCL, device, None, FORCED)
    assert np.isnan(found).all()


def test_what_follows_is_in_the_kernel(device):
    mod, values = network("plain", follow=relay.nn.relu)
    found, kernels = result(mod, values, run_kernels.OPENCL, device, None, FORCED)
    assert len(kernels) == 1
    np.testing.assert_allclose(found, wanted(mod, values), rtol=1e-5, atol=2e-6)


def test_halves_are_summed_in_float32(device):
    mod, values = network("causal, fewer heads", "float16")
    found, kernels = result(mod, values, run_kernels.OPENCL, device, None, FORCED)
    assert found.dtype == np.float16
    assert len(kernels) == 1
    exact, _ = network("causal, fewer heads")
    wide = wanted(exact, {name: v.astype("float32") for name, v in values.items()})
    np.testing.assert_allclose(found.astype("float32"), wide, rtol=1e-3, atol=1e-4)


def test_keys_and_values_are_fetched_by_all_threads_together():
    mod, _ = network("whole chunks")
    made = relay.build(mod, target=Target(f"cuda {IN_STEP}", host="llvm"))
    source = made.lib.imported_modules[0].get_source("cuda")
    assert set(re.findall(r"float p(\d)_shared\[", source)) == {"1", "2"}


def test_one_tensor_may_be_query_key_and_value(device):
    x = relay.var("x", shape=(1, 40, 2, 8))
    mod = tvm.IRModule.from_expr(relay.Function([x], attention_call(AttentionAttrs(), x, x, x)))
    values = {"x": run_kernels.random(1, 40, 2, 8)}
    found, _ = result(mod, values, run_kernels.OPENCL, device, None, FORCED)
    np.testing.assert_allclose(found, wanted(mod, values), rtol=1e-5, atol=2e-6)


def test_it_is_the_default_where_threads_run_in_step():
    mod, _ = network("whole chunks")
    for options, count in ((IN_STEP, 1), ("", 5)):
        made = relay.build(mod, target=Target(f"opencl {options}", host="llvm"))
        assert len(made.lib.imported_modules[0].kernels) == count


def test_a_block_fits_the_memory_of_the_device():
    mod, _ = network("whole chunks")
    for most in (2048, 8192, 16384, 49152):
        target = Target(f"opencl {IN_STEP} -max_shared_memory_per_block={most}", host="llvm")
        made = relay.build(mod, target=target)  # limits are checked on the way
        assert len(made.lib.imported_modules[0].kernels) == (1 if most > 2048 else 5)
    assert attention._legal(attention._Sizes(1, 64, 64, 4096, 64), "float32", target) == []


def parts(rows=20, keys=40, size=32, dtype="float32"):
    """Two products with a softmax between them, as models of ONNX have it."""
    q, k, v = (relay.var(n, shape=(3, s, size), dtype=dtype)
               for n, s in (("q", rows), ("k", keys), ("v", keys)))  # fmt: skip
    scores = relay.nn.batch_matmul(q, k) * relay.const(np.asarray(0.25, dtype))
    transposed = relay.transpose(v, (0, 2, 1))
    made = relay.nn.batch_matmul(relay.nn.softmax(scores), transposed)
    rng = np.random.default_rng(1)
    shapes = {"q": (3, rows, size), "k": (3, keys, size), "v": (3, keys, size)}
    values = {name: rng.standard_normal(s).astype(dtype) for name, s in shapes.items()}
    return tvm.IRModule.from_expr(relay.Function([q, k, v], made)), values


def test_products_with_a_softmax_between_them_become_one(device):
    mod, values = parts()
    target = Target(f"opencl {IN_STEP}", host="llvm")
    found, kernels = result(mod, values, target, device)
    assert len(kernels) == 1
    assert "attention" in kernels[0]
    np.testing.assert_allclose(found, wanted(mod, values), rtol=1e-5, atol=2e-6)


def test_matrix_units_keep_their_products():
    mod, _ = parts(64, 64, 64, "float16")
    made = relay.build(mod, target=Target("cuda -arch=sm_80", host="llvm"))
    assert "mma.sync" in made.lib.imported_modules[0].get_source("ptx")


@pytest.mark.parametrize("arch", ["sm_53", "sm_62", "sm_75", "sm_80", "sm_90a", "sm_100"])
def test_no_register_is_spilt(arch, tmp_path):
    shape = (1, 256, 8, 64)
    given = [relay.var(f"x{i}", shape=shape) for i in range(3)]
    call = attention_call(AttentionAttrs(), *given)
    mod = tvm.IRModule.from_expr(relay.Function(given, call))
    made = relay.build(mod, target=Target(f"cuda -arch={arch}", host="llvm"))
    report = test_ptx.assembled(made.lib.imported_modules[0].get_source("ptx"), arch, tmp_path)
    assert test_ptx.spilt(report) == 0


@pytest.mark.parametrize("tag", ["qualcomm/adreno-6xx", "nvidia/jetson-nano", "nvidia/nvidia-a100"])
@pytest.mark.parametrize("keys", [197, 1001])
def test_a_block_holds_a_chunk_of_keys_whatever_their_number(tag, keys):
    """Where no chunks divide the keys, all of them were fetched: 103 KB for those of a ViT."""
    q, k, v = (relay.var(name, shape=(3, keys, 64)) for name in "qkv")
    scores = relay.nn.softmax(relay.nn.batch_matmul(q, k) * relay.const(0.125))
    body = relay.nn.batch_matmul(scores, v, transpose_b=False)
    mod = tvm.IRModule.from_expr(relay.Function([q, k, v], body))
    (found,) = explain_gpu_model(mod, Target(tag, host="llvm"))
    assert found.chosen.strategy == "threads.attention"
    (launch,) = found.launches
    knobs = dict(found.chosen.knobs)
    chunk = knobs["lanes"] * (64 + 64 + 2) + knobs["rows"] * (3 * knobs["lanes"] + 1)
    assert launch.shared_bytes <= 4 * chunk
