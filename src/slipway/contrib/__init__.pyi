"""What type checkers see of slipway.contrib; written by tools/stubs.py."""

from slipway.contrib import cc as cc
from slipway.contrib import graph_executor as graph_executor
from slipway.contrib import graph_runtime as graph_runtime
from slipway.contrib import ndk as ndk
from slipway.contrib import rpc as rpc
from slipway.contrib import util as util
from slipway.contrib import utils as utils

__all__ = [
    "cc",
    "graph_executor",
    "graph_runtime",
    "ndk",
    "rpc",
    "util",
    "utils",
]
