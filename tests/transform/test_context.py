"""PassContext: the innermost one of each thread."""

import asyncio
import threading

import pytest

import slipway as tvm
from slipway import relay, te
from slipway.compiler.kernels import LoweredKernels
from slipway.compiler.relay_build import kernel_graph
from slipway.relay import op_registry
from slipway.target import Target
from slipway.transform.context import PassContext


def in_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_contexts_nest():
    with PassContext(opt_level=3) as outer:
        with PassContext(opt_level=0) as inner:
            assert PassContext.current() is inner
        assert PassContext.current() is outer
    assert PassContext.current().opt_level == 2


def test_another_thread_has_none_of_it():
    with PassContext(opt_level=0, config={"tir.disable_vectorize": True}):
        seen = in_thread(PassContext.current)
        assert asyncio.run(asyncio.to_thread(lambda: PassContext.current().opt_level)) == 2
    assert (seen.opt_level, seen.config) == (2, {})


def test_threads_leave_in_any_order():
    """One enters first and leaves first, while the other is inside."""
    entered, left, seen = threading.Event(), threading.Event(), []

    def second():
        with PassContext(opt_level=1) as mine:
            entered.set()
            left.wait(10)
            seen.append(PassContext.current() is mine)
        seen.append(PassContext.current().opt_level)

    thread = threading.Thread(target=second)
    with PassContext(opt_level=3):
        thread.start()
        entered.wait(10)
        assert PassContext.current().opt_level == 3
    left.set()
    thread.join()
    assert seen == [True, 2]


def kernel_text(vectorized):
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] * 2, name="b")
    schedule = te.create_schedule(b.op)
    schedule[b].vectorize(schedule[b].split(b.op.axis[0], 8)[1])
    with PassContext(config={"tir.disable_vectorize": not vectorized}):
        return tvm.build(schedule, [a, b], "llvm").get_source("raw")


def test_builds_at_once_have_their_own_options():
    found = {}
    wanted = {flag: kernel_text(flag) for flag in (True, False)}
    assert wanted[True] != wanted[False]
    start = threading.Barrier(6)

    def build(number):
        start.wait()
        found[number] = [kernel_text(number % 2 == 0) for _ in range(3)]

    threads = [threading.Thread(target=build, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: [wanted[n % 2 == 0]] * 3 for n in range(6)}


def test_a_model_is_lowered_under_the_context_it_was_built_in_whichever_thread_asks():
    x = relay.var("x", shape=(8, 64))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x) * relay.const(3.0)))
    target = Target("llvm")
    with PassContext(config={"tir.disable_vectorize": True}):
        kernels = LoweredKernels(kernel_graph(module, target), target)
        (name,) = kernels
        wanted = str(kernels.lower(name))
    assert in_thread(lambda: str(kernels.lower(name))) == wanted
    other = LoweredKernels(kernel_graph(module, target), target)
    assert str(other.lower(name)) != wanted


@pytest.mark.parametrize(
    ("enter", "current", "nothing"),
    [
        (lambda: Target("c"), Target.current, None),
        (lambda: op_registry.span("node"), op_registry.current_span, ""),
    ],
)
def test_other_scopes_are_a_threads_own_too(enter, current, nothing):
    with enter():
        assert current() != nothing
        assert in_thread(current) == nothing
