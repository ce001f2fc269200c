"""What can be tuned: kernels of models and templates, and how the best of a log is applied."""

from slipway.arguments import COMMON, explain_all
from slipway.autotvm.space import (
    AnnotateEntity,
    ConfigEntity,
    ConfigSpace,
    FallbackConfigEntity,
    OtherOptionEntity,
    ReorderEntity,
    SplitEntity,
)
from slipway.autotvm.task.dispatcher import (
    ApplyConfig,
    ApplyHistoryBest,
    FallbackContext,
    apply_history_best,
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

__all__ = [
    "AnnotateEntity", "ApplyConfig", "ApplyHistoryBest", "ConfigEntity", "ConfigSpace",
    "FallbackConfigEntity", "FallbackContext", "KernelTask", "OtherOptionEntity", "ReorderEntity",
    "SplitEntity", "TemplateTask", "apply_history_best", "args_to_workload", "compute_flop",
    "create", "deserialize_args", "extract_from_multiple_program", "extract_from_program",
    "get_config", "serialize_args", "template",
]  # fmt: skip

explain_all(globals(), __all__, COMMON)
