"""``tvmc`` from Python: load a model file, compile it, run it here or on a device.

model = tvmc.load("model.onnx")
package = tvmc.compile(model, target="llvm")
print(tvmc.run(package, device="cpu"))
"""

from slipway.driver.tvmc import (
    common,
    composite_target,
    config_options,
    extensions,
    fmtopt,
    main,
    micro,
    pass_config,
    pass_list,
    registry,
    result_utils,
    shape_parser,
    target,
    tracker,
    transform,
    workspace_pools,
)
from slipway.driver.tvmc.autotuner import tune_model as tune
from slipway.driver.tvmc.compiler import compile_model as compile
from slipway.driver.tvmc.frontends import TVMCImportError
from slipway.driver.tvmc.frontends import load_model as load
from slipway.driver.tvmc.model import TVMCException, TVMCModel, TVMCPackage, TVMCResult
from slipway.driver.tvmc.runner import run_module as run

__all__ = [
    "TVMCException",
    "TVMCImportError",
    "TVMCModel",
    "TVMCPackage",
    "TVMCResult",
    "common",
    "compile",
    "composite_target",
    "config_options",
    "extensions",
    "fmtopt",
    "load",
    "main",
    "micro",
    "pass_config",
    "pass_list",
    "registry",
    "result_utils",
    "run",
    "shape_parser",
    "target",
    "tracker",
    "transform",
    "tune",
    "workspace_pools",
]
