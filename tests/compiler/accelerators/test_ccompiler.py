"""The code generator "ccompiler", and the annotator that marks parts for it."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.compiler.accelerators.ccompiler import generate
from slipway.contrib.graph_executor import GraphModule
from slipway.errors import CodegenError
from slipway.relay.testing.byoc import CcompilerAnnotator
from slipway.transform.graph.infer_type import infer_type


def test_marked_chains_run_as_the_example_compiler_made_them():
    x = relay.var("x", shape=(3, 4))
    w = [relay.var(f"w{i}", shape=(3, 4)) for i in range(4)]
    chain = relay.multiply(relay.subtract(relay.add(x, w[0]), w[1]), w[2])
    module = tvm.IRModule()
    module["main"] = CcompilerAnnotator().visit(
        relay.Function([x, *w], relay.concatenate([chain, relay.add(x, w[3])], 0))
    )
    module = relay.transform.InferType()(relay.transform.PartitionGraph("mod")(module))
    parts = [f for f in module.functions.values() if f.attr("Compiler") == "ccompiler"]
    assert len(parts) == 1
    built = relay.build(module, "llvm")
    given = {n: np.random.default_rng(i).random((3, 4), "float32") for i, n in enumerate(
        ["x", "w0", "w1", "w2", "w3"])}  # fmt: skip
    executor = GraphModule(built["default"](tvm.cpu()))
    executor.run(**given)
    wanted = [(given["x"] + given["w0"] - given["w1"]) * given["w2"], given["x"] + given["w3"]]
    np.testing.assert_allclose(executor.get_output(0).numpy(), np.concatenate(wanted), rtol=1e-6)


def test_what_it_does_not_compute_is_said():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(1,))
    with pytest.raises(CodegenError, match="of one shape and dtype"):
        generate(infer_type(relay.Function([x, y], x + y)))
    with pytest.raises(CodegenError, match="ccompiler has add, subtract, multiply, not tanh"):
        generate(infer_type(relay.Function([x], relay.tanh(x))))
