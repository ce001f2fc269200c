"""Which files of classic TVM's unit tests make an area, and which tests are of its internals.

A test is excepted when it can pass only where the compiler is TVM's own: it calls a step of it,
reads fields of its C++ nodes, or asks for hardware and packages that no test run here has.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fnmatch import fnmatch
from typing import TypeVar

T = TypeVar("T")

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
    "relay passes": [RELAY + "test_pass_*.py", RELAY + "test_dataflow_pattern.py",
                     RELAY + "test_analysis_*.py", RELAY + "test_ir_*.py"],
    "relay": [RELAY + "test_*.py"],
    "onnx": ["python/frontend/onnx/test_*.py"],
    "tflite": ["python/frontend/tflite/test_*.py"],
    "pytorch": ["python/frontend/pytorch/test_*.py"],
    "keras": ["python/frontend/keras/test_*.py"],
    "tensorflow": ["python/frontend/tensorflow/test_*.py",
                   "python/frontend/tensorflow2/test_*.py"],
    "aot": [RELAY + "aot/test_*.py"],
    "memory plan": [UNIT + "test_tir_usmp_*.py"],
    "tir": [UNIT + "test_tir_base.py", UNIT + "test_tir_buffer.py",
            UNIT + "test_tir_constructor.py",
            UNIT + "test_tir_imm_values.py", UNIT + "test_tir_intrin.py",
            UNIT + "test_tir_ir_builder.py", UNIT + "test_tir_nodes.py",
            UNIT + "test_tir_op*.py", UNIT + "test_tir_schedule_*.py",
            UNIT + "test_tir_structural*.py", UNIT + "test_lang_*.py", UNIT + "test_ir_builder.py",
            UNIT + "test_tvm_intrin.py"],
    "script": [UNIT + "test_tvmscript_*.py"],
    "loop passes": [UNIT + "test_tir_transform_*.py", UNIT + "test_pass_*.py"],
    "arith": [UNIT + "test_arith_*.py"],
    "ir": [UNIT + "test_ir_*.py", UNIT + "test_node_*.py", UNIT + "test_format_si_prefix.py"],
    "topi": ["python/topi/python/test_*.py"],
    "contrib": ["python/contrib/test_*.py"],
    "autotvm": [UNIT + "test_autotvm_*.py"],
    "auto_scheduler": [UNIT + "test_auto_scheduler_*.py"],
    "meta_schedule": [UNIT + "test_meta_schedule_*.py"],
    "tvmc": ["python/driver/tvmc/test_*.py"],
    "integration": ["python/integration/test_*.py"],
}  # fmt: skip

NO_GRADIENT = "differentiates; training is not there"
BOUNDS = "calls InferBound, ScheduleOps or another step of the compiler as a function"
NODES = "reads or writes the fields of C++ nodes"
CPP = "calls functions that TVM registers in its library or its server for its tests"
OWN_PLAN = "compares with the sizes of TVM's own memory plan, to the byte"
CPP_STATE = "keeps objects of the C++ runtime in the statics of a kernel"
LAYOUT_OF_CODE = "reads the text of the generated code, or of an error"
ARCHIVES = "compares with how TVM divides code into files, and with its memory plan to the byte"
HARDWARE = "asks for a GPU's matrix units or graphs of CUDA"

# (pattern of tests, why they are excepted)
INTERNALS: list[tuple[str, str]] = [
    ("test_op_grad_*.py*", NO_GRADIENT),
    ("test_op_level3.py::TestReshape::test_reshape", NO_GRADIENT),
    ("test_op_level10.py::test_checkpoint*", NO_GRADIENT),
    ("test_*schedule_bound_inference*.py*", BOUNDS),
    ("test_te_schedule_ops.py*", BOUNDS),
    ("test_schedule_schedule_ops.py::test_schedule[0-9]", BOUNDS),
    ("test_schedule_schedule_ops.py::test_schedule_*", BOUNDS),
    ("test_schedule_schedule_ops.py::test_inline*", BOUNDS),
    ("test_schedule_schedule_ops.py::test_auto_inline", BOUNDS),
    ("test_*schedule_graph.py::test_*", BOUNDS),
    ("test_*schedule_tensorize.py::test_tensorize_*", BOUNDS),
    ("test_te_tensor.py::test_tensor_scalar_mixed", BOUNDS),
    ("test_te_build_lower.py::test_split_uneven_unique_likely", NODES),
    ("test_*_schedule.py::test_schedule_create", NODES),
    ("test_*_schedule.py::test_rfactor", NODES),
    ("test_te_create_primfunc.py*", NODES),
    ("test_backend_graph_executor.py::test_plan_*memory", BOUNDS),
    ("test_runtime_container.py::test_string", NODES),
    ("test_runtime_container.py::test_tuple_object", NODES),
    ("test_runtime_error.py::*", CPP),
    ("test_runtime_packed_func.py::test_ctx", CPP),
    ("test_runtime_packed_func.py::test_get_callback_with_node", NODES),
    ("test_backend_compile_engine.py::test_compile_engine", BOUNDS),
    ("test_backend_graph_runtime.py::test_plan_memory", BOUNDS),
    ("test_runtime_extension.py::test_dltensor_compatible", BOUNDS),
    ("test_runtime_rpc.py::test_rpc_simple*", CPP),
    ("test_runtime_rpc.py::test_rpc_runtime_string", CPP),
    ("test_runtime_rpc.py::test_rpc_return_*", CPP),
    ("test_runtime_rpc.py::test_rpc_echo", CPP),
    ("test_runtime_rpc.py::test_local_func", CPP),
    ("test_runtime_rpc.py::test_rpc_array", CPP),
    ("test_runtime_rpc.py::test_rpc_session_constructor_args", CPP),
    ("test_crt_aot.py::test_workspace_calculation", OWN_PLAN),
    ("test_crt_aot.py::test_constants_alignment", LAYOUT_OF_CODE),
    ("test_crt_aot.py::test_aot_codegen_backend_alloc_workspace_calls", LAYOUT_OF_CODE),
    ("test_crt_aot.py::test_aot_codegen_checks_returns", LAYOUT_OF_CODE),
    ("test_crt_aot.py::test_aot_uses_anf", BOUNDS),
    ("test_crt_aot_usmp.py::test_memory_planning", OWN_PLAN),
    ("test_c_device_api.py::*", LAYOUT_OF_CODE),
    ("test_pass_aot_lower_main.py*", BOUNDS),
    ("test_aot_create_executor_metadata.py*", BOUNDS),
    ("test_aot_create_function_metadata.py*", BOUNDS),
    ("test_runtime_rpc.py::test_rpc_session_timeout_error", CPP),
    ("test_rpc_server_device.py*", HARDWARE),
    ("test_target_codegen_aarch64.py::*", LAYOUT_OF_CODE),
    ("test_runtime_graph_cuda_graph.py*", HARDWARE),
    ("test_te_schedule_postproc_rewrite_for_tensor_core.py*", HARDWARE),
    ("test_*schedule_tensor_core.py*", HARDWARE),
    ("test_executor.py::test_create_executor_attr_type_incorrect", LAYOUT_OF_CODE),
    ("test_runtime.py::test_create_runtime_attr_type_incorrect", LAYOUT_OF_CODE),
    ("test_link_params.py::test_tir_link_params", NODES),
    ("test_link_params.py::test_c_link_params", LAYOUT_OF_CODE),
    *(
        (f"test_target_codegen_llvm.py::{name}", LAYOUT_OF_CODE)
        for name in (
            "test_multiple_func",
            "test_alignment",
            "test_llvm_order_functions",
            "test_raise_exception_during_codegen",
            "test_llvm_target_attributes",
        )
    ),
    ("test_target_codegen_c_host.py::test_call_packed", LAYOUT_OF_CODE),
    ("test_target_codegen_opencl.py::test_opencl_erf", LAYOUT_OF_CODE),
    ("test_codegen_x86.py::test_fp16_to_fp32", LAYOUT_OF_CODE),
    ("test_codegen_arm.py::test_vmlal_s16", LAYOUT_OF_CODE),
    ("test_target_codegen_static_init.py::*", CPP_STATE),
    ("test_codegen_static_init.py::*", CPP_STATE),
    ("test_codegen_vm_basic.py::*", BOUNDS),
    ("test_codegen_device.py::test_add_pipeline", BOUNDS),
    ("test_codegen_c_host.py::test_add_pipeline", BOUNDS),
    ("test_micro_project_api.py::*", CPP),
    *(
        (f"test_micro_model_library_format.py::test_{name}", ARCHIVES)
        for name in (
            "export_model_library_format_*",
            "export_byoc_c_module",
            "export_non_dso_exportable",
            "multiple_relay_modules_graph",
            "multiple_relay_modules_c",
            "multiple_relay_modules_aot_graph",
        )
    ),
    ("test_op_level2.py::TestConv2DInt8Intrinsics::*", LAYOUT_OF_CODE),
    ("test_target_codegen_x86.py::*", LAYOUT_OF_CODE),
    ("test_target_codegen_arm.py::test_vmlal_s16", LAYOUT_OF_CODE),
    ("test_te_tensor.py::test_tuple_with_different_deps", BOUNDS),
    ("test_lang_tensor.py::test_tuple_with_different_deps", BOUNDS),
    ("test_*hybrid_script.py::test_outer_product", NODES),
    ("test_*hybrid_script.py::test_fanout", NODES),
]


def drawn(tests: Sequence[T], every: int, sample: int, seed: int) -> list[T]:
    """Return each `every`-th test of a file, or of those `sample`, drawn with a seed."""
    wanted = list(tests[::every])
    return random.Random(seed).sample(wanted, sample) if 0 < sample < len(wanted) else wanted


def internal(test: str) -> bool:
    """Return whether a test, "file::function[case]", is excepted."""
    plain = test.partition("[")[0]
    return any(fnmatch(plain, f"*{pattern}") for pattern, _ in INTERNALS)


def exceptions() -> str:
    """Return the excepted tests by reason, as docs/classic_scripts.md has them."""
    by_reason: dict[str, list[str]] = {}
    for pattern, reason in INTERNALS:
        by_reason.setdefault(reason, []).append(f"`{pattern}`")
    return "\n".join(f"- {reason}: {', '.join(names)}." for reason, names in by_reason.items())
