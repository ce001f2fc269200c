"""Models compiled ahead of time as C programs: interfaces, pools, and outputs that are wrong."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import ExecutionError
from slipway.micro.testing.aot_test_utils import AOT_DEFAULT_RUNNER
from slipway.testing.aot import (
    AOTTestModel,
    AOTTestRunner,
    compile_and_run,
    compile_models,
    generate_ref_data,
    run_and_check,
)


def two_outputs(name="default"):
    x = relay.var("x:0", shape=(2, 3))
    y = relay.var("y", shape=(2, 3), dtype="int32")
    body = relay.Tuple([relay.tanh(x), y + relay.const(1, "int32")])
    module = tvm.IRModule.from_expr(relay.Function([x, y], body))
    given = {
        "x:0": np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3),
        "y": np.arange(6, dtype="int32").reshape(2, 3) - 3,
    }
    wanted = {"output0": np.tanh(given["x:0"]), "output1": given["y"] + 1}
    return AOTTestModel(module, given, wanted, name=name)


def test_the_reference_has_the_outputs_by_name():
    model = two_outputs()
    found = generate_ref_data(model.module, model.inputs)
    assert list(found) == ["output0", "output1"]
    np.testing.assert_allclose(found["output0"], model.outputs["output0"], rtol=1e-5)
    np.testing.assert_array_equal(found["output1"], model.outputs["output1"])


@pytest.mark.parametrize("interface", ["c", "packed"])
def test_two_models_run_in_one_program(interface):
    models = [two_outputs("first"), two_outputs("second")]
    assert compile_and_run(models, AOT_DEFAULT_RUNNER, interface, True)


def test_a_pool_of_the_caller_is_the_prologues_memory():
    x = relay.var("x", shape=(1, 8))
    body = relay.nn.softmax(relay.nn.dense(x, relay.const(np.eye(8, dtype="float32"))))
    model = AOTTestModel(relay.Function([x], body), {"x": np.zeros((1, 8), "float32")},
                         {"output": np.full((1, 8), 0.125, "float32")})  # fmt: skip
    pools = tvm.WorkspaceMemoryPools([tvm.WorkspacePoolInfo("sram", [tvm.target.Target("c")])])
    runner = AOTTestRunner(prologue="static uint8_t sram[TVMGEN_DEFAULT_SRAM_WORKSPACE_POOL_SIZE "
                                    "+ 1] __attribute__((aligned(16)));")  # fmt: skip
    compiled = compile_models(model, "c", True, workspace_memory_pools=pools)
    assert run_and_check(compiled, runner, "c")


def test_an_output_that_differs_is_named():
    model = two_outputs()
    model.outputs["output1"][1, 2] += 1
    with pytest.raises(ExecutionError, match=r"output1\[5\] is 3, not 4"):
        compile_and_run(model, AOT_DEFAULT_RUNNER, "c", True)
