"""What type checkers see of slipway.contrib; written by tools/stubs.py."""

from slipway.contrib import cblas as cblas
from slipway.contrib import cc as cc
from slipway.contrib import clang as clang
from slipway.contrib import debugger as debugger
from slipway.contrib import dlpack as dlpack
from slipway.contrib import download as download
from slipway.contrib import graph_executor as graph_executor
from slipway.contrib import graph_runtime as graph_runtime
from slipway.contrib import mkl as mkl
from slipway.contrib import ndk as ndk
from slipway.contrib import nvcc as nvcc
from slipway.contrib import pickle_memoize as pickle_memoize
from slipway.contrib import pipeline_executor as pipeline_executor
from slipway.contrib import pipeline_executor_build as pipeline_executor_build
from slipway.contrib import random as random
from slipway.contrib import relay_viz as relay_viz
from slipway.contrib import rpc as rpc
from slipway.contrib import spirv as spirv
from slipway.contrib import tar as tar
from slipway.contrib import target as target
from slipway.contrib import tedd as tedd
from slipway.contrib import torch as torch
from slipway.contrib import util as util
from slipway.contrib import utils as utils
from slipway.contrib import xcode as xcode

__all__ = [
    "cblas",
    "cc",
    "clang",
    "debugger",
    "dlpack",
    "download",
    "graph_executor",
    "graph_runtime",
    "mkl",
    "ndk",
    "nvcc",
    "pickle_memoize",
    "pipeline_executor",
    "pipeline_executor_build",
    "random",
    "relay_viz",
    "rpc",
    "spirv",
    "tar",
    "target",
    "tedd",
    "torch",
    "util",
    "utils",
    "xcode",
]
