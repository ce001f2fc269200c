"""Arguments of classic TVM's functions have their effect, or are refused with one clear error."""

from itertools import pairwise

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te
from slipway.contrib import graph_executor
from slipway.errors import (
    ArtifactError,
    ExecutionError,
    LoweringError,
    ScheduleError,
    TargetError,
    TypeInferenceError,
)
from slipway.ir.function import IRModule
from slipway.relay import transform
from slipway.relay.backend import Executor, Runtime
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order
from slipway.runtime.params import save_param_dict

POINTS = np.float32([0.5, -1.5])


def x_of(shape=(2,), dtype="float32"):
    return relay.var("x", shape=shape, dtype=dtype)


def calls(expr, name):
    found = (e for e in post_order(expr) if isinstance(e, relay.Call))
    return sum(getattr(e.op, "name", "") == name for e in found)


def lets(expr):
    return sum(isinstance(e, relay.Let) for e in post_order(expr))


def test_calls_that_fskip_names_are_not_shared():
    x = x_of()
    four = relay.add(
        relay.add(relay.exp(x), relay.exp(x)), relay.multiply(relay.tanh(x), relay.tanh(x))
    )
    requested = []

    def skips(call):
        requested.append(call.op.name)
        return call.op.name == "exp"

    main = transform.EliminateCommonSubexpr(fskip=skips)(IRModule.from_expr(four))["main"]
    assert (calls(main, "exp"), calls(main, "tanh")) == (2, 1)
    assert set(requested) == {"exp", "tanh", "add", "multiply"}


def inlined(expr):
    module = IRModule.from_expr(expr)
    found = transform.DeadCodeElimination(inline_once=True)(module)["main"]
    for given, wanted in zip(_flat(module["main"]), _flat(found), strict=True):
        np.testing.assert_array_equal(given, wanted)
    return found


def _flat(function):
    values = interpret(function, POINTS)
    return values if isinstance(values, tuple) else (values,)


def test_a_value_used_once_takes_the_place_of_its_name():
    x, a, b = x_of(), relay.var("a"), relay.var("b")
    found = inlined(relay.Let(a, relay.exp(x), relay.Let(b, relay.tanh(a), relay.negative(b))))
    assert lets(found) == 0
    twice = relay.Let(a, relay.exp(x), relay.Let(b, relay.tanh(a), relay.add(relay.add(b, a), b)))
    assert lets(inlined(twice)) == 2
    assert lets(transform.DeadCodeElimination()(IRModule.from_expr(twice))["main"]) == 2


def test_a_name_used_twice_by_one_call_keeps_its_let():
    x, a = x_of(), relay.var("a")
    assert lets(inlined(relay.Let(a, relay.exp(x), relay.multiply(a, a)))) == 1


def test_a_value_is_not_moved_into_a_function_that_may_be_called_often():
    x, a, p = x_of(), relay.var("a", shape=(2,)), relay.var("p", shape=(2,))
    inner = relay.Function([p], relay.add(p, a))
    body = relay.Call(inner, [relay.Call(inner, [x])])
    assert lets(inlined(relay.Let(a, relay.exp(x), body))) == 1


def test_what_only_dead_lets_use_is_dead():
    x = x_of()
    names = [x, *(relay.var(f"v{i}") for i in range(3000))]
    body = x
    for before, name in reversed(list(pairwise(names))):
        body = relay.Let(name, relay.negative(before), body)
    found = transform.DeadCodeElimination()(IRModule.from_expr(relay.Function([x], body)))["main"]
    assert found.body is x


def test_long_chains_of_lets_become_one_expression():
    x = x_of()
    names = [x, *(relay.var(f"v{i}") for i in range(3000))]
    body = names[-1]
    for before, name in reversed(list(pairwise(names))):
        body = relay.Let(name, relay.negative(before), body)
    assert lets(inlined(relay.Function([x], body))) == 0


def test_parameters_are_shared_by_the_names_that_classic_scripts_pass():
    x = x_of((1, 4))
    weights = {n: np.random.default_rng(i).random((4, 4), "float32") for i, n in enumerate("vw")}
    y = relay.nn.dense(x, relay.var("v", shape=(4, 4)))
    y = relay.nn.dense(relay.nn.relu(y), relay.var("w", shape=(4, 4)))
    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(y), y))
    lib = relay.build(module, "llvm", params=weights)
    one, two = (graph_executor.GraphModule(lib["default"](tvm.cpu(0))) for _ in range(2))
    every = {name: value.numpy() for name, value in lib.get_params().items()}
    assert len(every) == 2
    one.share_params(two, save_param_dict({**every, "unknown": POINTS}))
    left_out = sorted(every)[0]
    part = save_param_dict({k: v for k, v in every.items() if k != left_out})
    with pytest.raises(ExecutionError, match=f"does not name '{left_out}'.*set_input"):
        one.share_params(two, part)
    with pytest.raises(ArtifactError):
        one.share_params(two, b"no parameters")


