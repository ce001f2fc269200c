"""The sketches: whatever their knobs are, a schedule computes what the computation says."""

import random

import numpy as np
import pytest

import slipway as tvm
from slipway import auto_scheduler, te, topi
from slipway.auto_scheduler.analysis import Role
from slipway.auto_scheduler.sketch import Sketches


def _matmul(rows=12, inner=10, columns=24):
    a = te.placeholder((rows, inner), name="A")
    b = te.placeholder((inner, columns), name="B")
    k = te.reduce_axis((0, inner), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return [a, b, c], lambda x, y: [x @ y]


def _matmul_relu_bias():
    (a, b, c), _ = _matmul(7, 13, 17)
    bias = te.placeholder((17,), name="bias")
    added = te.compute(c.shape, lambda i, j: c[i, j] + bias[j], name="added")
    return [a, b, bias, topi.nn.relu(added)], lambda x, y, z: [np.maximum(x @ y + z, 0)]


def _two_matmuls():
    (a, b, c), _ = _matmul(8, 6, 12)
    d = te.placeholder((12, 10), name="D")
    k = te.reduce_axis((0, 12), name="k")
    e = te.compute((8, 10), lambda i, j: te.sum(c[i, k] * d[k, j], axis=k), name="E")
    return [a, b, d, c, e], lambda x, y, z: [x @ y, x @ y @ z]


def _convolution():
    data = te.placeholder((1, 3, 9, 9), name="data")
    weight = te.placeholder((5, 3, 3, 3), name="weight")
    conv = topi.nn.conv2d_nchw(data, weight, 2, 1, 1)
    out = topi.nn.relu(conv)

    def reference(x, w):
        x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2]
        return [np.maximum(np.einsum("nchwij,ocij->nohw", windows, w), 0)]

    return [data, weight, out], reference


def _softmax():
    a = te.placeholder((6, 40), name="A")

    def reference(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return [e / e.sum(1, keepdims=True)]

    return [a, topi.nn.softmax(a, axis=1)], reference


def _long_sum():
    a = te.placeholder((3, 600), name="A")
    k = te.reduce_axis((0, 600), name="k")
    b = te.compute((3,), lambda i: te.sum(a[i, k], axis=k), name="B")
    return [a, b], lambda x: [x.sum(1)]


def _sum_of_all():
    a = te.placeholder((30, 20), name="A")
    i, j = te.reduce_axis((0, 30), name="i"), te.reduce_axis((0, 20), name="j")
    b = te.compute((), lambda: te.sum(a[i, j], axis=[i, j]), name="B")
    return [a, b], lambda x: [x.sum()]


def _columns():
    a = te.placeholder((50, 33), name="A")
    k = te.reduce_axis((0, 50), name="k")
    b = te.compute((33,), lambda j: te.max(a[k, j], axis=k), name="B")
    return [a, b], lambda x: [x.max(0)]


def _elementwise():
    a = te.placeholder((5, 7, 9), name="A")
    b = te.compute(a.shape, lambda *i: te.exp(a(*i)) + 1.0, name="B")
    c = te.compute(a.shape, lambda *i: b(*i) * b(*i), name="C")
    return [a, c], lambda x: [(np.exp(x) + 1) ** 2]


def _one_element():
    a = te.placeholder((4,), name="A")
    return [a, te.compute((), lambda: a[0] + a[3], name="B")], lambda x: [x[0] + x[3]]


CASES = [
    _matmul, _matmul_relu_bias, _two_matmuls, _convolution, _softmax, _long_sum, _sum_of_all,
    _columns, _elementwise, _one_element,
]  # fmt: skip


def _task(case):
    tensors, reference = case()
    key = f"sketches.{case.__name__}"
    task = auto_scheduler.SearchTask(
        compute_dag=auto_scheduler.ComputeDAG(tensors), workload_key=f'["{key}"]', target="llvm"
    )
    return task, reference


def _compute_the_same(task, reference, candidates, tmp_path):
    built = task.job(candidates).run(tmp_path / "all.so")
    assert not built.errors
    library = tvm.runtime.load_module(str(built.path))
    read, written = task.tensors
    values = np.random.default_rng(3)
    given = [values.standard_normal(task_shape(t)).astype(t.dtype) for t in read]
    wanted = reference(*given)
    for candidate in candidates:
        results = [tvm.nd.array(np.zeros(task_shape(t), t.dtype)) for t in written]
        library[built.functions[candidate]](*map(tvm.nd.array, given), *results)
        for got, right in zip(results, wanted, strict=True):
            np.testing.assert_allclose(
                got.numpy(), right, rtol=2e-5, atol=2e-5, err_msg=str(candidate)
            )


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__.strip("_"))
def test_schedules_of_all_knobs_compute_the_same(case, tmp_path):
    task, reference = _task(case)
    rng = random.Random(case.__name__)
    space = task.sketches
    defaults = list(space.defaults.values())
    candidates = list(dict.fromkeys([*defaults, *(space.sample(rng) for _ in range(4))]))
    _compute_the_same(task, reference, candidates, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__.strip("_"))
def test_a_hundred_mutations_and_crossings_compute_the_same(case, tmp_path):
    """A thousand in all, each of one before it; of small spaces as many as there are."""
    task, reference = _task(case)
    rng, space = random.Random(f"mutations {case.__name__}"), task.sketches
    found = dict.fromkeys(space.defaults.values())
    for _ in range(2000):
        one, other = rng.choice(list(found)), rng.choice(list(found))
        steps = list(space.neighbours(one))
        made = space.crossed(one, other, rng) if rng.random() < 0.3 or not steps else None
        found.setdefault(made or rng.choice(steps))
        if len(found) >= 100:
            break
    assert len(found) >= min(100, len(space) // 4)
    candidates = list(found)
    for start in range(0, len(candidates), 25):
        folder = tmp_path / str(start)
        folder.mkdir()
        _compute_the_same(task, reference, candidates[start : start + 25], folder)


def task_shape(tensor):
    return tuple(int(n) for n in tensor.shape)


def _roles(tensors):
    dag = auto_scheduler.ComputeDAG(tensors)
    found = Sketches(dag, tvm.target.Target("llvm -mcpu=haswell")).roles
    return {dag.ops[r.number].name: r for r in found}


def test_a_product_is_tiled_in_what_follows_it():
    tensors, _ = _matmul_relu_bias()
    found = _roles(tensors)
    assert found["C"].role is Role.TILED
    assert found["added"].role is Role.INLINE
    assert [r.role for r in found.values()][-1] is Role.FOLLOWER


def test_a_long_reduction_to_few_results_is_cut():
    dag = auto_scheduler.ComputeDAG(_long_sum()[0])
    assert list(Sketches(dag, tvm.target.Target("llvm")).values) == ["parts", "tiles"]


def test_equal_schedules_are_one_candidate():
    dag = auto_scheduler.ComputeDAG(_matmul()[0])
    space = Sketches(dag, tvm.target.Target("llvm"))
    big = space.with_values(space.default, **{"C.i.2": 12, "C.i.1": 4, "C.i.0": 6})
    assert dict(big.knobs)["C.i.1"] == 1  # 12 rows are all there are
    assert big == space.with_values(big, **{"C.i.1": 2})
