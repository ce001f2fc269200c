"""Products through fragments: what the rule makes computes the same, by the group's intrinsics."""

import random

import numpy as np
import pytest

import slipway as tvm
from slipway import meta_schedule as ms
from slipway import te, tir
from slipway.blocks.from_te import create_prim_func
from slipway.blocks.trace import Trace
from slipway.errors import NotAvailableError, ScheduleError, TuningError
from slipway.meta_schedule.intrin_rule import AUTO_TENSORIZE, FILL
from slipway.script import tir as T

RNG = np.random.default_rng(8)


def intrinsics(name, n, m, k):
    """Register the five intrinsics of products of n by k with k by m, and return their group."""

    @T.prim_func
    def fill_desc(c: T.handle) -> None:
        C = T.match_buffer(c, (n, m), scope="wmma.accumulator")
        with T.block("root"):
            T.reads()
            T.writes(C[0:n, 0:m])
            for i, j in T.grid(n, m):
                with T.block("fill"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = T.float32(0)

    @T.prim_func
    def fill(c: T.handle) -> None:
        C = T.match_buffer(c, (n, m), scope="wmma.accumulator")
        with T.block("root"):
            T.reads()
            T.writes(C[0:n, 0:m])
            for i in range(n):
                C[i, T.ramp(0, 1, m)] = T.broadcast(T.float32(0), m)

    def copies(rows, columns, source, target):
        @T.prim_func
        def desc(a: T.handle, b: T.handle) -> None:
            A = T.match_buffer(a, (rows, columns), scope=source)
            B = T.match_buffer(b, (rows, columns), scope=target)
            with T.block("root"):
                T.reads(A[0:rows, 0:columns])
                T.writes(B[0:rows, 0:columns])
                for i, j in T.grid(rows, columns):
                    with T.block("copy"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi, vj] = A[vi, vj]

        @T.prim_func
        def impl(a: T.handle, b: T.handle) -> None:
            A = T.match_buffer(a, (rows, columns), scope=source)
            B = T.match_buffer(b, (rows, columns), scope=target)
            with T.block("root"):
                T.reads(A[0:rows, 0:columns])
                T.writes(B[0:rows, 0:columns])
                for i in range(rows):
                    B[i, T.ramp(0, 1, columns)] = A[i, T.ramp(0, 1, columns)]

        return desc, impl

    @T.prim_func
    def multiply_desc(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (n, k), scope="wmma.matrix_a")
        B = T.match_buffer(b, (k, m), scope="wmma.matrix_b")
        C = T.match_buffer(c, (n, m), scope="wmma.accumulator")
        with T.block("root"):
            T.reads(C[0:n, 0:m], A[0:n, 0:k], B[0:k, 0:m])
            T.writes(C[0:n, 0:m])
            for i, j, step in T.grid(n, m, k):
                with T.block("update"):
                    vi, vj, vs = T.axis.remap("SSR", [i, j, step])
                    C[vi, vj] = C[vi, vj] + A[vi, vs] * B[vs, vj]

    @T.prim_func
    def multiply(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (n, k), scope="wmma.matrix_a")
        B = T.match_buffer(b, (k, m), scope="wmma.matrix_b")
        C = T.match_buffer(c, (n, m), scope="wmma.accumulator")
        with T.block("root"):
            T.reads(C[0:n, 0:m], A[0:n, 0:k], B[0:k, 0:m])
            T.writes(C[0:n, 0:m])
            for i, step in T.grid(n, k):
                C[i, T.ramp(0, 1, m)] += T.broadcast(A[i, step], m) * B[step, T.ramp(0, 1, m)]

    parts = {
        "init": (fill_desc, fill),
        "load_a": copies(n, k, "global", "wmma.matrix_a"),
        "load_b": copies(k, m, "global", "wmma.matrix_b"),
        "compute": (multiply_desc, multiply),
        "store": copies(n, m, "wmma.accumulator", "global"),
    }
    for part, functions in parts.items():
        tir.TensorIntrin.register(f"test.{name}_{part}", *functions)
    return {part: f"test.{name}_{part}" for part in parts}


GROUP = intrinsics("fragment", 4, 8, 4)
WIDE = intrinsics("wide_fragment", 8, 16, 8)


def product(n, k, m, batch=0):
    """A product, of several pairs of matrices where `batch` says how many, and what follows it."""
    outer = (batch,) if batch else ()
    a, b = (te.placeholder((*outer, *s), name=x) for x, s in (("a", (n, k)), ("b", (k, m))))
    step = te.reduce_axis((0, k), name="step")
    ab = te.compute(
        (*outer, n, m),
        lambda *at: te.sum(a(*at[:-1], step) * b(*at[:-2], step, at[-1]), axis=step),
        name="ab",
    )
    return [a, b, te.compute((*outer, n, m), lambda *at: te.max(ab(*at), 0.0), name="out")]


def space_of(tensors, *rules):
    generator = ms.space_generator.PostOrderApply(sch_rules=[*rules])
    return ms.TuneContext(
        create_prim_func(tensors), target="llvm -num-cores 2", space_generator=generator,
        search_strategy="evolutionary",
    ).space()  # fmt: skip


def rule(*groups, structure="SSRSRS", **given):
    return ms.schedule_rule.MultiLevelTilingTensorCore(groups or (GROUP,), structure, **given)


@pytest.mark.parametrize("structure", ["SSRSRS", "SRS", "SSSRRSRS"])
@pytest.mark.parametrize(("size", "batch"), [((8, 16, 24), 0), ((32, 64, 48), 0), ((8, 12, 16), 3)])
def test_what_the_rule_makes_computes_the_same(size, batch, structure):
    n, k, m = size
    space = space_of(
        product(n, k, m, batch), rule(structure=structure),
        ms.schedule_rule.ParallelizeVectorizeUnroll(),
    )  # fmt: skip
    outer = (batch,) if batch else ()
    a, b = (RNG.standard_normal((*outer, *s)).astype("float32") for s in ((n, k), (k, m)))
    rng = random.Random(4)
    drawn = [*space.defaults.values(), *(space.sample(rng) for _ in range(5))]
    legal = [one for one in dict.fromkeys(drawn) if space.is_legal(one)]
    assert len(legal) > 1
    for candidate in legal:
        made = space.schedule(candidate)
        text = made.mod.script()
        assert "wmma.matrix_a" in text
        assert "wmma.accumulator" in text
        assert AUTO_TENSORIZE not in text
        assert FILL not in text
        out = tvm.nd.empty((*outer, n, m))
        tvm.build(made.mod, target="llvm")(tvm.nd.array(a), tvm.nd.array(b), out)
        np.testing.assert_allclose(out.numpy(), np.maximum(a @ b, 0), 1e-4, 1e-4)


def test_each_group_that_fits_has_designs():
    sch = tir.Schedule(create_prim_func(product(16, 32, 32)))
    both = rule(GROUP, WIDE).apply(sch, sch.get_block("ab"))
    texts = [one.mod.script() for one in both]
    assert len(both) == 2
    assert "test.fragment_compute" in texts[0]
    assert "test.wide_fragment_store" in texts[1]
    small = tir.Schedule(create_prim_func(product(4, 4, 8)))
    assert len(rule(GROUP, WIDE).apply(small, small.get_block("ab"))) == 1


def test_the_steps_can_be_replayed_by_another_process():
    space = space_of(product(16, 32, 16), rule())
    made = space.schedule(next(iter(space.defaults.values())))
    again = tir.Schedule(create_prim_func(product(16, 32, 16)))
    Trace.apply_json_to_schedule(made.trace.as_json(), again)
    tvm.ir.assert_structural_equal(again.mod, made.mod)


def test_what_no_group_computes_is_left_to_other_rules():
    for tensors in (product(9, 16, 24), product(8, 16, 20)):  # lengths that none divides
        sch = tir.Schedule(create_prim_func(tensors))
        assert rule().apply(sch, sch.get_block("ab")) == [sch]
    sch = tir.Schedule(create_prim_func(product(8, 16, 24)))
    assert rule().apply(sch, sch.get_block("out")) == [sch]


def test_groups_that_are_none():
    with pytest.raises(TuningError, match="a group of intrinsics has no 'store'"):
        rule({part: name for part, name in GROUP.items() if part != "store"})
    with pytest.raises(ScheduleError, match=r"no tensor intrinsic 'test\.fragment_stor'"):
        rule({**GROUP, "store": "test.fragment_stor"})
    with pytest.raises(TuningError, match="fragments need a level S and a level R"):
        rule(structure="RSR")
    with pytest.raises(NotAvailableError, match="use_software_pipeline"):
        rule(use_software_pipeline=True)


def test_a_search_keeps_the_fragments(tmp_path):
    func = create_prim_func(product(16, 32, 16))
    generator = ms.space_generator.PostOrderApply(sch_rules=[rule()])
    database = ms.tune_tir(
        func, "llvm -num-cores 2", str(tmp_path), max_trials_global=4, space=generator
    )
    made = ms.tir_integration.compile_tir(database, func, "llvm -num-cores 2")
    assert made is None or "wmma.accumulator" in made.mod.script()
