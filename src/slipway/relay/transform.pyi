"""What type checkers see of slipway.relay.transform; written by tools/stubs.py."""

from slipway.compiler.classic_passes import AlterOpLayout as AlterOpLayout
from slipway.compiler.classic_passes import AnnotateTarget as AnnotateTarget
from slipway.compiler.classic_passes import CanonicalizeOps as CanonicalizeOps
from slipway.compiler.classic_passes import DeadCodeElimination as DeadCodeElimination
from slipway.compiler.classic_passes import EliminateCommonSubexpr as EliminateCommonSubexpr
from slipway.compiler.classic_passes import FixShapes as FixShapes
from slipway.compiler.classic_passes import FoldConstant as FoldConstant
from slipway.compiler.classic_passes import FoldScaleAxis as FoldScaleAxis
from slipway.compiler.classic_passes import FuseAttention as FuseAttention
from slipway.compiler.classic_passes import FuseOps as FuseOps
from slipway.compiler.classic_passes import InferType as InferType
from slipway.compiler.classic_passes import Inline as Inline
from slipway.compiler.classic_passes import Legalize as Legalize
from slipway.compiler.classic_passes import MergeCompilerRegions as MergeCompilerRegions
from slipway.compiler.classic_passes import MergeComposite as MergeComposite
from slipway.compiler.classic_passes import PartitionGraph as PartitionGraph
from slipway.compiler.classic_passes import RemoveDeadChannels as RemoveDeadChannels
from slipway.compiler.classic_passes import SimplifyExpr as SimplifyExpr
from slipway.compiler.classic_passes import SimplifyInference as SimplifyInference
from slipway.compiler.classic_passes import ToGraphNormalForm as ToGraphNormalForm
from slipway.compiler.classic_passes import ToMixedPrecision as ToMixedPrecision
from slipway.compiler.classic_passes import build_config as build_config
from slipway.compiler.classic_passes import function_pass as function_pass
from slipway.compiler.classic_passes import module_pass as module_pass
from slipway.compiler.optimize import lower_ready as lower_ready
from slipway.compiler.optimize import optimize as optimize
from slipway.transform.context import PassContext as PassContext
from slipway.transform.manager import FunctionPass as FunctionPass
from slipway.transform.manager import ModulePass as ModulePass
from slipway.transform.manager import Pass as Pass
from slipway.transform.manager import Sequential as Sequential

__all__ = [
    "AlterOpLayout",
    "AnnotateTarget",
    "CanonicalizeOps",
    "DeadCodeElimination",
    "EliminateCommonSubexpr",
    "FixShapes",
    "FoldConstant",
    "FoldScaleAxis",
    "FunctionPass",
    "FuseAttention",
    "FuseOps",
    "InferType",
    "Inline",
    "Legalize",
    "MergeCompilerRegions",
    "MergeComposite",
    "ModulePass",
    "PartitionGraph",
    "Pass",
    "PassContext",
    "RemoveDeadChannels",
    "Sequential",
    "SimplifyExpr",
    "SimplifyInference",
    "ToGraphNormalForm",
    "ToMixedPrecision",
    "build_config",
    "function_pass",
    "lower_ready",
    "module_pass",
    "optimize",
]
