"""Rules that tile around a tensor intrinsic: what they make computes the same."""

import random

import numpy as np
import pytest

import slipway as tvm
from slipway import meta_schedule as ms
from slipway import te, tir
from slipway.blocks.from_te import create_prim_func
from slipway.blocks.trace import Trace
from slipway.errors import ScheduleError
from slipway.meta_schedule.intrin_rule import AUTO_TENSORIZE, loops_of
from slipway.script import tir as T

RNG = np.random.default_rng(3)


@T.prim_func
def rows_desc(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 4))
    B = T.match_buffer(b, (4, 8))
    C = T.match_buffer(c, (4, 8))
    with T.block("root"):
        T.reads(C[0:4, 0:8], A[0:4, 0:4], B[0:4, 0:8])
        T.writes(C[0:4, 0:8])
        for i, j, k in T.grid(4, 8, 4):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def rows(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 4))
    B = T.match_buffer(b, (4, 8))
    C = T.match_buffer(c, (4, 8))
    with T.block("root"):
        T.reads(C[0:4, 0:8], A[0:4, 0:4], B[0:4, 0:8])
        T.writes(C[0:4, 0:8])
        for i, k in T.grid(4, 4):
            C[i, T.ramp(0, 1, 8)] += T.broadcast(A[i, k], 8) * B[k, T.ramp(0, 1, 8)]


INTRIN = tir.TensorIntrin.register("test.rule_rows", rows_desc, rows)


def product(n, k, m):
    """A product with what follows it; the first matrix is computed."""
    a, b = te.placeholder((n, k), name="a"), te.placeholder((k, m), name="b")
    twice = te.compute((n, k), lambda i, j: a[i, j] * 2.0, name="twice")
    step = te.reduce_axis((0, k), name="step")
    ab = te.compute((n, m), lambda i, j: te.sum(twice[i, step] * b[step, j], axis=step), name="ab")
    return [a, b, te.compute((n, m), lambda i, j: te.max(ab[i, j], 0.0), name="out")]


def space_of(tensors, *rules):
    generator = ms.space_generator.PostOrderApply(sch_rules=[*rules])
    return ms.TuneContext(
        create_prim_func(tensors), target="llvm -num-cores 2", space_generator=generator,
        search_strategy="evolutionary",
    ).space()  # fmt: skip


def rule(**given):
    return ms.schedule_rule.MultiLevelTilingWithIntrin("test.rule_rows", **given)


def test_the_loops_of_an_intrinsic():
    assert loops_of(INTRIN) == [(4, "data"), (8, "data"), (4, "reduce")]


@pytest.mark.parametrize("size", [(8, 16, 24), (32, 64, 48)])
def test_what_the_rule_makes_computes_the_same(size):
    n, k, m = size
    space = space_of(product(n, k, m), rule(), ms.schedule_rule.ParallelizeVectorizeUnroll())
    assert len(space.defaults) == 3  # in place, and in either level of what reads it
    a, b = (RNG.standard_normal(s).astype("float32") for s in ((n, k), (k, m)))
    rng = random.Random(4)
    drawn = [*space.defaults.values(), *(space.sample(rng) for _ in range(6))]
    for candidate in filter(space.is_legal, dict.fromkeys(drawn)):
        made = space.schedule(candidate)
        assert "T.broadcast(" in made.mod.script()
        assert AUTO_TENSORIZE not in made.mod.script()
        out = tvm.nd.empty((n, m))
        tvm.build(made.mod, target="llvm")(tvm.nd.array(a), tvm.nd.array(b), out)
        np.testing.assert_allclose(out.numpy(), np.maximum(2 * a @ b, 0), 1e-4, 1e-4)


def test_the_steps_can_be_replayed_by_another_process():
    space = space_of(product(16, 32, 16), rule())
    made = space.schedule(next(iter(space.defaults.values())))
    again = tir.Schedule(create_prim_func(product(16, 32, 16)))
    Trace.apply_json_to_schedule(made.trace.as_json(), again)
    tvm.ir.assert_structural_equal(again.mod, made.mod)


def test_a_block_that_the_intrinsic_does_not_compute_is_left_to_other_rules():
    for tensors in (product(9, 16, 24), product(8, 16, 20)):  # lengths that it does not divide
        sch = tir.Schedule(create_prim_func(tensors))
        assert rule().apply(sch, sch.get_block("ab")) == [sch]
    sch = tir.Schedule(create_prim_func(product(8, 16, 24)))
    assert rule().apply(sch, sch.get_block("out")) == [sch]


def test_an_intrinsic_that_nobody_registered():
    with pytest.raises(ScheduleError, match=r"no tensor intrinsic 'test.rule_row'.*rule_rows"):
        ms.schedule_rule.MultiLevelTilingWithIntrin("test.rule_row")


def test_a_search_keeps_the_intrinsic(tmp_path):
    tensors = product(16, 32, 16)
    generator = ms.space_generator.PostOrderApply(sch_rules=[rule()])
    database = ms.tune_tir(
        create_prim_func(tensors), "llvm -num-cores 2", str(tmp_path), max_trials_global=4,
        space=generator,
    )  # fmt: skip
    made = ms.tir_integration.compile_tir(database, create_prim_func(tensors), "llvm -num-cores 2")
    assert made is None or "T.broadcast(" in made.mod.script()
