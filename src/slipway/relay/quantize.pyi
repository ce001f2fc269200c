"""What type checkers see of slipway.relay.quantize; written by tools/stubs.py."""

from slipway.compiler.quantize.api import prerequisite_optimize as prerequisite_optimize
from slipway.compiler.quantize.api import quantize as quantize
from slipway.compiler.quantize.config import QConfig as QConfig
from slipway.compiler.quantize.config import current_qconfig as current_qconfig
from slipway.compiler.quantize.config import qconfig as qconfig

__all__ = [
    "QConfig",
    "current_qconfig",
    "prerequisite_optimize",
    "qconfig",
    "quantize",
]
