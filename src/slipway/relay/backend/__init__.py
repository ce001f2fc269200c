"""``relay.backend``: `Executor` and `Runtime`, the values that ``relay.build`` takes."""

from slipway.lazy import paths
from slipway.relay.backend import te_compiler
from slipway.relay.backend import te_compiler as compile_engine
from slipway.relay.backend.choice import Executor, Runtime

__all__ = ["Executor", "Runtime", "compile_engine", "te_compiler"]
paths(
    __name__,
    {
        "compile_engine": "slipway.relay.backend.te_compiler",
        "executor": "slipway.relay.backend.choice",
        "runtime": "slipway.relay.backend.choice",
        "utils": "slipway.relay.backend.name_transforms",
    },
)
