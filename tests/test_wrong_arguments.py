"""Values of every kind in place of what a function takes: one clear error, never a raw one.

Functions of Python's own that are called without an argument still say so themselves.
"""

import inspect
import operator
import re

import numpy as np
import pytest
from onnx import TensorProto, helper

import slipway as tvm
from slipway import auto_scheduler, autotvm, llm, micro, relay, rpc, te, topi
from slipway import meta_schedule as ms
from slipway.arguments import explained, is_whole, kinds_of
from slipway.contrib import graph_executor
from slipway.errors import InternalError, SlipwayError

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* is converted from"),
    pytest.mark.filterwarnings("ignore:pragma .* means nothing here"),
]


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


def schedule():
    a = te.placeholder((8, 16), name="A")
    k = te.reduce_axis((0, 16), name="k")
    b = te.compute((8, 16), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((8,), lambda i: te.sum(b[i, k], axis=k), name="C")
    return te.create_schedule(c.op), a, b, c


@pytest.mark.parametrize("use", [
    lambda s, a, b, c, v: s.cache_read(a, "local", v),
    lambda s, a, b, c, v: s.cache_write(v, "local"),
    lambda s, a, b, c, v: s.rfactor(c, c.op.reduce_axis[0], v),
    lambda s, a, b, c, v: s.create_group(v, a),
    lambda s, a, b, c, v: s.create_group(c, v),
    lambda s, a, b, c, v: s[b].split(b.op.axis[0], v),
    lambda s, a, b, c, v: s[b].compute_at(s[c], v),
    lambda s, a, b, c, v: s[b].pragma(b.op.axis[0], v, 1),
    lambda s, a, b, c, v: s[b].pragma(b.op.axis[0], "auto_unroll_max_step", v),
    lambda s, a, b, c, v: s[b].storage_align(b.op.axis[0], v, 0),
    lambda s, a, b, c, v: s[b].storage_align(b.op.axis[0], 16, v),
    lambda s, a, b, c, v: tvm.lower(s, v),
    lambda s, a, b, c, v: tvm.lower(s, [a, c], binds=v),
    lambda s, a, b, c, v: tvm.build(s, [a, c], name=v),
    lambda s, a, b, c, v: te.reduce_axis(v),
    lambda s, a, b, c, v: te.compute((2,), lambda i: v),
    lambda s, a, b, c, v: te.compute((2,), lambda i: a[0, i], attrs=v),
    lambda s, a, b, c, v: tvm.tir.decl_buffer((2, 3), strides=v),
])  # fmt: skip
def test_schedules(use):
    attack(lambda v: use(*schedule(), v))


def test_functions_that_are_built():
    s, a, _, c = schedule()
    built = tvm.build(s, [a, c], "llvm")
    attack(built.get_source)
    attack(built.save)
    attack(lambda v: built.time_evaluator(built.entry_name, v))


def arguments_of(functions):
    """Return each argument of each function."""
    return [
        pytest.param(function, argument, id=f"{name}-{argument}")
        for name, function in functions.items()
        for argument in parameters_of(function)
    ]


RELAY = ("nn.avg_pool2d", "nn.conv2d", "nn.pad", "one_hot", "layout_transform", "arange",
         "image.resize2d", "nn.upsampling", "vision.multibox_prior")  # fmt: skip
TOPI = ("sum", "concatenate", "matmul", "nn.pad", "nn.conv2d_nchw", "tensordot", "take")


def required_of(function):
    given = inspect.signature(function).parameters.values()
    return [p.name for p in given if p.default is p.empty]


def found(module, names):
    return {name: operator.attrgetter(name)(module) for name in names}


GIVEN = {
    "axis": 1, "pool_size": (2, 2), "size": (4, 4), "pad_width": ((0, 0),) * 4, "depth": 4,
    "on_value": 1.0, "off_value": 0.0, "a_min": 0.0, "a_max": 1.0, "src_layout": "NCHW",
    "dst_layout": "NHWC", "start": 0, "begin": (0,), "end": (1,), "pad_before": (0, 0, 1, 1),
    "dilation": 1, "stride": 1, "padding": 0, "strides": (1, 1), "kernel": (2, 2), "roi": None,
    "axes": 1, "pool_type": "max", "keepdims": False,
}  # fmt: skip


@pytest.mark.parametrize(("function", "argument"), arguments_of(found(relay, RELAY)))
def test_arguments_of_operators(function, argument):
    def use(**wrong):
        names = required_of(function)
        given = {n: GIVEN.get(n, relay.var("x", shape=(1, 8, 6, 6))) for n in names}
        made = function(**{**given, **wrong})
        made = made.astuple() if hasattr(made, "astuple") else made
        relay.transform.InferType()(tvm.IRModule.from_expr(made))

    attack(use, argument)


@pytest.mark.parametrize(("function", "argument"), arguments_of(found(topi, TOPI)))
def test_arguments_of_tensor_expressions(function, argument):
    def use(**wrong):
        names = required_of(function)
        given = {n: GIVEN.get(n, te.placeholder((1, 8, 6, 6))) for n in names}
        function(**{**given, **wrong})

    attack(use, argument)


@pytest.mark.parametrize(("function", "given"), [
    (ms.extract_tasks, {"mod": None, "target": "llvm"}),
    (ms.database.JSONDatabase, {"work_dir": "w"}),
    (auto_scheduler.TaskScheduler, {"tasks": []}),
    (auto_scheduler.RecordToFile, {}),
    (autotvm.record.pick_best, {"in_file": "a", "out_file": "b"}),
    (rpc.ServerOptions, {}),
    (micro.SerialPort, {"path": "/dev/none"}),
    (micro.export_model_library_format, {"mod": None, "file_name": "m.tar"}),
    (relay.quantize.quantize, {"mod": None}),
    (llm.Sampling, {}),
], ids=lambda value: getattr(value, "__name__", ""))  # fmt: skip
@pytest.mark.parametrize("value", [-1, 1.5, b"bytes", [1, 2], Odd(), lambda: 0, tvm])
def test_what_tunes_serves_and_measures(module, function, given, value):
    given = {name: module if part is None else part for name, part in given.items()}
    for argument in parameters_of(function):
        try:
            function(**{**given, argument: value})
        except InternalError as error:
            pytest.fail(f"{argument}: {error}")
        except (SlipwayError, FileNotFoundError):
            pass


def test_the_argument_at_fault_is_named():
    x = relay.var("x", shape=(1, 8, 6, 6))
    with pytest.raises(TypeError, match=r"argument 'layout' is 5; write text"):
        relay.nn.avg_pool2d(x, layout=5)
    with pytest.raises(TypeError, match=r"argument 'x' is None; write a tensor"):
        topi.exp(None)


def test_an_error_that_no_argument_explains_stays():
    def broken(x: "int") -> int:
        return {}["our own"]

    with pytest.raises(KeyError):
        explained(broken, kinds_of(is_whole))(1)
