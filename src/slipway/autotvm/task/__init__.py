"""What can be tuned: kernels of models and templates, and how the best of a log is applied."""

from slipway.autotvm.space import ConfigEntity, ConfigSpace
from slipway.autotvm.task.dispatcher import ApplyConfig, ApplyHistoryBest, apply_history_best
from slipway.autotvm.task.kernel import (
    KernelTask,
    extract_from_multiple_program,
    extract_from_program,
)
from slipway.autotvm.task.template import TemplateTask, create, get_config, template

__all__ = [
    "ApplyConfig", "ApplyHistoryBest", "ConfigEntity", "ConfigSpace", "KernelTask",
    "TemplateTask", "apply_history_best", "create", "extract_from_multiple_program",
    "extract_from_program", "get_config", "template",
]  # fmt: skip
