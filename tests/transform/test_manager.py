"""What the pass manager takes and refuses: passes, their results, instruments, contexts."""

import threading

import numpy as np
import pytest

import slipway
from slipway import relay, te
from slipway.errors import InternalError, LoweringError
from slipway.ir.function import IRModule
from slipway.transform import PassContext, Sequential, function_pass, module_pass
from slipway.transform.manager import Pass, Setting, run_pass


def module():
    x = relay.var("x", shape=(2, 3))
    return IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))


def kernel(*shape):
    a = te.placeholder(shape, name="a")
    b = te.compute(shape, lambda *i: a(*i) + 1.0, name="b")
    return te.create_schedule(b.op), [a, b]


class Veto:
    """Leaves out the passes of one name, and notes the others."""

    def __init__(self, name):
        self.name, self.seen = name, []

    def should_run(self, node, info):
        return info.name != self.name

    def run_before_pass(self, node, info):
        self.seen.append(info.name)


REFUSED = {
    "a function": (lambda: Sequential([lambda m: m]), "item 0 is .* no pass"),
    "one pass": (lambda: Sequential(relay.transform.InferType()), "takes a list of passes"),
    "a name": (lambda: Sequential(["InferType"]), "item 0 is 'InferType', which is no pass"),
    "opt_level": (lambda: PassContext(opt_level="3"), "opt_level is a number from 0 to 4"),
    "a level below the lowest": (lambda: PassContext(opt_level=-1), "from 0 to 4, got -1"),
    "a required pass by a wrong name": (
        lambda: module_pass(lambda m, c: m, name="mine", required=["FoldConstnt"]),
        "required of the pass 'mine' names 'FoldConstnt', .* Did you mean 'FoldConstant'",
    ),
    "required passes as a text": (
        lambda: Sequential([], required="InferType"),
        "required of .* takes a list",
    ),
    "a pass for its name": (
        lambda: PassContext(disabled_pass=[relay.transform.InferType()]),
        "disabled_pass takes a list of names",
    ),
    "a number for names": (lambda: PassContext(required_pass=3), "required_pass .*; 3 is none"),
    "a required pass that takes arguments": (
        lambda: module_pass(lambda m, c: m, name="mine", required=["AlterOpLayout"]),
        "'mine' requires 'AlterOpLayout', .* in a Sequential",
    ),
    "a level of fusion": (lambda: relay.transform.FuseOps("2"), "fuse_opt_level is"),
    "an instrument without methods": (lambda: PassContext(instruments=[3]), "3 is none"),
    "a class of instruments": (lambda: PassContext(instruments=[Veto]), "is none; .* an object"),
    "one instrument": (lambda: PassContext(instruments=Veto("")), "instruments is a list"),
    "leaving": (lambda: PassContext().__exit__(None, None, None), "has not entered"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_effect_is_refused(case):
    make, message = REFUSED[case]
    with pytest.raises(LoweringError, match=message):
        make()


def test_required_passes_run_before_one():
    """However it is run, and an instrument sees them."""
    seen = Veto("nothing")

    @function_pass(opt_level=1, required=["FoldConstant", "InferType"])
    def mine(function, module, context):
        assert not isinstance(function.body.args[1], relay.Call)
        return function

    x = relay.var("x", shape=(2,))
    sum_ = relay.add(x, relay.add(relay.const([1.0, 2.0]), relay.const([3.0, 4.0])))
    mod = IRModule.from_expr(relay.Function([x], sum_))
    with PassContext(instruments=[seen]):
        Sequential([mine])(mod)
    assert seen.seen == ["sequential", "FoldConstant", "InferType", "mine"]
    mine(mod)

    @slipway.tir.transform.prim_func_pass(opt_level=0, required=["tir.Simplify"])
    def plain(func, module, context):
        assert "* 1" not in str(func)
        return func

    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i * 1 + 0] * te.const(1.0, "float32"), name="b")
    plain(slipway.lower(te.create_schedule(b.op), [a, b]))


def test_a_pass_returns_what_it_takes():
    @function_pass(opt_level=0)
    def three(function, module, context):
        return 3

    @module_pass(opt_level=0)
    def nothing(module, context):
        """Forget to return the module."""

    with pytest.raises(LoweringError, match="'three' returned 3, which is no relay function"):
        three(module())
    with pytest.raises(LoweringError, match="'nothing' returned a NoneType, which is no IRModule"):
        Sequential([nothing])(module())
    ours = Pass("Ours", 0, lambda m, s: m["main"], by_user=False)
    with pytest.raises(InternalError, match="'Ours' returned a Function"):
        run_pass(ours, module(), Setting())


def test_an_instrument_that_gives_no_answer_is_named():
    class Forgetful:
        def should_run(self, node, info):
            """Look, and forget to return True."""

    with (
        PassContext(instruments=[Forgetful()]),
        pytest.raises(LoweringError, match=r"Forgetful.* returned None from should_run"),
    ):
        relay.transform.InferType()(module())


def test_each_pass_of_a_kernel_may_be_vetoed():
    everything = Veto("")
    with PassContext(instruments=[everything]):
        slipway.build(*kernel(8))
    for name in dict.fromkeys(everything.seen):
        veto = Veto(name)
        with PassContext(instruments=[veto]):
            function = slipway.build(*kernel(8))
        assert name not in veto.seen
        out = slipway.nd.array(np.zeros(8, "float32"))
        function(slipway.nd.array(np.arange(8, dtype="float32")), out)
        np.testing.assert_array_equal(out.numpy(), np.arange(8) + 1)


@pytest.mark.parametrize(
    "context",
    [{"instruments": [Veto("flatten_storage")]}, {"disabled_pass": ["flatten_storage"]}],
    ids=lambda context: next(iter(context)),
)
def test_what_code_generators_need_cannot_be_left_out(context):
    with (
        PassContext(**context),
        pytest.raises(LoweringError, match=r"'flatten_storage' cannot be left out .* 2 indices"),
    ):
        slipway.build(*kernel(4, 8))


class VetoAll(Veto):
    """Leaves out every pass that is not required."""

    def should_run(self, node, info):
        return False


@pytest.mark.parametrize(
    "context",
    [{"instruments": [VetoAll("")]}, {"disabled_pass": ["FuseOps", "KernelPerOp"]}],
    ids=lambda context: next(iter(context)),
)
def test_operators_cannot_be_left_in_no_kernel(context):
    """The graph's compiler took what was left for a function that calls itself."""
    with (
        PassContext(**context),
        pytest.raises(LoweringError, match=r"'KernelPerOp' cannot be left out .* in no kernel"),
    ):
        relay.build(module(), target="llvm")
    with PassContext(disabled_pass=["KernelPerOp"]):
        relay.build(module(), target="llvm")


def test_contexts_are_of_their_thread():
    seen = {}

    def work(level):
        with PassContext(opt_level=level):
            barrier.wait()
            seen[level] = PassContext.current().opt_level

    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=work, args=(level,)) for level in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {level: level for level in range(4)}
    assert PassContext.current().opt_level == 2
