"""Fused attention against NumPy: shapes, masks, layouts, heads, long sequences."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te
from slipway.backends.cpu.schedules.attention.blocks import choose_blocks, score_bytes
from slipway.backends.primitive import schedule_primitive
from slipway.backends.stages import producers
from slipway.backends.strategy import Problem, applicable, choose
from slipway.compiler.emit import build_module
from slipway.compiler.kernels import lower_kernel
from slipway.compiler.operator_module import OperatorModule
from slipway.ir.stmt import Allocate, For
from slipway.ir.visit import walk
from slipway.relay.interpret import interpret
from slipway.relay.ops.nn.attention import ATTENTION, ATTENTION_BIAS, AttentionAttrs
from slipway.relay.types import TensorType
from slipway.target import Target

TARGETS = ["llvm", "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3"]


def var(name, *shape):
    return relay.var(name, shape=shape)


def run(body, target, arrays=None, tolerance=3e-6):
    """Compile one fused function of `body`'s variables and compare it with the reference."""
    function = body.as_function().with_attr("Primitive", 1)
    chosen = Target(target)
    module = OperatorModule(
        build_module({"kernel": lower_kernel("kernel", function, chosen)}, chosen)
    )
    rng = np.random.default_rng(0)
    if arrays is None:
        shapes = [p.checked_type.shape for p in function.params]
        arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    wanted = interpret(function, *arrays)
    out = tvm.nd.empty(wanted.shape, "float32")
    module(*(tvm.nd.array(a) for a in arrays), out)
    scale = np.nanmax(np.abs(wanted))
    np.testing.assert_allclose(out.numpy(), wanted, rtol=0, atol=tolerance * scale)
    return schedule_primitive(function, chosen).implementation


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("rows", "keys", "size", "value_size"),
    [(16, 16, 8, 8), (17, 5, 3, 16), (37, 1, 8, 40), (8, 33, 32, 8), (64, 64, 64, 64),
     (197, 197, 16, 24), (100, 51, 20, 36), (4, 9, 7, 4), (33, 129, 12, 5)],
)  # fmt: skip
def test_attention_of_any_shape(target, rows, keys, size, value_size):
    q, k = var("q", 2, rows, 3, size), var("k", 2, keys, 3, size)
    body = relay.nn.attention(q, k, var("v", 2, keys, 3, value_size))
    assert run(body, target) == "attention.rows"


def qkv(rows, keys, heads=2, size=8, value_size=8, batch=1):
    """Variables in layout BSNH."""
    q, k = var("q", batch, rows, heads, size), var("k", batch, keys, heads, size)
    return q, k, var("v", batch, keys, heads, value_size)


@pytest.mark.parametrize("keys", [2501, 4096])
def test_keys_in_chunks(keys):
    target = "llvm -l2-cache-bytes=524288"  # a cache that all scores of a task do not fit
    q, k, v = qkv(80, keys, size=16, value_size=24)
    assert choose_blocks(2, 80, keys, 16, 24, Target(target)).chunk < keys
    assert run(relay.nn.attention(q, k, v), target) == "attention.rows"


@pytest.mark.parametrize("keys", [21, 1501])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1, 1), (2, 1, 1, 0), (1, 3, 1, 0), (1, 1, 18, 0), (2, 3, 18, 0), (1, 1, 18, 1)]
)
def test_masks_of_every_broadcast_shape(shape, keys):
    q, k, v = qkv(18, keys, heads=3, batch=2)
    bias = var("bias", *shape[:3], shape[3] or keys)
    assert run(relay.nn.attention(q, k, v, bias), "llvm") == "attention.rows"


@pytest.mark.parametrize("keys", [24, 1600])
def test_rows_that_see_nothing_are_nan_and_others_exact(keys):
    rng = np.random.default_rng(1)
    q, k, v = qkv(20, keys)
    body = relay.nn.attention(q, k, v, var("bias", 1, 1, 20, keys))
    arrays = [rng.standard_normal(x.checked_type.shape).astype("float32") for x in (q, k, v)]
    mask = np.where(rng.random((1, 1, 20, keys)) < 0.7, -np.inf, 0).astype("float32")
    mask[..., 3, :] = -np.inf
    mask[..., 5, : keys - 1] = -np.inf
    mask[..., -1] = np.where(np.arange(20) == 3, -np.inf, 0)
    run(body, "llvm", [*arrays, mask])
    wanted = interpret(body.as_function(), *arrays, mask)
    assert np.isnan(wanted[:, 3]).all()
    assert np.isfinite(np.delete(wanted, 3, 1)).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_reach_their_rows(value):
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal((1, 20, 2, 8)).astype("float32") for _ in range(3)]
    arrays[0][0, 7, 1, 3] = value
    run(relay.nn.attention(*qkv(20, 20)), "llvm", arrays)


@pytest.mark.parametrize("keys", [19, 64, 1555])
@pytest.mark.parametrize("causal", ["TopLeft", "BottomRight"])
def test_causal_masks(causal, keys):
    q, k, v = qkv(64, keys)
    run(relay.nn.attention(q, k, v, causal_mask=causal, scale=0.7), "llvm")
    run(relay.nn.attention(q, k, v, var("bias", 1, 1, 1, keys), causal_mask=causal), "llvm")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("heads", [1, 2])
