"""What type checkers see of slipway.tir.transform; written by tools/stubs.py."""

from slipway.compiler.classic_thread_passes import InjectVirtualThread as InjectVirtualThread
from slipway.compiler.classic_thread_passes import UnifyThreadBinding as UnifyThreadBinding
from slipway.transform.context import PassContext as PassContext
from slipway.transform.loop.classic import Apply as Apply
from slipway.transform.loop.classic import BindTarget as BindTarget
from slipway.transform.loop.classic import ConvertForLoopsToSerial as ConvertForLoopsToSerial
from slipway.transform.loop.classic import Filter as Filter
from slipway.transform.loop.classic import FlattenBuffer as FlattenBuffer
from slipway.transform.loop.classic import InjectDoubleBuffer as InjectDoubleBuffer
from slipway.transform.loop.classic import InjectPrefetch as InjectPrefetch
from slipway.transform.loop.classic import LoopPartition as LoopPartition
from slipway.transform.loop.classic import RemoveNoOp as RemoveNoOp
from slipway.transform.loop.classic import Simplify as Simplify
from slipway.transform.loop.classic import SkipAssert as SkipAssert
from slipway.transform.loop.classic import StorageFlatten as StorageFlatten
from slipway.transform.loop.classic import StorageRewrite as StorageRewrite
from slipway.transform.loop.classic import UnrollLoop as UnrollLoop
from slipway.transform.loop.classic import VectorizeLoop as VectorizeLoop
from slipway.transform.loop.classic import prim_func_pass as prim_func_pass
from slipway.transform.manager import PrimFuncPass as PrimFuncPass

__all__ = [
    "Apply",
    "BindTarget",
    "ConvertForLoopsToSerial",
    "Filter",
    "FlattenBuffer",
    "InjectDoubleBuffer",
    "InjectPrefetch",
    "InjectVirtualThread",
    "LoopPartition",
    "PassContext",
    "PrimFuncPass",
    "RemoveNoOp",
    "Simplify",
    "SkipAssert",
    "StorageFlatten",
    "StorageRewrite",
    "UnifyThreadBinding",
    "UnrollLoop",
    "VectorizeLoop",
    "prim_func_pass",
]
