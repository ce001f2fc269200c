"""Computations around extern calls are searched, with the inputs that their tasks were given."""

import numpy as np
import pytest

import slipway as tvm
from slipway import auto_scheduler, te, topi
from slipway.auto_scheduler import task_inputs
from slipway.errors import TuningError

ROWS, COLUMNS, BLOCK = 24, 32, (4, 2)


def sparse_blocks(rng):
    """A matrix in blocks: (values, columns of blocks, beginnings of rows), and the same dense."""
    high, wide = BLOCK
    kept = rng.random((ROWS // high, COLUMNS // wide)) < 0.4
    indptr = np.concatenate([[0], np.cumsum(kept.sum(1))]).astype("int32")
    data = rng.standard_normal((kept.sum(), high, wide)).astype("float32")
    dense = np.zeros((ROWS, COLUMNS), "float32")
    for (i, j), block in zip(np.argwhere(kept), data, strict=True):
        dense[i * high : (i + 1) * high, j * wide : (j + 1) * wide] = block
    return (data, np.nonzero(kept)[1].astype("int32"), indptr), dense


def product(triple, name="placeholder"):
    """The graph of relu(relu(x) @ w.T + b), w in blocks."""
    x = te.placeholder((8, COLUMNS), name=name)
    parts = [te.placeholder(a.shape, str(a.dtype), name=name) for a in triple]
    bias = te.placeholder((8, ROWS), name=name)
    made = topi.nn.sparse_dense(topi.nn.relu(x), *parts)
    made = te.compute((8, ROWS), lambda i, j: made[i, j] + bias[i, j], name="biased")
    return [x, *parts, bias, topi.nn.relu(made)]


def test_around_a_sparse_product_the_search_runs_over_its_own_matrix(tmp_path):
    triple, dense = sparse_blocks(np.random.default_rng(0))
    sizes = ROWS, COLUMNS, *BLOCK, len(triple[1]), len(triple[2])
    prefix = "sparse_dense_bsr_" + "_".join(map(str, sizes)) + "_W_"
    task = auto_scheduler.SearchTask(
        compute_dag=auto_scheduler.ComputeDAG(product(triple)), target="llvm",
        task_inputs=dict(
            zip((prefix + n for n in ("data", "indices", "indptr")), map(tvm.nd.array, triple),
                strict=True)
        ),
    )  # fmt: skip
    log = tmp_path / "log.json"
    task.tune(
        auto_scheduler.TuningOptions(3, measure_callbacks=[auto_scheduler.RecordToFile(str(log))])
    )
    schedule, args = task.apply_best(log)
    rng = np.random.default_rng(1)
    x, bias = (rng.standard_normal((8, n)).astype("float32") for n in (COLUMNS, ROWS))
    out = tvm.nd.empty((8, ROWS))
    tvm.build(schedule, args, "llvm")(*map(tvm.nd.array, (x, *triple, bias)), out)
    wanted = np.maximum(np.maximum(x, 0) @ dense.T + bias, 0)
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_extern_calls_tell_computations_apart():
    def around(statement):
        a = te.placeholder((4,), name="a")
        made = te.extern((4,), [a], lambda i, o: statement(i[0], o[0]), name="made")
        return auto_scheduler.ComputeDAG(
            [a, te.compute((4,), lambda i: made[i] + 1.0, name="b")]
        ).workload_key()

    def copied(factor):
        def statement(source, made):
            builder = tvm.tir.ir_builder.create()
            read, written = builder.buffer_ptr(source), builder.buffer_ptr(made)
            with builder.for_range(0, 4) as i:
                written[i] = read[i] * factor
            return builder.get()

        return statement

    assert around(copied(2.0)) == around(copied(2.0)) != around(copied(3.0))


def test_names_of_inputs_are_registered(monkeypatch):
    monkeypatch.setattr(task_inputs, "_REGISTERED", {})

    @auto_scheduler.register_task_input_check_func
    def first_of_two(tensors):
        return {tensors[0]: "first of two"}

    a, b = (te.placeholder((4,), "int32", name="placeholder") for _ in range(2))
    table = te.placeholder((9,), name="table")
    c = te.compute((4,), lambda i: table[a[i]] + table[b[i]], name="c")
    task = auto_scheduler.SearchTask(
        compute_dag=auto_scheduler.ComputeDAG([a, b, table, c]), target="llvm",
        task_inputs={"first of two": tvm.nd.array(np.array([8, 0, 8, 1], "int32"))},
    )  # fmt: skip
    names = task_inputs.names_of_inputs(task.compute_dag.tensors, {"first of two"})
    assert names == {a: "first of two"}
    with pytest.raises(TuningError, match="override=True"):
        auto_scheduler.register_task_input_check_func(first_of_two)
    with pytest.raises(TuningError, match="under a name"):
        auto_scheduler.register_task_input_check_func(3)
