"""Products on Apple's matrix units, against a model of which elements a thread has."""

import re

import numpy as np
import pytest
import run_kernels
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
from slipway import relay, te
from slipway.backends.gpu.banks import passes
from slipway.backends.gpu.schedules import matrix
from slipway.backends.gpu.schedules.matrix import MatrixKnobs, legal_knobs
from slipway.backends.gpu.schedules.warp_product import warp_intrinsic
from slipway.errors import CodegenError
from slipway.ir.instructions.simdgroup_products import SIMDGROUP_PRODUCTS
from slipway.target import Target

TARGET = Target("apple/m2-gpu", host="llvm")
INSTRUCTION = "simdgroup_multiply_accumulate("


@pytest.fixture
def apple(simulators):
    """A simulated GPU of Apple's."""
    found = entered(simulators, "metal")
    yield found
    found.leave()


def built(body, target=TARGET):
    return model(body, target)


def run(apple, body, **inputs):
    """Return what `body` computes on matrix units."""
    word = re.escape(INSTRUCTION)
    return run_model(apple, body, TARGET, tvm.metal(0), word, "metal", **inputs)


@pytest.mark.parametrize("kind", sorted(SIMDGROUP_PRODUCTS))
@pytest.mark.parametrize("size", [(48, 40, 72), (33, 100, 41)])
def test_every_type_and_any_extents(apple, kind, size):
    dtype = SIMDGROUP_PRODUCTS[kind].a_dtype
    rows, columns, depth = size
    rng = np.random.default_rng(0)
    x, w = array(rng, (rows, depth), dtype), array(rng, (columns, depth), dtype)
    given = var("x", *x.shape, dtype=dtype), var("w", *w.shape, dtype=dtype)
    found = run(apple, relay.nn.dense(*given, out_dtype="float32"), x=x, w=w)
    close(found, (x.astype("float64") @ w.astype("float64").T).astype("float32"))


@pytest.mark.parametrize("knobs", [(64, 64, 8, 8), (128, 32, 4, 8), (32, 128, 4, 4)])
def test_threads_with_several_sums_and_what_follows(apple, monkeypatch, knobs):
    """Only some threads of the last tile have rows; all of them come to the instruction."""
    chosen = MatrixKnobs(*knobs)
    assert chosen in legal_knobs(TARGET)
    monkeypatch.setattr(matrix, "legal_knobs", lambda target: (chosen,))
    rng = np.random.default_rng(4)
    x, w, b = (array(rng, shape, "float32") for shape in ((85, 40), (75, 40), (75,)))
    given = [var(n, *a.shape, dtype="float32") for n, a in (("x", x), ("w", w), ("b", b))]
    body = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(*given[:2]), given[2]))
    found = run(apple, body, x=x, w=w, b=b)
    assert len(apple.launched) == 1
    close(found, np.maximum(x.astype("float64") @ w.T + b, 0).astype("float32"))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_convolutions(apple, layout):
    rng = np.random.default_rng(3)
    x, w = array(rng, (2, 64, 9, 8), "float32"), array(rng, (64, 32, 3, 3), "float32")
    wanted = on_processor(strided_groups(x, w, "NCHW", "OIHW"), x=x, w=w)
    x, w, wanted, kernel = in_layout(layout, x, w, wanted)
    close(run(apple, strided_groups(x, w, layout, kernel), x=x, w=w), wanted)


def test_only_where_the_description_says_so():
    body = relay.nn.dense(var("x", 64, 64, dtype="float32"), var("w", 64, 64, dtype="float32"))
    for options in ("", " -thread_warp_size=32", " -simdgroup_matrix=1 -thread_warp_size=16"):
        code = built(body, Target(f"metal{options}", host="llvm")).lib.imported_modules[0]
        assert INSTRUCTION not in code.get_source("metal")
    options = "metal -thread_warp_size=32 -simdgroup_matrix=1"
    code = built(body, Target(options, host="llvm")).lib.imported_modules[0]
    assert INSTRUCTION in code.get_source("metal")


def test_attention_stays_one_kernel():
    """These units save fetches; they multiply no more than threads do."""
    q, k, v = (var(n, 8, 64, 64, dtype="float32") for n in "qkv")
    scores = relay.nn.softmax(relay.nn.batch_matmul(q, k))
    body = relay.nn.batch_matmul(scores, relay.transpose(v, (0, 2, 1)))
    code = built(body).lib.imported_modules[0].get_source("metal")
    assert code.count("kernel void") == 1


@pytest.mark.parametrize("kind", sorted(SIMDGROUP_PRODUCTS))
def test_fetches_from_panels_take_one_pass(kind):
    """Of two steps of a row, in requests of the threads that come together, and of a column."""
    entry = SIMDGROUP_PRODUCTS[kind]
    size = 4 if entry.a_dtype == "float32" else 2
    left, right = (64 + pad for pad in entry.pads)
    lanes = [(t // 16 * 4 + t // 2 % 4, t // 8 % 2 * 2 + t % 2) for t in range(32)]
    assert passes([row * left + 2 * pair * size for row, pair in lanes], 2 * size) == 1
    for column in range(2):
        offsets = [(2 * pair + column) * right + row * size for row, pair in lanes]
        assert passes(offsets, size) == 1


def test_other_languages_have_none():
    lane = te.thread_axis("threadIdx.x")
    entry = SIMDGROUP_PRODUCTS["simdgroup.f32"]
    a, b = te.placeholder((1, 8), name="a"), te.placeholder((2, 8), name="b")
    k = te.reduce_axis((0, 8), "k")
    c = te.compute((1, 2), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="c")
    s = te.create_schedule(c.op)
    one = te.compute((32, 1, 2), lambda t, i, j: c[i, j], name="one")
    s = te.create_schedule(one.op)
    s[one].bind(one.op.axis[0], lane)
    s[c].compute_at(s[one], one.op.axis[0])
    s[c].tensorize(c.op.axis[0], warp_intrinsic(entry, lane))
    with pytest.raises(CodegenError, match=r"in opencl have no product of a warp \(simdgroup.f32"):
        run_kernels.built(s, [a, b, one])