def test_heads_that_share_key_and_value(target, heads):
    q, k, v = var("q", 2, 33, 4, 8), var("k", 2, 17, heads, 8), var("v", 2, 17, heads, 8)
    run(relay.nn.attention(q, k, v), target)


EXTENTS = {"B": 2, "N": 3, "H": 12}


@pytest.mark.parametrize(
    "layouts",
    [("BNSH", "BNSH", "BNSH", "BNSH"), ("BSNH", "BNHS", "BNSH", "BSNH"),
     ("SBNH", "SBNH", "BNHS", "SBNH"), ("NHBS", "HSNB", "SNBH", "BNHS")],
)  # fmt: skip
def test_layouts(layouts):
    attrs = AttentionAttrs(None, "", *layouts, "NTSB")
    operands = [
        var(name, *({**EXTENTS, "S": length}[axis] for axis in layout))
        for name, length, layout in zip("qkv", (19, 23, 23), layouts, strict=False)
    ]
    run(ATTENTION(*operands, attrs=attrs), "llvm")
    run(ATTENTION_BIAS(*operands, var("bias", 3, 23, 19, 1), attrs=attrs), "llvm")


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_fused_in_front_and_behind(target):
    q, k, v = qkv(33, 50, size=12, value_size=20)
    bias = relay.where(var("keep", 1, 1, 1, 50) > relay.const(0.0), relay.const(0.0),
                       relay.const(-1e9))  # fmt: skip
    scores = relay.nn.attention(q * relay.const(2.0), relay.tanh(k), v + var("c", 20), bias)
    run(relay.nn.relu(scores) + var("d", 2, 20), target)


def test_strict_numerics_keep_denormal_powers():
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((1, 20, 2, 8)).astype("float32") for _ in range(3)]
    bias = np.zeros((1, 1, 1, 20), "float32")
    bias[..., 1:] = -95  # e^-95 is a denormal number; only values behind it are not zero
    arrays[0][:] = 0
    arrays[2][:, 0] = 0
    body = relay.nn.attention(*qkv(20, 20), var("bias", 1, 1, 1, 20))
    run(body, "llvm -strict=1", [*arrays, bias], tolerance=1e-4)
    function = body.as_function().with_attr("Primitive", 1)
    with pytest.raises(AssertionError):  # else they are zero
        run(function.body, "llvm", [*arrays, bias])


def test_c_code():
    run(relay.nn.attention(*qkv(20, 45, value_size=12), var("bias", 1, 1, 20, 45)), "c")


@pytest.mark.long
def test_c_code_with_keys_in_chunks():
    run(relay.nn.attention(*qkv(16, 9000), causal_mask="BottomRight"), "c")


def test_few_rows_get_the_plain_way():
    (chosen, *_) = applicable(
        Problem("nn.attention", AttentionAttrs(), types((1, 3, 2, 8)), (), Target("llvm"))
    ) or [None]
    assert chosen.name == "loops.sums"
    run(relay.nn.attention(*qkv(3, 30)), "llvm")


def types(shape):
    return [TensorType(shape, "float32")] * 3


@pytest.mark.parametrize("cpu", ["skylake-avx512", "znver3", "haswell"])
def test_scores_stay_in_a_task(cpu):
    """4096 keys: a task holds as many scores as the cache does, not 4096 x 4096."""
    target = Target(f"llvm -mcpu={cpu}")
    function = relay.nn.attention(*qkv(4096, 4096, 4, 64, 64)).as_function()
    kernel = lower_kernel("kernel", function.with_attr("Primitive", 1), target)
    (tasks,) = (n for n in walk(kernel.body) if isinstance(n, For) and "i0.i2" in str(n.loop_var))
    each = [n.buffer.size_bytes() for n in walk(tasks) if isinstance(n, Allocate)]
    assert max(each) <= score_bytes(target)
    assert sum(each) <= 2 * score_bytes(target)
    copies = [n.buffer.size_bytes() for n in walk(kernel.body) if isinstance(n, Allocate)]
    assert sum(copies) - sum(each) == 2 * 4 * 4096 * 64 * 4  # key and value, packed


@pytest.mark.parametrize(("cpu", "few"), [("skylake-avx512", 100), ("haswell", 64)])
def test_key_and_value_are_copied_where_many_tasks_read_them_from_far_apart(cpu, few):
    target = Target(f"llvm -mcpu={cpu}")

    def copies(layout, rows):
        shape = {"BSNH": (1, rows, 3, 16), "BNSH": (1, 3, rows, 16)}[layout]
        tensors = [te.placeholder(shape, name=name) for name in "qkv"]
        attrs = AttentionAttrs(None, "", layout, layout, layout, layout)
        out = [TensorType(shape, "float32")]
        problem = Problem("nn.attention", attrs, types(shape), out, target)
        (made,) = choose(problem).compute(tensors)
        return sum(getattr(op, "tag", "") == "attention_packed" for op in producers([made]))

    assert [copies("BSNH", few), copies("BSNH", 900), copies("BNSH", 900)] == [0, 2, 0]
    run(relay.nn.attention(*qkv(900, 900, heads=3, size=12, value_size=20)), "llvm")
