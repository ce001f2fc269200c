"""UMA: an accelerator of patterns, passes over loops, and C, as classic TVM's template has it."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, tir
from slipway.contrib import graph_executor
from slipway.errors import LoweringError, TargetError
from slipway.relay.backend.contrib.uma import UMABackend, uma_available
from slipway.relay.backend.contrib.uma.api.utils import PassPhase
from slipway.relay.dataflow_pattern import is_op, wildcard
from slipway.target import Target

SOURCE = """
#ifdef __cplusplus
extern "C"
#endif
int tiny_product(const float* a, const float* b, float* out, int rows, int outputs, int depth) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < outputs; ++j) {
      float sum = 0;
      for (int k = 0; k < depth; ++k) sum += a[i * depth + k] * b[j * depth + k];
      out[i * outputs + j] = sum;
    }
  return 0;
}
"""


@tir.transform.prim_func_pass(opt_level=2)
class CallsTheUnit:
    """Puts a call in place of the loops of a product."""

    def transform_function(self, func, mod, ctx):
        sch = tir.Schedule(func)
        block = sch.get_child_blocks(sch.get_block("root"))[-1]
        loops = [sch.get(loop) for loop in sch.get_loops(block)]

        def replaced(op):
            if op is not loops[0]:
                return op
            ib = tir.ir_builder.create()
            pointers = [buffer.data for _, buffer in func.buffer_map.items()]
            sizes = [loop.extent.value for loop in loops]
            ib.emit(tir.call_extern("int32", "tiny_product", *pointers, *sizes))
            return ib.get()

        return func.with_body(tir.stmt_functor.ir_transform(func.body, None, replaced, ["tir.For"]))


class TinyUnit(UMABackend):
    def __init__(self, includes):
        super().__init__()
        self._register_target_attr("rows", default=4)
        self._register_pattern("dense", is_op("nn.dense")(wildcard(), wildcard()))
        self._register_tir_pass(PassPhase.TIR_PHASE_0, CallsTheUnit())
        self._register_codegen(fmt="c", includes=includes)

    @property
    def target_name(self):
        return "tiny_unit"


def network():
    x, w = relay.var("x", shape=(3, 5)), relay.var("w", shape=(7, 5))
    body = relay.nn.relu(relay.nn.dense(x, w)) + relay.const(1.0)
    return relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], body)))


@pytest.mark.parametrize("how", ["c", "llvm", "list"])
def test_a_part_calls_the_unit(tmp_path, how):
    (tmp_path / "unit.cc").write_text(SOURCE)
    backend = TinyUnit(lambda: f'#include "{tmp_path}/unit.cc"')
    backend.register()
    mod = backend.partition(network())
    assert len(mod.functions) == 2
    own = Target("tiny_unit --rows=8", host=None if how == "list" else Target(how))
    assert own.attrs["rows"] == 8
    lib = relay.build(mod, target=[Target("llvm"), own] if how == "list" else own)
    if how == "c":
        text = lib.get_lib().get_source("c")
        assert "tiny_product(" in text
        assert str(tmp_path) not in text  # the file's text instead
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(n).astype("float32") for n in ((3, 5), (7, 5)))
    run = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    run.run(x=x, w=w)
    wanted = np.maximum(x @ w.T, 0) + 1
    np.testing.assert_allclose(run.get_output(0).numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_passes_after_the_first_phase_run_at_the_level_of_the_build(tmp_path):
    (tmp_path / "unit.cc").write_text(SOURCE)
    backend, seen = TinyUnit(lambda: f'#include "{tmp_path}/unit.cc"'), []
    backend.register()
    for phase, level in ((PassPhase.TIR_PHASE_1, 2), (PassPhase.TIR_PHASE_2, 3)):

        @tir.transform.prim_func_pass(opt_level=level)
        def noted(func, mod, ctx, phase=phase):
            seen.append(phase)
            return func

        backend._register_tir_pass(phase, noted)
    with tvm.transform.PassContext(opt_level=3):
        relay.build(backend.partition(network()), target=Target("tiny_unit", host="llvm"))
    assert seen == [PassPhase.TIR_PHASE_1, PassPhase.TIR_PHASE_2]


def test_what_an_accelerator_cannot_bring_is_told():
    assert uma_available()
    backend = TinyUnit(lambda: '#include "/nowhere/unit.cc"')
    backend.register()
    with pytest.raises(LoweringError, match=r"includes /nowhere/unit\.cc: .*No such file"):
        relay.build(backend.partition(network()), target=Target("tiny_unit", host="llvm"))
    with pytest.raises(LoweringError, match="the code of tiny_unit is C"):
        backend._register_codegen(fmt="verilog")
    backend._register_operator_strategy("nn.dense", lambda *_: None)
    with pytest.raises(LoweringError, match=r"strategies for nn\.dense: .*TIR_PHASE_0"):
        backend.register()
    backend._register_target_attr("rows", default=None)
    with pytest.raises(tvm.TVMError, match=r"Target attribute None is not supported\."):
        backend.register()
    register = tvm.get_global_func("relay.backend.contrib.uma.RegisterTarget")
    with pytest.raises(tvm.TVMError, match=r"Only String, Integer, or Bool .*'speed' of fast"):
        register("fast_unit", {"speed": 1.5})
    with pytest.raises(TargetError, match="'llvm' is a kind of target already"):
        register("llvm", {})
