"""Graphs whose extents are mostly 1 compute what onnxruntime computes, at every opt_level."""

import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
from ones import Graphs  # noqa: E402

from slipway import relay  # noqa: E402
from slipway.runtime import cpu  # noqa: E402
from slipway.runtime.graph.graph_executor import GraphModule  # noqa: E402
from slipway.transform.context import PassContext  # noqa: E402


def expected(model, inputs, quantized):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if quantized:  # its own rewriting of integer layers rounds differently
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, inputs)


def check(seed, quantized, levels):
    drawn = Graphs(seed, quantized).model()
    if drawn is None:
        return
    model, inputs = drawn
    wanted = expected(model, inputs, quantized)
    for level in levels:
        module, params = relay.frontend.from_onnx(model)
        with PassContext(opt_level=level):
            library = relay.build(module, "llvm", params=params)
        executor = GraphModule(library["default"](cpu(0)))
        executor.run(**inputs)
        for index, values in enumerate(wanted):
            found = executor.get_output(index).numpy()
            assert found.shape == values.shape, (seed, level)
            scale = max(1.0, float(np.abs(values[np.isfinite(values)]).max(initial=0)))
            # In int8 a sum beside a tie may round to the other step.
            atol = max(1e-4 * scale, 0.11 if quantized else 0)
            message = f"seed {seed}, opt_level {level}"
            np.testing.assert_allclose(found, values, atol=atol, rtol=1e-4, err_msg=message)


@pytest.mark.parametrize("quantized", [False, True], ids=["float", "int8"])
@pytest.mark.parametrize("seed", range(6))
def test_random_graphs(seed, quantized):
    check(seed, quantized, (0, 3))


@pytest.mark.long
@pytest.mark.parametrize("quantized", [False, True], ids=["float", "int8"])
@pytest.mark.parametrize("block", range(10))
def test_many_random_graphs(block, quantized):
    for seed in range(100 + 30 * block, 130 + 30 * block):
        check(seed, quantized, (0, 1, 2, 3) if seed % 4 == 0 else (3,))
