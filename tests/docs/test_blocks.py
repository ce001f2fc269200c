"""The Python of the pages runs as it stands there, on what the page's reader would have."""

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te
from slipway.contrib import graph_executor

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = {page.name: BLOCK.findall(page.read_text(encoding="utf-8")) for page in DOCS.glob("*.md")}
# Pages whose blocks other tests run, or that need what no test has.
ELSEWHERE = {
    "farm.md": "a lab's tracker and boards: tests/farm and tests/rpc",
    "languages.md": "test_languages.py",
    "llm.md": "a model of a language: tests/llm",
    "micro.md": "boards: tests/micro",
    "quick_starts.md": "test_quick_starts.py",
    "tuning.md": "a farm, and a night: tests/tuning, tests/autotvm and tests/auto_scheduler",
    "web.md": "test_web_page.py",
}


def write_model(path, batch):
    """An ONNX file of an image's network: a convolution of large strides, means, a product."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    shapes = {"taps": (4, 3, 32, 32), "weight": (4, 5)}
    weights = [
        numpy_helper.from_array(rng.normal(size=shape).astype("float32") * 0.05, name)
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["x", "taps"], ["c"], strides=[32, 32]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "weight"], ["y"]),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 224, 224])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 5])
    graph = helper.make_graph(nodes, "image", [given], [made], weights)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def dense():
    data, weight = relay.var("data", shape=(8, 16)), relay.var("w", shape=(24, 16))
    mod = tvm.IRModule.from_expr(relay.Function([data, weight], relay.nn.dense(data, weight)))
    params = {"w": np.ones((24, 16), "float32")}
    return {"mod": mod, "params": params, "x": np.ones((8, 16), "float32")}


def image():
    x = relay.var("x", shape=(1, 3, 8, 8))
    taps = relay.const(np.ones((4, 3, 3, 3), "float32"))
    return {"mod": tvm.IRModule.from_expr(relay.nn.conv2d(x, taps))}


def product():
    a, b = te.placeholder((64, 64), name="A"), te.placeholder((64, 64), name="B")
    k = te.reduce_axis((0, 64), name="k")
    c = te.compute((64, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return {"s": te.create_schedule(c.op), "C": c, "k": k}


def network():
    torch = pytest.importorskip("torch")
    return {"module": torch.nn.Sequential(torch.nn.Conv2d(3, 4, 32, 32), torch.nn.ReLU()).eval()}


def images():
    rng = np.random.default_rng(1)
    some = [rng.normal(size=(1, 3, 224, 224)).astype("float32") for _ in range(3)]
    return {"samples": [{"x": value} for value in some]}


BEFORE = {
    "diagnostics.md": dense, "gpu.md": dense, "pytorch.md": network, "quantization.md": images,
    "relay_api.md": image, "tensor_expressions.md": product,
}  # fmt: skip
SHARED = {"tvm": tvm, "slipway": tvm, "relay": relay, "te": te, "graph_executor": graph_executor}


def test_every_page_is_run():
    with_blocks = {name for name, blocks in PAGES.items() if blocks}
    assert set(ELSEWHERE) <= with_blocks
    assert set(BEFORE) <= with_blocks - set(ELSEWHERE)


@pytest.mark.parametrize("name", sorted(n for n, b in PAGES.items() if b and n not in ELSEWHERE))
def test_blocks_run(name, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "model.onnx", "n")
    write_model(tmp_path / "mobilenet_v2.onnx", 1)
    if name == "gpu.md" and not tvm.opencl(0).exist:
        pytest.skip("no OpenCL device: apt-get install pocl-opencl-icd ocl-icd-libopencl1")
    if name == "tflite.md":
        folder = request.getfixturevalue("shared") / "models" / "tflite"
        shutil.copy(folder / "kws_ref_model.tflite", tmp_path)
    before = set(sys.modules)
    given = {**SHARED, **BEFORE.get(name, dict)()}
    for number, block in enumerate(PAGES[name]):
        exec(compile(block, f"{name}, block {number + 1}", "exec"), given)
    for module in set(sys.modules) - before:
        if module.partition(".")[0] == "tvm":  # the page on migration
            del sys.modules[module]


def test_what_the_page_on_states_says_of_an_executor():
    """Its table, and its functions over a run."""
    (block,) = PAGES["state.md"]
    given = dict(SHARED)
    exec(compile(block, "state.md", "exec"), given)
    library = given["library"]
    module = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    assert list(module.get_input_info()[0]) == ["rows", "position"]
    assert list(module.get_state_info()) == ["cache"]
    rows = np.ones((8, 3, 64), "float32")
    module.run(rows=rows, position=np.array([4]))
    held = module.get_input("cache").numpy()
    assert held.sum() == rows.sum() == held[:, 4:7].sum()
    saved = module.save_state()
    assert isinstance(saved, bytes | bytearray)
    module.reset()
    assert not module.get_input("cache").numpy().any()
    other = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    other.load_state(saved)
    np.testing.assert_array_equal(other.get_input("cache").numpy(), held)
    assert not module.get_input("cache").numpy().any()
