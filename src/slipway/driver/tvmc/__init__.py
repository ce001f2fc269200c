"""``tvmc`` from Python: load a model file, compile it, run it here or on a device.

model = tvmc.load("model.onnx")
package = tvmc.compile(model, target="llvm")
print(tvmc.run(package, device="cpu"))
"""

from slipway.driver.tvmc.compiler import compile_model as compile
from slipway.driver.tvmc.model import TVMCException, TVMCModel, TVMCPackage, TVMCResult
from slipway.driver.tvmc.models import TVMCImportError
from slipway.driver.tvmc.models import load_model as load
from slipway.driver.tvmc.runner import run_module as run
from slipway.driver.tvmc.tuner import tune_model as tune

__all__ = [
    "TVMCException",
    "TVMCImportError",
    "TVMCModel",
    "TVMCPackage",
    "TVMCResult",
    "compile",
    "load",
    "run",
    "tune",
]
