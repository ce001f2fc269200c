"""What stands for the parts of classic TVM that are not there yet."""

import pytest

import slipway as tvm
from slipway import auto_scheduler, autotvm
from slipway.errors import NotAvailableError


@pytest.mark.parametrize(
    "use",
    [
        lambda: autotvm.graph_tuner.BaseGraphTuner(None),
        lambda: list(autotvm.ApplyFixedConfig),
        lambda: (
            type("Mine", (), {}) and exec("class Mine(f): pass", {"f": autotvm.ApplyFixedConfig})
        ),
        lambda: auto_scheduler.ApplyHistoryBestOrSample(None).__enter__(),
    ],
)
def test_using_a_tuner_that_is_not_there_says_so(use):
    with pytest.raises(NotAvailableError, match=r"^tvm\.\w+.*this tuner is not there"):
        use()


def test_classic_errors_are_ours():
    assert issubclass(NotAvailableError, tvm.TVMError)
    with pytest.raises(tvm.TVMError):
        tvm.target.Target("no-such-kind")
    with pytest.raises(tvm.error.DiagnosticError):
        a, b = (tvm.relay.var(n, shape=(s,)) for n, s in (("a", 2), ("b", 3)))
        tvm.relay.transform.InferType()(tvm.IRModule.from_expr(tvm.relay.Function([a, b], a + b)))


def test_a_library_that_is_not_there_says_so():
    """Scripts take another way then, as with a TVM that was built without it."""
    from slipway.contrib import cudnn

    assert cudnn.exists() is False
    with pytest.raises(NotAvailableError, match=r"cudnn\.conv_forward is not there"):
        cudnn.conv_forward()
