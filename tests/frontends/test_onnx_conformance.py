"""Cases of the onnx package's own suite, compiled by LLVM and, under `long`, as C.

`python -m benchmarks conformance onnx` runs all of them.
"""

import importlib.util
import warnings
from pathlib import Path

import pytest

pytest.importorskip("onnx")

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "conformance.py"
SPEC = importlib.util.spec_from_file_location("conformance", SCRIPT)
conformance = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(conformance)

QUICK = """
    adam basic_deform_conv_with_padding roialign_mode_max compress_0 det_nd
    maxpool_with_argmax_2d_precomputed_pads nonzero_example
    quantizelinear_uint4 resize_tf_crop_and_resize_extrapolation_value slice_default_steps
    tfidfvectorizer_tf_batch_uniandbigrams_skip5
""".split()  # noqa: SIM905
MORE = """
    adagrad_multiple ai_onnx_ml_array_feature_extractor ai_onnx_ml_binarizer
    attention_4d_causal_bf16 cast_FLOAT_to_FLOAT8E4M3FN cast_INT4_to_FLOAT
    cast_e8m0_FLOAT_to_FLOAT8E8M0 castlike_FLOAT16_to_UINT2 celu_bfloat16 cumsum_2d_axis_1
    dequantizelinear_e4m3fn dequantizelinear_int4 det_2d edge_pad einsum_batch_matmul_bfloat16
    loop13_seq maxpool_with_argmax_2d_precomputed_strides maxunpool_export_with_output_shape
    melweightmatrix momentum nesterov_momentum onehot_with_axis onehot_with_bfloat16_values
    optional_get_element_optional_sequence quantizelinear_e5m2 range_float_type_positive_delta
    reduce_l2_do_not_keepdims_random resize_downsample_scales_cubic_antialias
    resize_downsample_sizes_linear_antialias sequence_insert_at_front
    sequence_map_add_1_sequence_1_tensor split_to_sequence_nokeepdims
    split_variable_parts_2d_opset13 top_k triu_neg unique_sorted_with_axis_3d
""".split()  # noqa: SIM905


@pytest.fixture(scope="module")
def cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name.removeprefix("test_"): case for case in conformance.collect()}


@pytest.mark.parametrize("engine", ["llvm", pytest.param("c", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in MORE)]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_compiled_case_passes(cases, name, engine):
    for pin in ("", "iu", "iubf"):
        verdict, note = conformance.outcome(cases[name], engine, pin)
        if verdict != "unsupported":
            break
    assert (verdict, note) == ("passed", "")


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_case_is_wrong(cases):
    verdicts = {n: conformance.outcome(c, "interpret", "iu") for n, c in cases.items()}
    assert not {n: v for n, v in verdicts.items() if v[0] in ("WRONG", "failed")}
    assert sum(v[0] == "passed" for v in verdicts.values()) >= 1880


@pytest.mark.long
@pytest.mark.timeout(600)
def test_light_models_pass():
    cases = conformance.collect_light()
    assert len(cases) == 9
    assert {c.name: conformance.outcome(c, "llvm") for c in cases} == {
        c.name: ("passed", "") for c in cases
    }
