"""Names of the modules for one kind of processor: the computation, and the module's schedule."""

import numpy as np
import pytest
from tests.topi.checks import check, given

import slipway as tvm
from slipway import te, topi
from slipway.topi.nn import conv2d_nchw

CPUS = [topi.generic, topi.x86, topi.arm_cpu, topi.hls, topi.hexagon]
GPUS = [topi.cuda, topi.gpu, topi.mali, topi.bifrost, topi.adreno, topi.intel_graphics, topi.rocm]
RUNS: list[int] = []  # sizes of the references that were computed


@pytest.mark.parametrize("module", CPUS + GPUS, ids=lambda module: module.__name__)
def test_a_computation_is_the_same_on_every_processor(module):
    assert module.conv2d_nchw is conv2d_nchw
    assert module.conv2d_nchw_winograd is conv2d_nchw
    assert module.dense_nopack is topi.nn.dense
    assert module.get_valid_counts is topi.vision.get_valid_counts
    assert module.schedule_dense_pack is module.schedule_injective
    assert {"schedule_lrn", "depthwise_conv2d_nchw"} <= set(dir(module))
    with pytest.raises(AttributeError, match=r"no attribute 'schedule_lnr'.*'schedule_lrn'"):
        _ = module.schedule_lnr


def test_a_stage_that_a_sort_reads_has_loops_of_its_own():
    def largest(a):
        return topi.topk(topi.exp(a), 3, ret_type="values")

    def sorted_by_hand(a):
        return -np.sort(-np.exp(a), -1)[:, :3]

    check(largest, sorted_by_hand, given(4, 9), schedule=topi.generic.schedule_topk)

    def counted(a):
        return list(topi.unique(topi.cast(topi.abs(a), "int64")))[3]

    x = np.array([3, -3, 2, 0, -1], "int32")
    check(counted, lambda a: np.array([4]), x, schedule=topi.generic.schedule_unique)
    check(counted, lambda a: np.array([4]), x, schedule=_inlined)


def _inlined(outs):
    plan = te.create_schedule([out.op for out in outs])
    te.schedule.AutoInlineInjective(plan)
    return plan


@pytest.mark.parametrize("module", [topi.generic, topi.x86])
def test_a_tensor_of_an_existing_schedule(module):
    def doubled(a):
        return te.compute(a.shape, lambda i, j: a[i, j] * 2.0, "doubled")

    def plan(outs):
        schedule = te.create_schedule([out.op for out in outs])
        assert module.schedule_injective_from_existing(schedule, outs[0]) is schedule
        return schedule

    check(doubled, lambda a: a * 2, given(5, 6), schedule=plan)
    made = doubled(te.placeholder((5, 6), name="x"))
    assert "parallel" in str(tvm.lower(plan([made]), [made.op.input_tensors[0], made]))


def test_references_are_computed_once():
    from slipway.contrib.pickle_memoize import memoize

    def reference_for(size):
        @memoize("tests.reference")
        def reference(scale=1):
            RUNS.append(size)
            return np.arange(size) * scale

        return reference

    assert reference_for(3)() is reference_for(3)()
    assert reference_for([3, 2][0])(2).tolist() == [0, 2, 4]
    assert reference_for(4)().tolist() == [0, 1, 2, 3]
    assert RUNS == [3, 3, 4]
