"""What can be tuned: kernels of models and templates, and how the best of a log is applied."""

from slipway.arguments import COMMON, explain_all
from slipway.autotvm.entities import InstantiationError
from slipway.autotvm.knobs import get_factors, get_pow2s
from slipway.autotvm.space import (
    AnnotateEntity,
    AnnotateSpace,
    ConfigEntity,
    ConfigSpace,
    FallbackConfigEntity,
    OtherOptionEntity,
    OtherOptionSpace,
    ReorderEntity,
    ReorderSpace,
    SplitEntity,
    SplitSpace,
    TransformSpace,
    VirtualAxis,
)
from slipway.autotvm.task.dispatcher import (
    ApplyConfig,
    ApplyHistoryBest,
    DispatchContext,
    FallbackContext,
    apply_history_best,
    clear_fallback_cache,
)
from slipway.autotvm.task.kernel import (
    KernelTask,
    extract_from_multiple_program,
    extract_from_program,
)
from slipway.autotvm.task.template import (
    TemplateTask,
    args_to_workload,
    compute_flop,
    create,
    deserialize_args,
    get_config,
    serialize_args,
    template,
)
from slipway.autotvm.task.topi_integration import (
    get_workload,
    register_topi_compute,
    register_topi_schedule,
)

Task = TemplateTask  # as classic TVM calls it

__all__ = [
    "AnnotateEntity", "AnnotateSpace", "ApplyConfig", "ApplyHistoryBest", "ConfigEntity",
    "ConfigSpace", "DispatchContext", "FallbackConfigEntity", "FallbackContext",
    "InstantiationError", "KernelTask", "OtherOptionEntity", "OtherOptionSpace", "ReorderEntity",
    "ReorderSpace", "SplitEntity", "SplitSpace", "Task", "TemplateTask", "TransformSpace",
    "VirtualAxis", "apply_history_best", "args_to_workload", "clear_fallback_cache",
    "compute_flop", "create", "deserialize_args", "extract_from_multiple_program",
    "extract_from_program", "get_config", "get_factors", "get_pow2s", "get_workload",
    "register_topi_compute", "register_topi_schedule", "serialize_args", "template",
]  # fmt: skip

explain_all(globals(), __all__, COMMON)
