"""Exceptions that nobody raised on purpose are reported as defects of ours, never as the user's."""

import operator
import subprocess
import sys

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import InternalError, ModelError, SlipwayError, defects_named
from slipway.transform.context import PassContext

count = defects_named("counting")(operator.call)


def test_an_accident_becomes_a_defect_with_its_cause():
    with pytest.raises(
        InternalError, match=r"not of what it was given: counting ended with Key"
    ) as e:
        count({}.popitem)
    assert isinstance(e.value.__cause__, KeyError)
    assert isinstance(e.value, SlipwayError)
    assert "report" in str(e.value)


@pytest.mark.parametrize("error", [ModelError("damaged"), FileNotFoundError("x"), ImportError("y")])
def test_answers_to_the_caller_stay(error):
    def work():
        raise error

    with pytest.raises(type(error)) as found:
        count(work)
    assert found.value is error


def test_what_the_users_own_code_raises_stays():
    def callback():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        count(callback)


def test_memory_that_is_not_there_is_no_defect():
    with pytest.raises(SlipwayError, match="counting needs more memory") as found:
        count(lambda: np.zeros(1 << 60, np.int8))
    assert not isinstance(found.value, InternalError)


def test_an_instrument_keeps_its_exception_in_build():
    class Instrument:
        def run_before_pass(self, *_):
            raise ZeroDivisionError("mine")

    x = relay.var("x", shape=(4,))
    with pytest.raises(ZeroDivisionError, match="mine"), PassContext(instruments=[Instrument()]):
        relay.build(relay.Function([x], relay.add(x, x)), "llvm")


def test_a_defect_of_the_compiler_is_named(monkeypatch):
    from slipway.compiler import relay_build

    monkeypatch.setattr(relay_build, "plan_storage", {}.__getitem__)
    x = relay.var("x", shape=(4,))
    with pytest.raises(InternalError, match="compiling the module ended with"):
        relay.build(relay.Function([x], relay.nn.relu(x)), "llvm")


MAIN = """
import sys
from slipway.cli import app, main

def broken(**_):
    return {}["accident"]

app.app = broken
sys.argv = ["slipway", "compile", "x.onnx"]
main.main()
"""


def test_the_command_prints_one_paragraph_and_exits_with_3():
    done = subprocess.run([sys.executable, "-c", MAIN], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert done.stderr.startswith("slipway: error: a defect of Slipway")
    assert "slipway compile ended with KeyError: 'accident'" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: relay.transform.InferType()(3), "a pass runs on a module"),
        (lambda: tvm.transform.Sequential(3), "takes a list of passes"),
        (lambda: relay.Function(3, relay.const(1)), "takes a list of variables"),
        (lambda: relay.Function([], 4), "is an expression, not 4"),
        (lambda: relay.TupleGetItem(3, 0), "takes an expression and an index"),
        (lambda: tvm.parser.parse(3), "not a int"),
        (lambda: tvm.tir.Schedule(3), "takes a function of loops"),
        (lambda: tvm.register_func("my.number", 3), "3 is no function"),
        (lambda: tvm.te.var(3), "takes a name"),
        (lambda: tvm.te.placeholder((2,), "float33"), "is not a dtype"),
        (lambda: tvm.get_global_func("nobody.has.it"), "no global function"),
        (lambda: tvm.nd.empty((-1,)), "an extent is negative"),
        (lambda: tvm.device("cpus"), "is not a kind of device"),
        (lambda: tvm.build(3), "cannot build a int"),
        (lambda: tvm.te.sum(3, axis=4), "axes made by te.reduce_axis"),
    ],
)
def test_what_cannot_be_used_is_a_tvm_error(use, words):
    with pytest.raises(tvm.TVMError, match=words) as found:
        use()
    assert not isinstance(found.value, InternalError)
    assert isinstance(found.value, (ValueError, TypeError))


def test_a_misspelt_argument_is_no_defect():
    @defects_named("reading")
    def read(model, shape=None):
        return -model + shape

    with pytest.raises(TypeError, match=r"'shap'\. Did you mean 'shape'\? It takes model, shape"):
        read(b"", shap=1)
    with pytest.raises(SlipwayError, match=r"missing 1 .* 'model'\. It takes model, shape$"):
        read()
    with pytest.raises(TypeError, match="bad operand"):
        read(b"")
    with pytest.raises(TypeError, match=r"keyword argument 'shap'.*It takes model, shape, dtype"):
        relay.frontend.from_onnx(b"", shap={})