def test_the_index_rank_is_compared_with_the_indices():
    x, where = x_of((3, 4, 2)), relay.var("i", shape=(2, 5), dtype="int64")
    assert relay.gather_nd(x, where, index_rank=2).checked_type.shape == (5, 2)
    with pytest.raises((TypeInferenceError, ValueError), match=r"index_rank.* 3.* has 2"):
        relay.gather_nd(x, where, index_rank=3)


@pytest.mark.parametrize("named", [{"channels": 12}, {"kernel_size": (3, 3)}, {"kernel_size": 3}])
def test_a_blocked_convolution_of_the_kernel_it_is_given(named):
    data, kernel = x_of((1, 2, 6, 7, 4)), relay.var("k", shape=(3, 2, 3, 3, 4, 4))
    made = relay.nn.contrib_conv2d_nchwc(data, kernel, data_layout="NCHW4c", **named)
    assert made.checked_type.shape == (1, 3, 4, 5, 4)


@pytest.mark.parametrize("named", [{"channels": 3}, {"kernel_size": (3, 1)}, {"kernel_size": 5}])
def test_a_blocked_convolution_of_another_kernel_is_refused(named):
    data, kernel = x_of((1, 2, 6, 7, 4)), relay.var("k", shape=(3, 2, 3, 3, 4, 4))
    with pytest.raises((TypeInferenceError, ValueError), match=f"{next(iter(named))}.* is "):
        relay.nn.contrib_conv2d_nchwc(data, kernel, data_layout="NCHW4c", **named)


def operator():
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1, name="B")
    return te.create_schedule(b.op), [a, b]


@pytest.mark.parametrize("runtime", [None, Runtime("cpp"), Runtime("crt", {"system-lib": True})])
def test_an_operator_is_built_for_either_runtime(runtime):
    built, out = tvm.build(*operator(), "llvm", runtime=runtime), tvm.nd.array(np.zeros(4, "f4"))
    built(tvm.nd.array(np.arange(4, dtype="float32")), out)
    np.testing.assert_array_equal(out.numpy(), [1, 2, 3, 4])


@pytest.mark.parametrize("wrong", ["crt", 1, Executor("graph"), {"system-lib": True}])
def test_a_runtime_or_executor_that_is_none_is_refused(wrong):
    module = IRModule.from_expr(relay.exp(x_of()))
    with pytest.raises(TargetError, match=r"runtime is .*pass Runtime\('cpp'\)"):
        tvm.build(*operator(), "llvm", runtime=wrong)
    with pytest.raises(TargetError, match=r"runtime is .*pass Runtime\('cpp'\)"):
        relay.build(module, "llvm", runtime=wrong)
    if not isinstance(wrong, Executor):
        with pytest.raises(TargetError, match=r"executor is .*pass Executor\('graph'\)"):
            relay.build(module, "llvm", executor=wrong)


def test_what_has_no_meaning_here_is_refused():
    with pytest.raises(LoweringError, match="no operator has rules under 'FTVMMine'"):
        transform.Legalize("FTVMMine")
    with pytest.raises(LoweringError, match="create_bound_attribute"):
        tvm.tir.transform.StorageFlatten(64, create_bound_attribute=True)
    with pytest.raises(LoweringError, match="type_defs"):
        IRModule.from_expr(relay.exp(x_of()), type_defs={"List": None})
    with pytest.raises(TypeError, match="num_layer"):
        relay.testing.resnet.get_workload(num_layer=50)
    schedule = tvm.tir.Schedule(te.create_prim_func(operator()[1]))
    for move in (schedule.compute_at, schedule.reverse_compute_at):
        with pytest.raises(ScheduleError, match="index=3"):
            move("B", schedule.get_loops("B")[0], index=3)


def test_numpy_is_not_given_a_copy_where_it_asks_for_none():
    given = tvm.nd.array(POINTS)
    np.testing.assert_array_equal(np.asarray(given), POINTS)
    with pytest.raises(ValueError, match="copy=False"):
        given.__array__(copy=False)
