"""The schedules under classic names: right numbers, and parallel loops."""

import numpy as np
import pytest
from tests.topi.checks import check, given

import slipway as tvm
from slipway import te, topi


@pytest.mark.parametrize("facade", [topi.generic, topi.generic.nn, topi.x86, topi.arm_cpu])
def test_schedules_compute_the_same_numbers(facade):
    def relu_of_conv(a, b):
        return topi.nn.relu(topi.nn.conv2d_nchw(a, b, 1, 1))

    x, w = given(1, 3, 5, 5), given(2, 3, 3, 3)

    def reference(a, b):
        padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)))
        seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        return np.maximum(np.einsum("nchwij,ocij->nohw", seen, b), 0)

    check(relu_of_conv, reference, x, w, schedule=facade.schedule_conv2d_nchw, rtol=1e-4)
    check(topi.sum, np.sum, given(4, 5), schedule=facade.schedule_reduce, rtol=1e-4)
    check(
        lambda a: topi.argmax(a, 1),
        lambda a: a.argmax(1),
        given(4, 5),
        schedule=facade.schedule_reduce,
    )
    check(
        lambda a, b: topi.elemwise_sum([a + b, a * b]),
        lambda a, b: a + b + a * b,
        given(4, 5),
        given(4, 5),
        schedule=facade.schedule_injective,
    )


def test_what_is_left_runs_in_parallel_and_the_rest_is_inlined():
    x = te.placeholder((8, 4), name="x")
    y = topi.exp(topi.multiply(x, 2.0))
    text = str(tvm.lower(topi.generic.schedule_injective([y]), [x, y], simple_mode=True))
    assert "parallel" in text
    assert "multiply" not in text


def test_traverse_inline_keeps_reductions():
    x = te.placeholder((8, 4), name="x")
    y = topi.exp(topi.sum(topi.exp(x), 1))
    s, met = te.create_schedule(y.op), []
    topi.utils.traverse_inline(s, y.op, met.append)
    assert [op.name for op in met] == ["sum", "exp"]


def test_tags_say_what_reads_what():
    x, y, k = (te.placeholder((n, 6)) for n in (4, 1, 3))
    image, filt = te.placeholder((1, 2, 5, 5)), te.placeholder((4, 2, 3, 3))
    tags = {
        "elemwise": (topi.exp(x), topi.add(x, 1), topi.clip(x, 0, 1), topi.nn.relu(x)),
        "broadcast": (topi.add(x, y), topi.where(x, x, x)),
        "injective": (
            topi.transpose(x),
            topi.take(x, topi.cast(y, "int32"), 0),
            topi.reshape(x, (24,)),
        ),
        "comm_reduce": (topi.sum(x, 1), topi.all(x)),
        "comm_reduce_idx": (topi.argmax(x, 1),),
        "injective,pad": (topi.nn.pad(x, (1, 1)),),
        "dense": (topi.nn.dense(x, k),),
        "conv2d_nchw": (topi.nn.conv2d_nchw(image, filt, 1, 0),),
        "pool_max": (topi.nn.pool2d(image, 2, 2, 1, 0, "max"),),
    }
    assert [[t.op.tag for t in group] for group in tags.values()] == [
        [tag] * len(group) for tag, group in tags.items()
    ]
    assert topi.tag.is_broadcast("elemwise")
    assert topi.tag.is_injective("injective,pad")


def test_a_generic_schedule_is_in_threads_in_the_scope_of_a_gpu():
    x = te.placeholder((4, 6))
    y = topi.exp(x)
    with tvm.target.Target("opencl"):
        axes = topi.generic.schedule_injective(y)[y].iter_var_attrs.values()
    assert {a.bind_thread.thread_tag for a in axes} == {"blockIdx.x", "threadIdx.x"}
    outside = topi.generic.schedule_elemwise(y)[y].iter_var_attrs.values()
    assert not any(a.bind_thread for a in outside)
