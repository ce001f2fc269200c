"""The trace of a schedule of blocks: read, stored, and repeated on another function."""

import json

import numpy as np
import pytest

import slipway
from slipway import te, tir
from slipway.errors import ArgumentValueError, ScheduleError, StructuralMismatchError
from slipway.ir.structural import structural_equal
from slipway.tir.schedule import Instruction, InstructionKind, Trace
from slipway.tir.schedule.testing import verify_trace_roundtrip


def product(n=64, m=48, k=32):
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    axis = te.reduce_axis((0, k), "k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    return te.create_prim_func([a, b, c])


def scheduled(seed=1):
    sch = tir.Schedule(product(), seed=seed)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    io, ii = sch.split(i, sch.sample_perfect_tile(i, n=2, max_innermost_factor=16))
    jo, ji = sch.split(j, [None, 8])
    sch.reorder(io, jo, k, ii, ji)
    both = sch.fuse(io, jo)
    sch.parallel(both)
    sch.vectorize(ji)
    sch.reverse_compute_at(sch.cache_write(block, 0, "local"), both)
    sch.annotate(both, "pragma_auto_unroll_max_step", sch.sample_categorical([1, 2, 4], [0.3] * 3))
    sch.decompose_reduction(block, k)
    return sch


def by_steps(sch):
    other = tir.Schedule(product(), seed=99)
    sch.trace.apply_to_schedule(other)
    return other


def by_python(sch):
    other, names = tir.Schedule(product(), seed=99), {"tir": tir}
    exec(str(sch.trace), names)
    names["apply_trace"](other)
    return other


def by_json(sch):
    other = tir.Schedule(product(), seed=99)
    Trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json())), other)
    assert str(Trace.from_json(sch.trace.as_json())) == str(sch.trace)  # loops are l, blocks b
    return other


@pytest.mark.parametrize("how", [by_steps, by_python, by_json])
def test_a_trace_makes_the_same_function(how):
    sch = scheduled()
    other = how(sch)
    assert structural_equal(other.mod, sch.mod)
    assert other.trace.as_python() == sch.trace.as_python()
    x, y = (
        np.random.default_rng(n).random(s, "float32") for n, s in ((0, (64, 32)), (1, (32, 48)))
    )
    z = slipway.nd.empty((64, 48))
    slipway.build(other.mod, target="llvm")(slipway.nd.array(x), slipway.nd.array(y), z)
    np.testing.assert_allclose(z.numpy(), x @ y, rtol=1e-5)


def test_the_steps_as_text():
    sch = tir.Schedule(product())
    (i, *_) = sch.get_loops(sch.get_block("C"))
    sch.parallel(sch.split(i, [None, 4])[0])
    sch.transform_layout("C", ("write", 0), lambda i, j: (j, i))
    assert str(sch.trace).splitlines() == [
        "# from tvm import tir",
        "def apply_trace(sch: tir.Schedule) -> None:",
        '  b0 = sch.get_block(name="C", func_name="main")',
        "  l1, l2, l3 = sch.get_loops(block=b0)",
        "  l4, l5 = sch.split(loop=l1, factors=[None, 4], preserve_unit_iters=True)",
        "  sch.parallel(loop=l4)",
        '  sch.transform_layout(block="C", buffer=("write", 0), index_map=lambda i, j: (j, i,))',
    ]
    with pytest.raises(ScheduleError, match="JSON does not hold"):
        sch.trace.as_json()


def test_a_provider_makes_other_choices():
    sch, other = scheduled(), tir.Schedule(product())

    def smaller(inst, inputs, attrs, decision):
        return [16, 4] if inst.kind.name == "SamplePerfectTile" else decision

    sch.trace.apply_to_schedule(other, decision_provider=smaller)
    chosen = [d for i, d in other.trace.decisions.items() if i.kind.name == "SamplePerfectTile"]
    assert chosen == [[16, 4]]


def test_a_copy_has_a_trace_of_its_own_and_a_failed_step_leaves_none():
    sch = tir.Schedule(product())
    other = sch.copy()
    block = other.get_block("C")
    with pytest.raises(ScheduleError):
        other.compute_inline(block)
    assert (len(sch.trace.insts), len(other.trace.insts)) == (0, 1)


def test_simplified_drops_what_nothing_uses():
    sch = tir.Schedule(product())
    block = sch.get_block("C")
    sch.get_producers(block)
    sch.enter_postproc()
    sch.parallel(sch.get_loops(block)[0])
    kinds = [inst.kind.name for inst in sch.trace.simplified(remove_postproc=False).insts]
    assert kinds == ["GetBlock", "EnterPostproc", "GetLoops", "Parallel"]
    assert not sch.trace.simplified(remove_postproc=True).insts


def test_what_is_no_trace():
    sch = tir.Schedule(product())
    with pytest.raises(ScheduleError, match="no step of kind 'GetBlok'"):
        InstructionKind.get("GetBlok")
    with pytest.raises(ScheduleError, match="no trace as as_json"):
        Trace.apply_json_to_schedule([1], sch)
    with pytest.raises(ScheduleError, match="none before it returns"):
        Trace.apply_json_to_schedule([[["GetLoops", ["b7"], [], ["l1"]]], []], sch)
    with pytest.raises(ScheduleError, match="has 2 attributes"):
        Trace([Instruction(InstructionKind.get("GetBlock"), [], ["C"], [])]).apply_to_schedule(sch)
    with pytest.raises(ScheduleError, match="the function is another one"):
        Trace.apply_json_to_schedule(
            [[["GetBlock", [], ["C", "main"], ["b0"]], ["GetLoops", ["b0"], [], ["l1"]]], []], sch
        )


def test_steps_are_taken_again_from_their_text():
    A = te.placeholder((32, 32), name="A")
    B = te.compute((32, 32), lambda i, j: A[i, j] * 2.0, name="B")
    func = te.create_prim_func([A, B])
    sch = tir.Schedule(func)
    i, j = sch.get_loops(sch.get_block("B"))
    _, inner = sch.split(j, [None, 8])
    sch.parallel(i)
    sch.vectorize(inner)
    again = verify_trace_roundtrip(sch, func)
    assert again.trace.as_python() == sch.trace.as_python()
    with pytest.raises(ArgumentValueError, match="text_format is 'yaml'"):
        verify_trace_roundtrip(sch, func, text_format="yaml")
    sch.mod = tir.Schedule(func).mod  # what the steps did not make
    with pytest.raises(StructuralMismatchError):
        verify_trace_roundtrip(sch, func)
