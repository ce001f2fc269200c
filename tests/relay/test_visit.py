"""Walks over graphs: what is rewritten, and what stays the object that it was."""

import numpy as np

from slipway import relay
from slipway.relay.expr import Call, Constant, Function, Let
from slipway.relay.visit import post_order, rewrite


def model():
    """A sum that two products use, one of them in a Let, behind a branch."""
    x = relay.var("x", shape=(4,))
    total = relay.add(x, relay.const(np.float32(1)))
    bound = relay.var("bound", shape=(4,))
    chosen = relay.If(relay.const(np.bool_(True)), relay.multiply(total, total), total)
    return Function([x], Let(bound, chosen, relay.multiply(bound, total)))


def test_what_no_rule_changes_stays_the_same_object():
    function = model()
    seen = []
    assert rewrite(function, seen.append) is function
    assert seen == post_order(function, into_functions=False)


def test_a_shared_expression_is_rewritten_once_and_all_that_holds_it_is_made_anew():
    function = model()
    made = []

    def rule(expr):
        if isinstance(expr, Call) and expr.op.name == "add":
            made.append(relay.subtract(*expr.args))
            return made[-1]
        return None

    changed = rewrite(function, rule)
    assert len(made) == 1
    kept = [e for e in post_order(changed) if any(e is o for o in post_order(function))]
    assert not any(isinstance(e, (Let, Call, Function)) and e is not made[0] for e in kept)
    assert [e for e in post_order(changed) if isinstance(e, Constant)] == [
        e for e in post_order(function) if isinstance(e, Constant)
    ]
    names = [e.op.name for e in post_order(changed) if isinstance(e, Call)]
    assert names == ["subtract", "multiply", "multiply"]
