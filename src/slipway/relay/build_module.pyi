"""What type checkers see of slipway.relay.build_module; written by tools/stubs.py."""

from slipway.compiler.classic_build import optimize as optimize
from slipway.compiler.create_executor import create_executor as create_executor
from slipway.compiler.relay_build import build as build
from slipway.relay.construct import bind as bind_params_by_name

__all__ = [
    "bind_params_by_name",
    "build",
    "create_executor",
    "optimize",
]
