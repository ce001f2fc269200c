"""An If with branches of any size: one of them is computed, on every executor."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.relay.backend import Executor
from slipway.relay.expr import If
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import post_order
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.graph.outline_branches import outline_branches
from slipway.transform.graph.select_branches import select_branches

RNG = np.random.default_rng(4)
X = RNG.standard_normal((3, 20)).astype(np.float32)


def weights(*shape):
    return relay.const((RNG.standard_normal(shape) * 0.3).astype(np.float32))


def two_layers():
    """A product in either branch, of a value that both read, which is an output too."""
    x, flag = relay.var("x", shape=(3, 20)), relay.var("flag", shape=(), dtype="bool")
    shared = relay.tanh(x)
    one = relay.nn.softmax(relay.nn.dense(shared, weights(8, 20)))
    other = relay.nn.relu(relay.nn.dense(x, weights(8, 20))) + relay.const(np.float32(1))
    chosen = relay.If(flag, relay.Tuple((one, shared)), relay.Tuple((other, x)))
    return relay.Function((x, flag), relay.Tuple((chosen, shared)))


def run(function, flag, target="llvm", **options):
    lib = relay.build(tvm.IRModule.from_expr(function), target, **options)
    make = graph_executor.GraphModule if not options else tvm.runtime.executor.AotModule
    module = make(lib["default"](tvm.cpu()))
    module.set_input("x", X)
    module.set_input("flag", np.array(flag))
    module.run()
    return [module.get_output(i).numpy() for i in range(3)]


def expected(function, flag):
    (one, two), three = interpret(function, x=X, flag=np.array(flag))
    return one, two, three


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("options", [{}, {"executor": Executor("aot")}], ids=["graph", "aot"])
def test_one_library_computes_the_branch_that_its_input_takes(target, options):
    function = two_layers()
    for flag in (False, True):
        for got, want in zip(
            run(function, flag, target, **options), expected(function, flag), strict=True
        ):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_what_is_read_elsewhere_too_is_computed_before():
    made = outline_branches(infer_type(two_layers()))
    order = post_order(made)
    (branch,) = (e for e in order if is_call_of(e, "branch"))
    assert not any(isinstance(e, If) for e in order)
    assert sum(is_call_of(e, "tanh") for e in order) == 1
    assert [e for e in branch.args[1].fields if is_call_of(e, "tanh")]
    bodies = branch.attrs.then_body, branch.attrs.else_body
    for body in bodies:
        assert sum(is_call_of(e, "nn.dense") for e in post_order(body)) == 1


def test_small_simple_branches_are_chosen_between():
    x, flag = relay.var("x", shape=(7,)), relay.var("flag", shape=(), dtype="bool")
    small = infer_type(relay.Function((x, flag), relay.If(flag, relay.exp(x), x)))
    assert not any(isinstance(e, If) for e in post_order(select_branches(small, False)))
    large = infer_type(two_layers())
    assert select_branches(large, False) is large


def test_a_branch_inside_of_a_branch():
    x, flag = relay.var("x", shape=(3, 20)), relay.var("flag", shape=(), dtype="bool")
    positive = relay.greater(relay.sum(x), relay.const(np.float32(0)))
    inner = relay.If(
        positive, relay.nn.dense(x, weights(4, 20)), relay.nn.dense(-x, weights(4, 20))
    )
    chosen = relay.If(flag, inner, relay.nn.dense(x, weights(4, 20)))
    function = relay.Function((x, flag), relay.Tuple((chosen, x, positive)))
    for flag in (False, True):
        want = interpret(function, x=X, flag=np.array(flag))
        for got, value in zip(run(function, flag), want, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-6)


def test_the_branch_that_is_not_taken_is_not_computed():
    """Counted by time: one branch is a product a thousand times as large as the other."""
    x, flag = relay.var("x", shape=(64, 512)), relay.var("flag", shape=(), dtype="bool")
    y = x
    for _ in range(4):
        y = relay.nn.dense(y, weights(512, 512))
    function = relay.Function((x, flag), relay.If(flag, y, relay.nn.softmax(x)))
    lib = relay.build(tvm.IRModule.from_expr(function), "llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.set_input("x", np.zeros((64, 512), np.float32))
    took = {}
    for flag in (True, False):
        module.set_input("flag", np.array(flag))
        took[flag] = min(module.benchmark(tvm.cpu(), number=2, repeat=3).results)
    assert took[False] < took[True] / 4


def test_what_both_branches_need_is_computed_before_and_once():
    x, flag = relay.var("x", shape=(3, 20)), relay.var("flag", shape=(), dtype="bool")
    shared = relay.nn.dense(x, weights(20, 20))
    chosen = relay.If(flag, relay.nn.softmax(shared), relay.nn.dense(shared, weights(20, 20)))
    made = outline_branches(infer_type(relay.Function((x, flag), chosen)))
    (branch,) = (e for e in post_order(made) if is_call_of(e, "branch"))
    assert [is_call_of(e, "nn.dense") for e in branch.args[1].fields] == [True]
    bodies = branch.attrs.then_body, branch.attrs.else_body
    found = [sum(is_call_of(e, "nn.dense") for e in post_order(body)) for body in bodies]
    assert found == [0, 1]


def test_a_loop_inside_of_a_branch():
    """Its first number is a constant, which only the branch has."""
    kinds = relay.TensorType((3, 20)), relay.TensorType((), "int32")
    (a, n), (b, m) = (
        [relay.Var(name, t) for name, t in zip("an", kinds, strict=True)] for _ in range(2)
    )
    going = relay.Function([a, n], relay.less(n, relay.const(3)))
    step = relay.Tuple((relay.tanh(relay.nn.dense(b, weights(20, 20))), m + relay.const(1)))
    x, flag = relay.var("x", shape=(3, 20)), relay.var("flag", shape=(), dtype="bool")
    last = relay.while_loop(going, relay.Function([b, m], step), [x, relay.const(0)])[0]
    function = relay.Function((x, flag), relay.Tuple((relay.If(flag, last, x), x, flag)))
    for flag in (False, True):
        want = interpret(function, x=X, flag=np.array(flag))
        for got, value in zip(run(function, flag), want, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("executor", [Executor("graph"), Executor("aot")])
def test_a_size_in_a_branch_counts_where_it_is_taken(executor):
    """Any number may stand in a run that takes the other branch."""
    x, count = relay.var("x", shape=(9,)), relay.var("count", shape=(1,), dtype="int32")
    flag = relay.var("flag", shape=(), dtype="bool")
    first = relay.sized(x, count, relay.Dim("first", 2, 9))
    chosen = relay.If(flag, relay.sum(relay.cumsum(first, 0)), relay.const(0.0))
    mod = tvm.IRModule.from_expr(relay.Function((x, count, flag), chosen))
    library = relay.build(mod, "llvm", executor=executor)
    module = graph_executor.GraphModule(library["default"](tvm.cpu()))
    data = np.arange(9, dtype=np.float32)
    for number, taken in ((2, True), (-7, False), (9, True), (100, False), (2, False)):
        module.run(x=data, count=np.array([number], np.int32), flag=np.array(taken))
        want = np.cumsum(data[:number]).sum() if taken else 0
        assert module.get_output(0).numpy() == want
    with pytest.raises(tvm.TVMError, match="first"):
        module.run(x=data, count=np.array([10], np.int32), flag=np.array(True))


@pytest.mark.parametrize("options", [{}, {"executor": Executor("aot")}], ids=["graph", "aot"])
def test_what_one_branch_and_something_after_it_read(options):
    """The second If reads in one branch what the first one makes, and so does what follows."""
    x, flag = relay.var("x", shape=(3, 20)), relay.var("flag", shape=(), dtype="bool")
    first = relay.If(
        flag, relay.Tuple((relay.nn.dense(x, weights(8, 20)), x)),
        relay.Tuple((relay.nn.dense(relay.tanh(x), weights(8, 20)), x)),
    )  # fmt: skip
    one = relay.exp(relay.TupleGetItem(first, 0))
    second = relay.If(flag, relay.nn.softmax(one), relay.nn.dense(x, weights(8, 20)))
    function = relay.Function((x, flag), relay.Tuple((second, one, relay.negative(one))))
    for taken in (False, True):
        wants = interpret(function, x=X, flag=np.array(taken))
        for got, want in zip(run(function, taken, **options), wants, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
