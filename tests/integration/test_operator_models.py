"""The models of ``python -m benchmarks operators``: each compiles and agrees with onnxruntime.

A few of each kind by default, all of them under ``long``.
"""

import numpy as np
import onnx
import pytest
from benchmarks._operator_cases import CASES
from benchmarks._operator_models import make_model
from benchmarks._sweep_cases import CASES as SWEEP
from benchmarks._sweep_random import cases as drawn_cases
from benchmarks.cpu import Worker
from benchmarks.cpu_worker import describe, feeds_of
from benchmarks.operators import work_of

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor

onnxruntime = pytest.importorskip("onnxruntime")

BY_DEFAULT = (
    "conv/groups32_of_16", "depthwise/multiplier2", "conv1d/3", "conv3d/1x1x1", "deconv/3x3",
    "dense/100x333x77", "matmul/row", "pool/avg3x3", "softmax/log", "norm/instance",
    "reduce/argmax_last", "resize/linear2", "transpose/nhwc_nchw", "move/shuffle",
    "chain/gelu_tanh", "scan/cumsum_last", "sort/top100",
)  # fmt: skip
# Float16 accumulates in another order; integers that were rounded elsewhere differ by a step.
TOLERANCES = {"types/matmul_f16": 2e-3, "types/dense_int8": 1e-2, "types/dense_int8_row": 1e-2}


def each_case():
    return [c if c in BY_DEFAULT else pytest.param(c, marks=pytest.mark.long) for c in CASES]


DRAWN = drawn_cases(5, 24)


def test_a_seed_draws_the_same_cases_again():
    again = drawn_cases(5, 24)
    assert list(again) == list(DRAWN)
    assert list(drawn_cases(6, 24)) != [name.replace("random5", "random6") for name in DRAWN]
    for name in DRAWN:
        one, other = (make_model(found[name]).SerializeToString() for found in (DRAWN, again))
        assert one == other


@pytest.mark.parametrize("name", [*each_case(), *DRAWN])
def test_agrees_with_onnxruntime(name, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(make_model({**CASES, **DRAWN}[name]), path)
    feeds = feeds_of(describe(path))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    wanted = session.run(None, feeds)
    module, parameters = relay.frontend.from_onnx(path, counted=False)
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(module, "llvm", params=parameters)
    model = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    model.run(**feeds)
    for number, value in enumerate(wanted):
        found = model.get_output(number).numpy()
        usual = 2e-3 if "float16" in name else 2e-5
        limit = TOLERANCES.get(name, usual) * max(float(np.abs(value).max()), 1e-30)
        np.testing.assert_allclose(found, value, rtol=0, atol=limit)


def test_an_engine_gives_as_much_as_is_found(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(make_model(SWEEP["others/nonzero"]), path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    worker = Worker("slipway", path, threads=1)
    try:
        worker.request("run 1")
        worker.request(f"output {tmp_path / 'found.npz'}")
    finally:
        worker.close()
    with np.load(tmp_path / "found.npz") as found:
        np.testing.assert_equal(list(found.values()), session.run(None, feeds_of(describe(path))))


def test_the_work_of_a_model_is_counted():
    flops, size = work_of(make_model(CASES["dense/2x1024x1024"]))
    assert flops == 2 * 2 * 1024 * 1024
    assert size == 4 * (2 * 1024 + 1024 * 1024 + 1024 + 2 * 1024)
    flops, _ = work_of(make_model(CASES["conv/groups32_of_16"]))
    assert flops == 2 * 512 * 14 * 14 * 16 * 9
    assert work_of(make_model(CASES["chain/add"]))[0] == 0
