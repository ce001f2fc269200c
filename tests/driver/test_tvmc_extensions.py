"""``tvmc.extensions``: a package of the user's brings an accelerator, which a target names."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from slipway.driver import tvmc
from slipway.driver.tvmc.commands import main
from slipway.driver.tvmc.composite_target import get_codegen_by_target, get_codegen_names
from slipway.driver.tvmc.extensions import TVMCExtension, get_extensions, load_extensions

# As users of TVM 0.12 and 0.13 write it, with the first line of migration.md.
UNIT = '''
import slipway as tvm
from slipway import tir
from slipway.relay.backend.contrib.uma import UMABackend
from slipway.relay.backend.contrib.uma.api.utils import PassPhase
from slipway.relay.dataflow_pattern import is_op, wildcard

SOURCE = """
int small_product(const float* a, const float* b, float* out, int rows, int outputs, int depth) {
  for (int i = 0; i < rows * outputs; ++i) {
    out[i] = 0;
    for (int k = 0; k < depth; ++k) {
      out[i] += a[i / outputs * depth + k] * b[i % outputs * depth + k];
    }
  }
  return 0;
}
"""


@tir.transform.prim_func_pass(opt_level=2)
def calls_the_unit(func, mod, ctx):
    sch = tir.Schedule(func)
    block = sch.get_child_blocks(sch.get_block("root"))[-1]
    loops = [sch.get(loop) for loop in sch.get_loops(block)]

    def replaced(op):
        if op is not loops[0]:
            return op
        ib = tir.ir_builder.create()
        pointers = [buffer.data for _, buffer in func.buffer_map.items()]
        sizes = [loop.extent.value for loop in loops]
        ib.emit(tir.call_extern("int32", "small_product", *pointers, *sizes))
        return ib.get()

    return func.with_body(tir.stmt_functor.ir_transform(func.body, None, replaced, ["tir.For"]))


class SmallUnit(UMABackend):
    def __init__(self):
        super().__init__()
        self._register_pattern("dense", is_op("nn.dense")(wildcard(), wildcard()))
        self._register_tir_pass(PassPhase.TIR_PHASE_0, calls_the_unit)
        self._register_codegen(fmt="c", includes=lambda: SOURCE)

    @property
    def target_name(self):
        return "small_unit"
'''
EXTENSION = """
from slipway.driver.tvmc.extensions import TVMCExtension

from .unit import SmallUnit


class Units(TVMCExtension):
    def uma_backends(self):
        return [SmallUnit()]
"""


@pytest.fixture
def folder(tmp_path):
    package = tmp_path / "ours" / "tvm_extension"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(EXTENSION)
    (package / "unit.py").write_text(UNIT)
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.normal(size=(5, 7)).astype("float32"), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 5])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 7])
    graph = helper.make_graph(nodes, "g", [given], [made], [weight])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", x=rng.normal(size=(3, 5)).astype("float32"))
    return tmp_path


def test_a_command_line_compiles_for_the_accelerator(folder):
    extension = ["--experimental-tvm-extension", str(folder / "ours")]
    files = [str(folder / "m.onnx"), "--output", str(folder / "m.tar"), "--dump-code", "relay,c"]
    assert main([*extension, "compile", "--target", "small_unit,c", *files]) == 0
    assert any(type(one).__name__ == "Units" for one in get_extensions())
    assert "small_unit" in get_codegen_names()
    assert callable(get_codegen_by_target("small_unit")["pass_pipeline"])
    assert "small_unit" in (folder / "m.tar.relay").read_text()
    assert "small_product(" in (folder / "m.tar.c").read_text()
    package = tvmc.TVMCPackage(str(folder / "m.tar"))
    x = np.load(folder / "x.npz")["x"]
    (found,) = tvmc.run(package, "cpu", inputs={"x": x}).outputs.values()
    weight = numpy_helper.to_array(onnx.load(folder / "m.onnx").graph.initializer[0])
    np.testing.assert_allclose(found, np.maximum(x @ weight, 0), rtol=1e-5, atol=1e-5)


def test_a_folder_without_the_package_is_told(tmp_path, capsys):
    (tmp_path / "tvm_extensions").mkdir()
    assert main(["--experimental-tvm-extension", str(tmp_path), "compile", "m", "--target", "c"])
    assert "no package tvm_extension" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import nothing_like_it", "nothing_like_it"),
        ("def broken(:", "invalid syntax|tvm_extension"),
        (
            "from slipway.driver.tvmc.extensions import TVMCExtension\n\n\n"
            "class E(TVMCExtension):\n    def uma_backends(self):\n        return [1]\n",
            "the extension E fails",
        ),
    ],
)
def test_a_package_that_fails_is_told(tmp_path, text, told):
    (tmp_path / "tvm_extension.py").write_text(text)
    with pytest.raises(tvmc.TVMCException, match=told):
        load_extensions([str(tmp_path)])


def test_the_base_has_no_backends():
    with pytest.raises(TypeError):
        TVMCExtension()
