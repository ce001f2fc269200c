"""Functions that converters and code generators of classic scripts are written with."""

import subprocess
import sys

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te
from slipway.errors import LoweringError, ModelError
from slipway.relay.backend import name_transforms as names
from slipway.relay.backend.utils import mangle_module_name
from slipway.relay.frontend import common
from slipway.target import Target


def test_names_of_c():
    made = names.prefix_generated_name(["model", "Run2"])
    assert made == "TVMGen_model_Run2"
    assert names.to_c_function_style(made) == "TVMGenModelRun2"
    assert names.to_c_variable_style(names.prefix_name("Device")) == "tvm_device"
    assert names.to_c_constant_style(made) == "TVMGEN_MODEL_RUN2"
    assert names.sanitize_name("input:0+") == "input_0_"
    assert mangle_module_name("net") == "tvmgen_net"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: names.to_c_function_style("Woof"), "Function not TVM prefixed"),
        (lambda: names.to_c_variable_style(""), "Variable name is empty"),
        (lambda: names.prefix_name([]), "Name segments empty"),
        (lambda: names.prefix_name(["a", ""]), "Name segment is empty"),
        (lambda: mangle_module_name("a-b"), "invalid characters"),
    ],
)
def test_names_that_c_cannot_have(make, words):
    with pytest.raises(tvm.TVMError, match=words):
        make()


def test_what_converters_ask():
    x, w = relay.var("x", shape=(2, 3)), relay.var("w")
    assert common.infer_shape(relay.nn.dense(x, w, units=5)) == (2, 5)
    kernel = relay.var("k", shape=(8, 4, 3, 3))
    assert common.infer_channels(kernel) == 8
    assert common.infer_channels(kernel, transpose=True) == 4
    assert common.get_name(x) == "x"
    doubled = relay.const(np.float32([1, 2])) * relay.var("scale", shape=())
    found = common.infer_value(doubled, {"scale": np.float32(4)})
    assert found.numpy().tolist() == [4, 8]
    with pytest.raises(ModelError, match="depends on 'scale'"):
        common.infer_value(doubled, {})
    with pytest.raises(ModelError, match="takes a variable"):
        common.get_name(doubled)
    folded = common.fold_constant(relay.const(np.float32([1, 2])) + relay.const(1.0))
    assert folded.data.numpy().tolist() == [2, 3]


def test_functions_of_the_module_in_types():
    y = relay.var("y", shape=(4,))
    mod = tvm.IRModule.from_functions({"f": relay.Function([y], relay.stack([y, y], 0))})
    assert common.infer_shape(relay.GlobalVar("f")(relay.var("x", shape=(4,))), mod) == (2, 4)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_loads_and_stores_of_pointers(target):
    n, i = te.size_var("n"), te.var("i")
    row = tvm.tir.decl_buffer((n,), "int32")
    step = tvm.tir.Store(row.data, tvm.tir.Load("int32", row.data, i) + 1, i + 1)
    loop = tvm.tir.For(i, 0, n - 1, tvm.tir.ForKind.SERIAL, step)
    func = tvm.tir.PrimFunc([row], loop).with_attr("global_symbol", "main")
    built = tvm.driver.build(tvm.IRModule.from_expr(func), target=target)
    values = tvm.nd.array(np.zeros(10, np.int32))
    built["main"](values)
    np.testing.assert_array_equal(values.numpy(), np.arange(10))


def test_predicates_of_pointers_are_refused():
    row = tvm.tir.decl_buffer((4,), "int32")
    assert tvm.tir.Load("int32", row.data, 0, tvm.tir.const(1, "bool")).dtype == "int32"
    with pytest.raises(LoweringError, match="no predicate here"):
        tvm.tir.Store(row.data, 1, 0, te.var("p", "bool"))


def test_targets_and_their_host_as_pairs():
    target, host = Target.check_and_update_host_consist("cuda", "llvm")
    assert target.host.kind.name == host.kind.name == "llvm"
    table, host = Target.check_and_update_host_consist({Target("cuda"): 1}, "llvm")
    assert [t.host.kind.name for t in table] == [host.kind.name] == ["llvm"]
    by_device, _ = Target.check_and_update_host_consist({"dev": "llvm"}, "llvm", False)
    assert by_device["dev"].host.kind.name == "llvm"
    assert Target.check_and_update_host_consist(None) == (None, None)


def test_kinds_under_their_names_of_tvm_0_8():
    runtime, executor = relay.backend.Runtime, relay.backend.Executor
    assert runtime("c", {"system-lib": True}) == runtime("crt", {"system-lib": True})
    assert executor.list_executors() == ["graph", "aot"]
    assert executor.list_executor_options("aot")["interface-api"] == "runtime.String"
    assert "crt" in runtime.list_runtimes()
    with pytest.raises(tvm.TVMError, match='"woof" is not defined'):
        runtime.list_runtime_options("woof")


def test_a_module_that_is_imported_first_is_still_the_function_of_its_name():
    """Functions that a package makes when they are asked for are in no table."""
    program = (
        "import slipway.topi.scatter\n"
        "from slipway import te, topi\n"
        "a, i, u = te.placeholder((4, 5)), te.placeholder((4, 2), dtype='int64'), "
        "te.placeholder((4, 2))\n"
        "print(topi.scatter(a, i, u, 1).shape, topi.scatter.scatter(a, i, u, 1).shape)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "(4, 5) (4, 5)\n", done.stderr
