"""What stands for the parts of classic TVM that are not there yet."""

import pytest

import slipway as tvm
from slipway import auto_scheduler, autotvm, meta_schedule
from slipway.autotvm.tuner import XGBTuner
from slipway.errors import NotAvailableError


@pytest.mark.parametrize(
    "use",
    [
        lambda: autotvm.LocalRunner(number=1),
        lambda: XGBTuner(None),
        lambda: autotvm.callback.progress_bar(10),
        lambda: auto_scheduler.register_workload(len),
        lambda: meta_schedule.tune_tir(None, None),
        lambda: list(autotvm.ConfigSpace),
        lambda: type("Mine", (), {}) and exec("class Mine(f): pass", {"f": autotvm.Tuner}),
        lambda: autotvm.apply_history_best("log").__enter__(),
    ],
)
def test_using_the_tuner_says_that_there_is_none(use):
    with pytest.raises(NotAvailableError, match=r"^tvm\.\w+.*Slipway has no tuner yet"):
        use()


def test_classic_errors_are_ours():
    assert issubclass(NotAvailableError, tvm.TVMError)
    with pytest.raises(tvm.TVMError):
        tvm.target.Target("no-such-kind")
    with pytest.raises(tvm.error.DiagnosticError):
        a, b = (tvm.relay.var(n, shape=(s,)) for n, s in (("a", 2), ("b", 3)))
        tvm.relay.transform.InferType()(tvm.IRModule.from_expr(tvm.relay.Function([a, b], a + b)))
