"""Walks as classes: each expression once, rebuilt only where something changed, of any depth."""

import numpy as np
import pytest

from slipway import relay
from slipway.ir.function import IRModule
from slipway.relay.interpret import interpret


class Counter(relay.ExprVisitor):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def visit_call(self, call):
        super().visit_call(call)
        self.calls += 1


def every_kind():
    x = relay.var("x", shape=(4,))
    flag = relay.var("flag", shape=(), dtype="bool")
    v = relay.Var("v", x.type)
    a, b = relay.split(relay.exp(x), 2)
    body = relay.Let(v, x + 1.0, relay.If(flag, relay.Tuple((v, a)), relay.Tuple((x, b))))
    return relay.Function((x, flag), body)


def test_a_visitor_sees_each_call_once():
    counter = Counter()
    counter.visit(every_kind())
    assert counter.calls == 3
    shared = relay.exp(relay.var("x", shape=(2,)))
    counter = Counter()
    counter.visit(shared + shared)
    assert counter.calls == 2


def test_a_mutator_keeps_what_does_not_change():
    function = every_kind()
    assert relay.ExprMutator().visit(function) is function


class ToLog(relay.ExprMutator):
    def visit_call(self, call):
        call = super().visit_call(call)
        if call.op == relay.op.get("exp"):
            return relay.Call(relay.op.get("log"), list(call.args), call.attrs, call.type_args)
        return call


def test_a_mutator_replaces_calls_everywhere():
    made = ToLog().visit(every_kind())
    assert relay.analysis.list_op_freqs(made) == {"log": 1, "split": 1, "add": 1}
    assert made.checked_type == every_kind().checked_type


def test_graphs_of_any_depth():
    x = y = relay.var("x", shape=(1,))
    for _ in range(5000):
        y = relay.exp(y)
    counter = Counter()
    counter.visit(y)
    assert counter.calls == 5000
    made = ToLog().visit(relay.Function((x,), y))
    assert relay.analysis.list_op_freqs(made) == {"log": 5000}


def test_what_is_not_overridden_is_named():
    with pytest.raises(NotImplementedError, match=r"ExprFunctor does not say .* a Var"):
        relay.expr_functor.ExprFunctor().visit(relay.var("x"))


def test_classic_constructors_take_type_parameters():
    x = relay.var("x", "float32")
    call = relay.Call(relay.op.get("exp"), [x], None, None, None)
    assert call.type_args == ()
    function = relay.Function([x], call, None, [], None)
    assert function.type_params == ()
    assert float(interpret(function, np.float32(0))) == 1.0


def test_a_module_takes_functions_by_name():
    mod = IRModule({})
    x = relay.var("x", shape=(2,))
    mod["main"] = relay.Function([x], relay.exp(x))
    mod[relay.GlobalVar("other")] = relay.Function([x], relay.log(x))
    assert [v.name_hint for v in mod.get_global_vars()] == ["main", "other"]
    assert mod.get_global_var("other") in mod
    assert [gv.name_hint for gv, _ in mod.functions.items()] == ["main", "other"]
    more = IRModule({"main": relay.Function([x], relay.sin(x))})
    mod.update(more)
    assert relay.analysis.list_op_freqs(mod) == {"sin": 1, "log": 1}
