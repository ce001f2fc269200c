"""Values of every kind in place of what a function takes: one clear error, never a raw one.

Functions of Python's own that are called without an argument still say so themselves.
"""

import inspect
import re

import numpy as np
import pytest
from onnx import TensorProto, helper

import slipway as tvm
from slipway import relay, rpc
from slipway.contrib import graph_executor
from slipway.errors import InternalError, SlipwayError

pytestmark = pytest.mark.filterwarnings("ignore:.* is converted from")


class Odd:
    def __repr__(self):
        return "Odd()"


WEIRD = [
    None, 0, -1, 1.5, True, "", "nope", "/nonexistent/x.tar", b"bytes", (), [], {}, {"x": 1},
    {"nope": 2}, {1: 2}, [1, 2, 3], ("a", "b"), Odd(), np.zeros((2, 3)), np.array(["a"]),
    float("nan"), {"x": None}, {"x": "a"}, lambda: 0, object, tvm,
]  # fmt: skip


def relu():
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)])


@pytest.fixture(scope="module")
def model():
    return tvm.compile(relu())


@pytest.fixture(scope="module")
def module():
    x = relay.var("x", shape=(2, 3))
    return tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))


@pytest.fixture(scope="module")
def executor(module):
    return graph_executor.GraphModule(relay.build(module, "llvm")["default"](tvm.cpu()))


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    """What is a name of a file after all is written here."""
    monkeypatch.chdir(tmp_path)


def attack(function, name=None):
    """Call with each value, as the argument `name`; say which errors are not Slipway's own."""
    raw = []
    for value in WEIRD:
        try:
            function(**{name: value}) if name else function(value)
        except InternalError as error:
            raw.append(f"{value!r:.40}: {error}")
        except (SlipwayError, FileNotFoundError):
            pass
        except (TypeError, IndexError) as error:  # of the runtime's C, which names its function
            if not re.match(r"[gs]et_(in|out)put: ", str(error)):
                raw.append(f"{value!r:.40}: {type(error).__name__}: {error}")
        except Exception as error:  # what is to be found
            raw.append(f"{value!r:.40}: {type(error).__name__}: {error}")
    assert not raw, "\n".join(raw)


def parameters_of(function, skipped=()):
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = [p.name for p in inspect.signature(function).parameters.values() if p.kind in kinds]
    return [name for name in found if name not in skipped]


@pytest.mark.parametrize("name", parameters_of(tvm.compile, ("quiet",)))
def test_compile(name):
    given = {"model": relu(), "quiet": True}
    attack(lambda **kw: tvm.compile(**{**given, **kw}), name)


@pytest.mark.parametrize("name", parameters_of(relay.build, ("mod_name",)))
def test_build(module, name):
    given = {"ir_mod": module, "target": "llvm"}
    attack(lambda **kw: relay.build(**{**given, **kw}), name)


@pytest.mark.parametrize("name", ["tolerance", "seed", "reference", "x"])
def test_check(model, name):
    attack(model.check, name)


def test_a_model_that_is_called(model):
    attack(lambda v: model(v))
    attack(lambda v: model(x=v))
    attack(model.run)


def test_files_of_a_model(model, module, tmp_path):
    for use in (tvm.load, model.save, model.report, tvm.runtime.load_module):
        attack(use)
    attack(relay.build(module, "llvm").export_library)


@pytest.mark.parametrize("name", parameters_of(tvm.transform.PassContext))
def test_the_pass_context(name):
    attack(tvm.transform.PassContext, name)


@pytest.mark.parametrize("name", ["kind", "mod", "device", "target", "params"])
def test_create_executor(module, name):
    given = {"mod": module, "target": "llvm"}
    attack(lambda **kw: relay.create_executor(**{**given, **kw}), name)


def test_an_executor(executor):
    attack(lambda v: executor.set_input("x", v))
    attack(lambda v: executor.run(x=v))
    attack(executor.load_params)


def test_parameters_and_shapes(module):
    for use in (relay.save_param_dict, relay.load_param_dict, tvm.IRModule.from_expr):
        attack(use)
    attack(lambda v: relay.transform.FixShapes(v)(module))


def test_devices_and_connections():
    attack(tvm.device)
    attack(lambda v: rpc.connect("127.0.0.1", v))
    attack(lambda v: rpc.connect("127.0.0.1", 1, tls=v))
    attack(lambda v: tvm.nd.empty((2,), dtype=v))


@pytest.mark.parametrize("name", ["transpose", "concatenate", "reshape", "squeeze", "mean"])
def test_operators(name):
    attack(lambda v: getattr(relay, name)(relay.var("x", shape=(2, 3)), v))
