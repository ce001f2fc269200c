"""Every misuse of a primitive is a ScheduleError that names stage and axis and says what to do."""

import pytest

from slipway import te
from slipway.errors import ScheduleError


@pytest.fixture
def setting():
    a = te.placeholder((16, 16), name="A")
    b = te.compute((16, 16), lambda i, j: a[i, j] + 1.0, name="B")
    k = te.reduce_axis((0, 16), "k")
    c = te.compute((16,), lambda i: te.sum(b[i, k], axis=k), name="C")
    d = te.compute((16,), lambda i: c[i] * 2.0, name="D")
    s = te.create_schedule(d.op)
    return type("Setting", (), {"a": a, "b": b, "c": c, "d": d, "k": k, "s": s})


MISUSES = {
    "split by zero": (
        lambda x: x.s[x.b].split(x.b.op.axis[0], factor=0),
        "axis 'i' of stage 'B' with factor=0: it must be at least 1",
    ),
    "split with both": (
        lambda x: x.s[x.b].split(x.b.op.axis[0], factor=2, nparts=2),
        "exactly one of factor",
    ),
    "split with an unknown tail": (
        lambda x: x.s[x.b].split(x.b.op.axis[0], factor=5, tail="peel"),
        "tail='peel' of a split must be 'guard' or 'shift'",
    ),
    "shift a reduction": (
        lambda x: x.s[x.c].split(x.c.op.axis[0], factor=5, tail="shift"),
        "axis 'i' of stage 'C' with tail='shift': its reduction would add some elements twice",
    ),
    "split twice": (
        lambda x: (x.s[x.b].split(x.b.op.axis[0], 2), x.s[x.b].split(x.b.op.axis[0], 2)),
        "'i' of stage 'B': it was split before into 'i.outer' and 'i.inner'",
    ),
    "axis of another stage": (
        lambda x: x.s[x.b].unroll(x.k),
        "axis 'k' in stage 'B': it belongs to another stage. This stage has the loops 'i', 'j'",
    ),
    "not an axis": (lambda x: x.s[x.b].unroll(0), "0 in stage 'B': it is not an axis"),
    "vectorize a reduction": (
        lambda x: x.s[x.c].vectorize(x.k),
        "vectorize axis 'k' of stage 'C': it is a reduction axis",
    ),
    "parallel reduction": (lambda x: x.s[x.c].parallel(x.k), "parallelize axis 'k' of stage 'C'"),
    "fuse apart": (
        lambda x: x.s[x.b].fuse(x.s[x.b].split(x.b.op.axis[0], 2)[0], x.b.op.axis[1]),
        "fuse axes 'i.outer' and 'j' of stage 'B': only iterations that are consecutive are fused; "
        "the order is 'i.outer', 'i.inner', 'j'",
    ),
    "fuse kinds": (
        lambda x: x.s[x.c].fuse(x.c.op.axis[0], x.k),
        "'i' and 'k' of stage 'C': one is a reduction axis",
    ),
    "reorder twice": (
        lambda x: x.s[x.b].reorder(x.b.op.axis[0], x.b.op.axis[0]),
        "reorder stage 'B': axis 'i' is named twice",
    ),
    "inline a reduction": (
        lambda x: x.s[x.c].compute_inline(),
        "inline stage 'C': only an elementwise compute",
    ),
    "inline the output": (lambda x: x.s[x.d].compute_inline(), "inline stage 'D': it is an output"),
    "inline an input": (lambda x: x.s[x.a].compute_inline(), "inline stage 'A': it is an input"),
    "compute at itself": (
        lambda x: x.s[x.b].compute_at(x.s[x.b], x.b.op.axis[0]),
        "stage 'B' at a loop of itself",
    ),
    "compute at no loop": (
        lambda x: x.s[x.b].compute_at(x.s[x.c], x.d.op.axis[0]),
        "compute stage 'B' at axis 'i' in stage 'C': it belongs to another stage",
    ),
    "compute at outside its reader": (
        lambda x: (
            x.s[x.b].compute_at(x.s[x.d], x.d.op.axis[0]),
            te.lower(x.s, [x.a, x.d]),
        ),
        "compute stage 'B' at axis 'i' of 'D': stage 'C' reads it too, outside that loop",
    ),
    "compute at a producer": (
        lambda x: (
            x.s[x.c].compute_at(x.s[x.b], x.b.op.axis[0]),
            te.lower(x.s, [x.a, x.d]),
        ),
        "cannot compute stage 'C' at 'B'",
    ),
    "scope of an output": (
        lambda x: x.s[x.d].set_scope("local"),
        "stage 'D' in scope 'local': it is an output",
    ),
    "bind to no thread": (
        lambda x: x.s[x.b].bind(x.b.op.axis[0], x.b.op.axis[1]),
        "bind axis 'i' of stage 'B' to .*thread_axis",
    ),
    "cache for no reader": (
        lambda x: x.s.cache_read(x.a, "local", [x.d]),
        "cache 'A' for stage 'D': it does not read that tensor. Its readers are: B",
    ),
    "cache_write after split": (
        lambda x: (x.s[x.c].split(x.k, 4), x.s.cache_write(x.c, "local")),
        "cache_write stage 'C': its axes are split or fused already",
    ),
    "rfactor of a data axis": (
        lambda x: x.s.rfactor(x.c, x.c.op.axis[0]),
        "rfactor axis 'i' of stage 'C': it is not a reduction axis",
    ),
    "unknown stage": (
        lambda x: x.s[te.placeholder((1,), name="BB")],
        "'BB' is no stage of this schedule, which has: A, B, C, D",
    ),
    "input not passed": (
        lambda x: te.lower(x.s, [x.d]),
        "input 'A' is read by stage 'B', but it is not among the arguments",
    ),
    "argument twice": (lambda x: te.lower(x.s, [x.a, x.a, x.d]), "'A' is passed twice"),
    "argument of another kind": (lambda x: te.lower(x.s, [x.a, 3]), "argument 1 is 3"),
    "two axes on one thread": (
        lambda x: [x.s[x.b].bind(a, te.thread_axis("threadIdx.x")) for a in x.b.op.axis],
        "axis 'i' is bound to it already",
    ),
    "storage_align a foreign axis": (
        lambda x: x.s[x.b].storage_align(x.k, 8, 0),
        "align axis 'k' of stage 'B': pass one of",
    ),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuse(name, setting):
    misuse, words = MISUSES[name]
    with pytest.raises(ScheduleError, match=words):
        misuse(setting)


def test_a_compute_with_another_number_of_indices():
    with pytest.raises(ValueError, match="'B': the function takes 1 indices"):
        te.compute((4, 4), lambda i: i, name="B")


def test_a_tensor_read_with_too_many_indices():
    a = te.placeholder((4,), name="A")
    with pytest.raises(ValueError, match="tensor 'A' has 1 dimensions"):
        te.compute((4,), lambda i: a[i, i])


def test_a_reduction_inside_an_expression():
    a = te.placeholder((4,), name="A")
    k = te.reduce_axis((0, 4), "k")
    with pytest.raises(ScheduleError, match="'B' uses a reduction inside a larger expression"):
        te.compute((1,), lambda _: te.sum(a[k], axis=k) + 1.0, name="B")


def test_a_reduction_over_a_data_axis():
    a = te.placeholder((4,), name="A")
    with pytest.raises(TypeError, match=r"made by te.reduce_axis"):
        te.compute((4,), lambda i: te.sum(a[i], axis=i))
