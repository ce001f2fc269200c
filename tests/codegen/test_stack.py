"""Where temporaries live: register tiles always on the stack, the rest while there is room."""

import re

import pytest

import slipway as tvm
from slipway import te
from slipway.codegen.stack import STACK_LIMIT, STACK_TOTAL, TILE_LIMIT, on_stack
from slipway.errors import CodegenError


def test_small_local_memory_always_has_a_place():
    assert on_stack("", STACK_LIMIT, 0)
    assert not on_stack("", STACK_LIMIT + 1, 0)
    assert not on_stack("", STACK_LIMIT, STACK_TOTAL)
    assert on_stack("local", TILE_LIMIT, STACK_TOTAL)
    assert not on_stack("local", TILE_LIMIT + 1, STACK_TOTAL)


def chain(stages, size):
    """Each row of A through `stages` temporaries of `size` floats, rows in parallel."""
    a = te.placeholder((8, size), name="A")
    tensors = [a]
    for number in range(stages):
        last = tensors[-1]
        tensors.append(te.compute((8, size), lambda i, j, x=last: x[i, size - 1 - j] + x[i, j],
                                  name=f"T{number}"))  # fmt: skip
    schedule = te.create_schedule(tensors[-1].op)
    rows = tensors[-1].op.axis[0]
    schedule[tensors[-1]].parallel(rows)
    for tensor in tensors[1:-1]:
        schedule[tensor].compute_at(schedule[tensors[-1]], rows)
    return schedule, [a, tensors[-1]]


@pytest.mark.parametrize(("target", "form"), [("llvm", "raw"), ("c", "c")])
def test_tasks_beyond_the_stack_do_not_share_the_static_arena(target, form):
    """Where the runtime gives no workspace, a loop whose tasks need some must run serially."""
    for stages, needs in ((4, False), (9, True)):
        with tvm.transform.PassContext(config={"tir.disable_storage_rewrite": True}):
            text = tvm.build(*chain(stages, 4000), target=target).get_source(form)
        launches = re.compile(
            "load ptr, ptr @__slipway_parallel_launch|__slipway_parallel_launch !="
        )
        (kernel,) = (part for part in text.split("\n}") if launches.search(part))
        assert ("__slipway_workspace_alloc" in kernel) == needs


@pytest.mark.parametrize(
    ("target", "bits"),
    [("llvm", 62), ("llvm", 45), ("llvm -mtriple=armv7l-linux-gnueabihf", 30)],
)
def test_temporaries_that_no_process_has_room_for(target, bits):
    a = te.placeholder((1 << bits,), name="a")
    b = te.compute(a.shape, lambda i: a[i] + 1, name="b")
    c = te.compute(a.shape, lambda i: b[i] * 2, name="c")
    with pytest.raises(CodegenError, match=r"more than a process for .* can have"):
        tvm.build(te.create_schedule(c.op), [a, c], target)
