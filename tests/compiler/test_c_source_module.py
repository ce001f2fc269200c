"""Code generators in Python that return ``runtime.CSourceModuleCreate``, as classic TVM's did."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib.graph_executor import GraphModule
from slipway.errors import SlipwayError

X = np.random.default_rng(0).random((2, 3), np.float32)
# What TVM's own example compiler writes: tensors in packed arguments.
PACKED = """
#include <tvm/runtime/c_runtime_api.h>
#include <dlpack/dlpack.h>
static void {name}_(float *in, float *out, int64_t n) {{
  for (int64_t i = 0; i < n; i++) out[i] = in[i] * 2;
}}
#ifdef __cplusplus
extern "C" {{
#endif
TVM_DLL int32_t {name}(TVMValue* args, int* type_code, int num_args{more}) {{
  DLTensor* in = (DLTensor*)(((TVMValue*)args)[0].v_handle);
  DLTensor* out = (DLTensor*)(((TVMValue*)args)[1].v_handle);
  if (num_args != 2 || type_code[1] != kTVMDLTensorHandle || in->ndim != 2) return -1;
  if (out->dtype.code != kDLFloat || out->dtype.bits != 32 || in->shape[1] != 3) return -1;
  {name}_((float*)in->data, (float*)out->data, in->shape[0] * in->shape[1]);
  return 0;
}}
#ifdef __cplusplus
}}
#endif
"""
LATER = ", TVMValue* out_value, int* out_type_code"
POINTERS = """
#include <stdint.h>
int32_t {name}(const float *in, float *out) {{
  for (int i = 0; i < 6; i++) out[i] = in[i] * 2;
  return 0;
}}
"""


def run(text):
    def generate(function):
        name = str(function.attrs["global_symbol"])
        create = tvm.get_global_func("runtime.CSourceModuleCreate")
        made = create(text.replace("{name}", name), "c", [name], [])
        assert (made.type_key, made.function_names()) == ("c", [name])
        return made

    tvm.register_func("relay.ext.own_c_source", generate, override=True)
    x = relay.var("x", shape=(2, 3))
    inner = relay.Function([x], x + x)
    for key, value in {"Compiler": "own_c_source", "global_symbol": "own_part", "Primitive": 1,
                       "Inline": 1}.items():  # fmt: skip
        inner = inner.with_attr(key, value)
    y = relay.var("y", shape=(2, 3))
    module = tvm.IRModule.from_expr(relay.Function([y], relay.negative(relay.Call(inner, [y]))))
    executor = GraphModule(relay.build(module, "llvm")["default"](tvm.cpu()))
    executor.run(y=X)
    return executor.get_output(0).numpy()


@pytest.mark.parametrize(
    "text",
    [
        PACKED.replace("{more}", LATER),
        PACKED.replace("{more}", LATER + ", void* resource_handle"),
        POINTERS,
    ],
    ids=["packed", "with a handle", "pointers"],
)
def test_c_of_either_convention_computes(text):
    text = text.replace("{{", "{").replace("}}", "}")
    np.testing.assert_array_equal(run(text), -2 * X)


def test_a_text_is_no_function_yet(tmp_path):
    from slipway.runtime import _ffi_api

    made = _ffi_api.CSourceModuleCreate("int f(void) { return 3; }\n", "cc", ["f"], None)
    with pytest.raises(SlipwayError, match="'f' is a function in C that is not compiled"):
        made["f"]
    made.save(tmp_path / "f.c")
    assert (tmp_path / "f.c").read_text() == made.get_source()
