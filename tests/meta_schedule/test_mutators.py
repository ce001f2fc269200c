"""Mutators that look at the loops of a function: numbers of jobs, and places of blocks."""

import random

import numpy as np
import pytest

import slipway as tvm
from slipway import meta_schedule as ms
from slipway import te, tir
from slipway.blocks.from_te import create_prim_func
from slipway.blocks.trace import Trace
from slipway.errors import TuningError
from slipway.meta_schedule.mutator import jobs_by_loops


def chain(n=6, m=10, k=16):
    """What is read by a product, which something follows."""
    a, b = te.placeholder((n, k), name="a"), te.placeholder((k, m), name="b")
    twice = te.compute((n, k), lambda i, j: a[i, j] * 2.0, name="twice")
    step = te.reduce_axis((0, k), name="step")
    ab = te.compute((n, m), lambda i, j: te.sum(twice[i, step] * b[step, j], axis=step), name="ab")
    return create_prim_func([a, b, te.compute((n, m), lambda i, j: ab[i, j] + 1.0, name="out")])


def marked(sch, jobs, *names):
    for name in names:
        sch.annotate(sch.get_block(name), "meta_schedule.parallel", jobs)
    return sch


def told(mutator, func, target="llvm -num-cores 4"):
    context = ms.TuneContext(func, target=target, mutator_probs={mutator: 1.0})
    return next(iter(context.mutator_probs))


def test_other_numbers_of_jobs_mean_other_loops():
    func = chain()
    sch = marked(tir.Schedule(func), 8, "ab")
    mutator, found = told(ms.mutator.MutateParallel(16), func), set()
    for seed in range(1, 40):
        made = mutator.apply(sch.trace, seed)
        found.add(int(made.insts[-1].inputs[1]))
        assert made.insts[:-1] == sch.trace.insts[:-1]
        assert int(sch.trace.insts[-1].inputs[1]) == 8  # what it is given stays as it is
    assert found == {6}  # 60 jobs are both loops, as 8 are; a reduction is none's
    (only,) = jobs_by_loops(sch, "ab", 64)
    assert only == [6, 60]


def test_what_has_no_other_number_of_jobs_is_not_changed():
    func = chain()
    plain = tir.Schedule(func)
    assert told(ms.mutator.MutateParallel(16), func).apply(plain.trace) is None
    one = marked(tir.Schedule(func), 8, "ab")
    assert told(ms.mutator.MutateParallel(-1), func).apply(one.trace) is None
    assert told(ms.mutator.MutateParallel(1), func, "llvm -num-cores 1").apply(one.trace) is None


def test_the_postprocessing_of_a_trace_is_left_off():
    func = chain()
    sch = marked(tir.Schedule(func), 8, "ab")
    sch.enter_postproc()
    sch.unannotate(sch.get_block("ab"), "meta_schedule.parallel")
    made = told(ms.mutator.MutateParallel(16), func).apply(sch.trace, 3)
    assert not any(inst.kind.is_postproc for inst in made.insts)
    again = tir.Schedule(func)
    made.apply_to_schedule(again)
    assert "meta_schedule.parallel" in again.mod.script()


def test_all_nests_of_the_root_count():
    func = chain()
    sch = tir.Schedule(func)
    found = jobs_by_loops(sch, "root", 1000)
    assert found == [[6, 96], [6, 60], [6, 60]]


def test_a_block_goes_to_each_place_where_it_can_be():
    func = chain()
    sch = tir.Schedule(func)
    block = sch.get_block("twice")
    sch.compute_at(block, sch.sample_compute_location(block, decision=0))
    mutator, found = told(ms.mutator.MutateComputeLocation(), func), set()
    for seed in range(1, 60):
        made = mutator.apply(sch.trace, seed)
        inst = next(i for i in made.insts if i.kind.name == "SampleComputeLocation")
        found.add(made.get_decision(inst))
    legal = set(tir.Schedule(func).compute_locations("twice"))
    assert found == legal - {0}
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype("float32") for s in ((6, 16), (16, 10)))
    for location in sorted(found):
        again = tir.Schedule(func)
        sch.trace.with_decision(inst_of(sch.trace), location, True).apply_to_schedule(again)
        out = tvm.nd.empty((6, 10))
        tvm.build(again.mod, target="llvm")(tvm.nd.array(a), tvm.nd.array(b), out)
        np.testing.assert_allclose(out.numpy(), 2 * a @ b + 1, 1e-4, 1e-4)


def inst_of(trace):
    return next(i for i in trace.insts if i.kind.name == "SampleComputeLocation")


def test_a_trace_without_places_is_not_changed():
    func = chain()
    assert told(ms.mutator.MutateComputeLocation(), func).apply(tir.Schedule(func).trace) is None


@pytest.mark.parametrize("kind", [ms.mutator.MutateParallel, ms.mutator.MutateComputeLocation])
def test_a_mutator_that_was_told_of_no_function(kind):
    with pytest.raises(TuningError, match=f"{kind.__name__} changes what depends on the loops"):
        kind().apply(Trace())


def test_a_search_tries_other_numbers_of_jobs():
    func = chain(n=24, m=18)
    generator = ms.space_generator.PostOrderApply(mutator_probs={ms.mutator.MutateParallel(): 1.0})
    context = ms.TuneContext(func, target="llvm -num-cores 4", space_generator=generator)
    space = context.space()
    found = list(space.neighbours(next(iter(space.defaults.values()))))
    jobs = [one for one in found if one.strategy != space.default.strategy]
    assert jobs
    assert all(space.is_legal(one) for one in jobs)
    rng = random.Random(2)
    assert space.sample(rng) is not None


def test_the_mutators_of_processors_have_it():
    assert any(isinstance(m, ms.mutator.MutateParallel) for m in ms.mutator.create("llvm"))
    assert not any(isinstance(m, ms.mutator.MutateParallel) for m in ms.mutator.create("cuda"))
