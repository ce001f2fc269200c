"""Whoever breaks a law is named: a pass of ours, a pass of the user's, or what was given."""

import numpy as np
import pytest

from slipway import relay, te
from slipway.compiler.optimize import optimize
from slipway.errors import InternalError, LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.function import IRModule
from slipway.ir.verify import verify_faults
from slipway.relay.expr import Function, Var
from slipway.relay.types import TensorType
from slipway.transform import verify
from slipway.transform.context import PassContext
from slipway.transform.graph.classic import FoldConstant, function_pass, module_pass
from slipway.transform.instruments import VerifyEachPass
from slipway.transform.loop.pipeline import PIPELINE, run_pipeline
from slipway.transform.manager import Pass, Sequential, Setting, run_pass

X = Var("x", TensorType((4,)))


def module():
    return IRModule.from_expr(Function((X,), relay.nn.relu(X + relay.const(np.ones(4, "float32")))))


def freeing(node):
    """A graph that uses a variable of nobody."""
    stranger = Var("stranger", TensorType((4,)))
    return node.update("main", Function((X,), relay.exp(stranger)))


def ours(name, run):
    return Pass(name, 0, run, by_user=False)


def doubled(func, setting=None):
    """Loops whose variable is defined inside its own scope."""
    i = E.Var("i")
    return func.replace(body=S.For(i, ops.const(0), ops.const(4), "serial",
                        S.For(i, ops.const(0), ops.const(4), "serial", S.NOP)))  # fmt: skip


def loops(shape=(8,)):
    t = te.placeholder(shape, name="T")
    u = te.compute(shape, lambda *i: t(*i) + 1.0, name="U")
    return te.lower(te.create_schedule(u.op), [t, u])


@pytest.mark.parametrize(
    ("break_it", "node"),
    [(lambda m, s: freeing(m), module), (doubled, loops)],
    ids=["graph", "loops"],
)
def test_a_pass_of_ours_is_a_defect_of_ours(break_it, node):
    with pytest.raises(InternalError, match=r"after pass Breaker:\n  .*(stranger|defined inside)"):
        run_pass(ours("Breaker", break_it), node(), Setting())


def test_a_pass_in_the_middle_is_the_one_that_is_named():
    steps = [FoldConstant(), ours("Second", lambda m, s: freeing(m)), FoldConstant()]
    with pytest.raises(InternalError, match="after pass Second:"):
        Sequential(steps)(module())


def test_a_pass_of_the_users_is_the_users():
    @module_pass(opt_level=0)
    def whole(mod, context):
        return freeing(mod)

    @function_pass(opt_level=0)
    def single(function, mod, context):
        return freeing(mod)["main"]

    def bare(mod, setting):
        return freeing(mod)

    for step in (whole, single, Pass("bare", 0, bare)):
        with pytest.raises(LoweringError, match=rf"a pass of yours.*after pass {step.name}:"):
            step(module())
    with pytest.raises(LoweringError, match=r"a pass of yours.*after pass doubled:"):
        run_pipeline(loops(), config={"tir.add_lower_pass": [(1, doubled)]})


def test_loops_that_a_pass_leaves_are_verified_again_only_for_stricter_laws(monkeypatch):
    verified = []

    def faults(func, stage):
        verified.append((func, stage))
        return verify_faults(func, stage)

    monkeypatch.setattr(verify, "verify_faults", faults)
    left, made = loops((2, 4)), loops((2, 4))
    results = {"first": left, "flatten_storage": left, "remove": left, "other": made, "last": made}
    steps = [ours(name, lambda f, s, made=made: made) for name, made in results.items()]
    setting = Setting()
    with pytest.raises(InternalError, match=r"after pass flatten_storage:\n.*not flat"):
        for step in steps:
            run_pass(step, left, setting)
    assert verified == [(left, "loops"), (left, "flat")]
    del verified[:], steps[1]
    setting, given = Setting(), left
    for step in steps:
        given = run_pass(step, given, setting)
    assert verified == [(left, "loops"), (made, "loops")]


def test_what_was_given_is_told_from_what_was_made():
    for broken, step in ((freeing(module()), FoldConstant()), (doubled(loops()), PIPELINE[0])):
        with pytest.raises(LoweringError, match=f"what pass {step.name} is given is not legal"):
            step(broken)
    with pytest.raises(LoweringError, match="what pass Inline is given"):
        optimize(freeing(module()))


def test_the_passes_of_a_compilation_are_watched(monkeypatch):
    """Also the first one, which the list of a backend does not have, and those inside of others."""
    from slipway.compiler import optimize as of_models

    monkeypatch.setattr(
        of_models, "INLINE", ours("Inline", lambda m, s: freeing(IRModule((("main", m["main"]),))))
    )
    with pytest.raises(InternalError, match="after pass Inline"):
        optimize(module())


def test_a_node_of_another_kind_is_no_result():
    with pytest.raises(InternalError, match="returned a Function, which is no IRModule"):
        run_pass(ours("Half", lambda m, s: m["main"]), module(), Setting())
    with pytest.raises(InternalError, match=r"returned a \w+, which is no PrimFunc"):
        run_pass(ours("Half", lambda f, s: f.body), loops(), Setting())


def test_it_is_off_unless_asked(monkeypatch):
    def breaks(setting):
        return run_pass(ours("Breaker", lambda m, s: freeing(m)), module(), setting)

    monkeypatch.delenv("SLIPWAY_VERIFY")
    breaks(Setting())
    for context in (
        PassContext(config={"relay.verify": True}),
        PassContext(instruments=[VerifyEachPass()]),
    ):
        with pytest.raises(InternalError, match="Breaker"):
            breaks(Setting(context=context))
    breaks(Setting(context=PassContext(config={"tir.verify": True})))
    monkeypatch.setenv("SLIPWAY_VERIFY", "1")
    breaks(Setting(context=PassContext(config={"relay.verify": False})))
    with pytest.raises(InternalError, match="Breaker"):
        breaks(Setting())


def test_one_instrument_serves_many_compilations():
    instrument = VerifyEachPass()
    for _ in range(2):
        with PassContext(instruments=[instrument]):
            ready = run_pipeline(loops())
            run_pipeline(loops())
            optimize(module())
    assert "vectorized" not in str(ready)


def test_a_pass_that_raises_leaves_the_instrument_usable():
    def stumbles(node, setting):
        raise RuntimeError("stumbled")

    instrument = VerifyEachPass()
    setting = Setting(context=PassContext(instruments=[instrument]))
    with pytest.raises(RuntimeError, match="stumbled"):
        run_pass(ours("Stumbles", stumbles), module(), setting)
    run_pass(FoldConstant(), module(), setting)
    with pytest.raises(InternalError, match="Breaker"):
        run_pass(ours("Breaker", lambda m, s: freeing(m)), module(), setting)


def test_a_pass_that_leaves_out_its_stage_is_not_blamed_for_it():
    """Without flatten_storage the loops behind the others are not flat; nobody says they are."""
    with PassContext(disabled_pass=["flatten_storage"]):
        steps = [p for p in PIPELINE if p.name in ("flatten_storage", "remove_unused", "cut_loops")]
        assert run_pipeline(loops(), passes=steps) is not None
