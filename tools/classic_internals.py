"""Which files of classic TVM's unit tests make an area, and which tests are of its internals.

A test is excepted when it can pass only where the compiler is TVM's own: it calls a step of it,
reads fields of its C++ nodes, or asks for hardware and packages that no test run here has.
"""

from __future__ import annotations

from fnmatch import fnmatch

UNIT, RELAY = "python/unittest/", "python/relay/"
AREAS: dict[str, list[str]] = {
    "te": [
        UNIT + name
        for name in (
            "test_te_*.py", "test_schedule_*.py", "test_hybrid_script.py", "test_lang_group.py",
            "test_lang_schedule.py", "test_lang_tag.py", "test_lang_tensor*.py",
            "test_lang_verify_compute.py",
        )
    ],
    "rpc": [UNIT + "test_runtime_rpc.py", "python/contrib/test_rpc_*.py"],
    "micro": [UNIT + "test_micro_*.py", UNIT + "test_crt.py", UNIT + "test_runtime_micro.py"],
    "runtime": [
        UNIT + "test_runtime_*.py", UNIT + "test_module_load.py", RELAY + "test_runtime.py",
        RELAY + "test_backend_*.py", RELAY + "test_param_dict.py", RELAY + "test_executor.py",
    ],
    "build": [
        UNIT + "test_lower_build.py", UNIT + "test_build_lower.py", UNIT + "test_target_*.py",
        UNIT + "test_codegen_*.py", UNIT + "test_link_params.py", RELAY + "test_build_module.py",
        RELAY + "test_cpp_build_module.py", UNIT + "test_lang_target.py",
    ],
    "relay operators": [RELAY + "test_op_level*.py", RELAY + "test_op_qnn_*.py"],
    "relay dynamic": [RELAY + "dyn/test_dynamic_op_*.py", RELAY + "test_any.py"],
    "relay": [RELAY + "test_*.py"],
    "onnx": ["python/frontend/onnx/test_*.py"],
    "tflite": ["python/frontend/tflite/test_*.py"],
    "aot": [RELAY + "aot/test_*.py"],
    "tir": [UNIT + "test_tir_base.py", UNIT + "test_tir_buffer.py",
            UNIT + "test_tir_constructor.py",
            UNIT + "test_tir_imm_values.py", UNIT + "test_tir_intrin.py",
            UNIT + "test_tir_ir_builder.py", UNIT + "test_tir_nodes.py",
            UNIT + "test_tir_op*.py", UNIT + "test_tir_schedule_*.py",
            UNIT + "test_tir_structural*.py", UNIT + "test_lang_*.py", UNIT + "test_ir_builder.py",
            UNIT + "test_tvm_intrin.py"],
}  # fmt: skip

# (pattern of tests, why they are excepted)
INTERNALS: list[tuple[str, str]] = []


def internal(test: str) -> bool:
    """Return whether a test, "file::function[case]", is excepted."""
    plain = test.partition("[")[0]
    return any(fnmatch(plain, f"*{pattern}") for pattern, _ in INTERNALS)
