"""What type checkers see of slipway.relay.transform; written by tools/stubs.py."""

from slipway.compiler.classic_passes import AlterOpLayout as AlterOpLayout
from slipway.compiler.classic_passes import FuseAttention as FuseAttention
from slipway.compiler.optimize import lower_ready as lower_ready
from slipway.compiler.optimize import optimize as optimize
from slipway.transform.graph.classic import AnnotateTarget as AnnotateTarget
from slipway.transform.graph.classic import CanonicalizeOps as CanonicalizeOps
from slipway.transform.graph.classic import ConvertLayout as ConvertLayout
from slipway.transform.graph.classic import DeadCodeElimination as DeadCodeElimination
from slipway.transform.graph.classic import DynamicToStatic as DynamicToStatic
from slipway.transform.graph.classic import EliminateCommonSubexpr as EliminateCommonSubexpr
from slipway.transform.graph.classic import FixShapes as FixShapes
from slipway.transform.graph.classic import FoldConstant as FoldConstant
from slipway.transform.graph.classic import FoldScaleAxis as FoldScaleAxis
from slipway.transform.graph.classic import FunctionPass as FunctionPass
from slipway.transform.graph.classic import FuseOps as FuseOps
from slipway.transform.graph.classic import InferType as InferType
from slipway.transform.graph.classic import Inline as Inline
from slipway.transform.graph.classic import Legalize as Legalize
from slipway.transform.graph.classic import MergeCompilerRegions as MergeCompilerRegions
from slipway.transform.graph.classic import MergeComposite as MergeComposite
from slipway.transform.graph.classic import ModulePass as ModulePass
from slipway.transform.graph.classic import PartitionGraph as PartitionGraph
from slipway.transform.graph.classic import Pass as Pass
from slipway.transform.graph.classic import PassContext as PassContext
from slipway.transform.graph.classic import RemoveDeadChannels as RemoveDeadChannels
from slipway.transform.graph.classic import RemoveUnusedFunctions as RemoveUnusedFunctions
from slipway.transform.graph.classic import Sequential as Sequential
from slipway.transform.graph.classic import SimplifyExpr as SimplifyExpr
from slipway.transform.graph.classic import SimplifyInference as SimplifyInference
from slipway.transform.graph.classic import ToGraphNormalForm as ToGraphNormalForm
from slipway.transform.graph.classic import ToMixedPrecision as ToMixedPrecision
from slipway.transform.graph.classic import build_config as build_config
from slipway.transform.graph.classic import function_pass as function_pass
from slipway.transform.graph.classic import module_pass as module_pass
from slipway.transform.graph.classic_rewrites import AnnotateSpans as AnnotateSpans
from slipway.transform.graph.classic_rewrites import BackwardFoldScaleAxis as BackwardFoldScaleAxis
from slipway.transform.graph.classic_rewrites import BatchingOps as BatchingOps
from slipway.transform.graph.classic_rewrites import CanonicalizeCast as CanonicalizeCast
from slipway.transform.graph.classic_rewrites import ChangeBatch as ChangeBatch
from slipway.transform.graph.classic_rewrites import CombineParallelBatchMatmul as CombineParallelBatchMatmul
from slipway.transform.graph.classic_rewrites import CombineParallelConv2D as CombineParallelConv2D
from slipway.transform.graph.classic_rewrites import CombineParallelDense as CombineParallelDense
from slipway.transform.graph.classic_rewrites import DefuseOps as DefuseOps
from slipway.transform.graph.classic_rewrites import DenseToSparse as DenseToSparse
from slipway.transform.graph.classic_rewrites import FakeQuantizationToInteger as FakeQuantizationToInteger
from slipway.transform.graph.classic_rewrites import FastMath as FastMath
from slipway.transform.graph.classic_rewrites import FlattenAtrousConv as FlattenAtrousConv
from slipway.transform.graph.classic_rewrites import FoldExplicitPadding as FoldExplicitPadding
from slipway.transform.graph.classic_rewrites import ForwardFoldScaleAxis as ForwardFoldScaleAxis
from slipway.transform.graph.classic_rewrites import InferTypeLocal as InferTypeLocal
from slipway.transform.graph.classic_rewrites import SplitArgs as SplitArgs
from slipway.transform.graph.classic_rewrites import ToANormalForm as ToANormalForm
from slipway.transform.graph.convert_layout import LayoutConfig as LayoutConfig
from slipway.transform.manager import print_ir as PrintIR

__all__ = [
    "AlterOpLayout",
    "AnnotateSpans",
    "AnnotateTarget",
    "BackwardFoldScaleAxis",
    "BatchingOps",
    "CanonicalizeCast",
    "CanonicalizeOps",
    "ChangeBatch",
    "CombineParallelBatchMatmul",
    "CombineParallelConv2D",
    "CombineParallelDense",
    "ConvertLayout",
    "DeadCodeElimination",
    "DefuseOps",
    "DenseToSparse",
    "DynamicToStatic",
    "EliminateCommonSubexpr",
    "FakeQuantizationToInteger",
    "FastMath",
    "FixShapes",
    "FlattenAtrousConv",
    "FoldConstant",
    "FoldExplicitPadding",
    "FoldScaleAxis",
    "ForwardFoldScaleAxis",
    "FunctionPass",
    "FuseAttention",
    "FuseOps",
    "InferType",
    "InferTypeLocal",
    "Inline",
    "LayoutConfig",
    "Legalize",
    "MergeCompilerRegions",
    "MergeComposite",
    "ModulePass",
    "PartitionGraph",
    "Pass",
    "PassContext",
    "PrintIR",
    "RemoveDeadChannels",
    "RemoveUnusedFunctions",
    "Sequential",
    "SimplifyExpr",
    "SimplifyInference",
    "SplitArgs",
    "ToANormalForm",
    "ToGraphNormalForm",
    "ToMixedPrecision",
    "build_config",
    "function_pass",
    "lower_ready",
    "module_pass",
    "optimize",
]
