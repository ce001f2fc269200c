"""The names of passes, for `required_pass` and `disabled_pass` of a PassContext.

A loop pass is known by its name here (``vectorize_loop``) and by the classic one
(``tir.VectorizeLoop``).  A name that nobody has is an error with a suggestion; one that classic TVM
has and Slipway has not may be disabled, which changes nothing, but not required.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from slipway.errors import LoweringError, did_you_mean

# Every graph pass and the lowest opt_level at which it runs, in the lists of backends and under its
# classic name alike.
OPT_LEVELS = {
    "AlterOpLayout": 2,
    "AnnotateSpans": 0,
    "AnnotateTarget": 0,
    "BackwardFoldScaleAxis": 3,
    "BatchingOps": 4,
    "CanonicalizeCast": 3,
    "CanonicalizeOps": 3,
    "ChangeBatch": 0,
    "ChannelsFirst": 2,
    "CombineParallelBatchMatmul": 4,
    "CombineParallelConv2D": 4,
    "CombineParallelDense": 4,
    "ConvertLayout": 3,
    "CutKernels": 2,
    "DeadCodeElimination": 1,
    "DeepPools": 2,
    "DefuseOps": 0,
    "DenseToSparse": 0,
    "DilatedPhases": 2,
    "DynamicToStatic": 2,
    "EliminateCommonSubexpr": 3,
    "ExactSoftplus": 2,
    "FakeQuantizationToInteger": 0,
    "FastMath": 4,
    "FixShapes": 0,
    "FlattenAtrousConv": 1,
    "FoldConstant": 2,
    "FoldExplicitPadding": 0,
    "FoldScaleAxis": 3,
    "FuseAttention": 2,
    "ForwardFoldScaleAxis": 3,
    "FuseOps": 1,
    "InferType": 0,
    "IntegerProducts": 2,
    "Inline": 1,
    "HalfWeights": 2,
    "JoinReductions": 2,
    "JoinRows": 2,
    "KernelPerOp": 0,
    "Legalize": 1,
    "MergeCompilerRegions": 0,
    "MergeComposite": 0,
    "MoveActivations": 0,
    "ByteSums": 2,
    "EvenShifts": 2,
    "MovedBytes": 2,
    "PlainLayouts": 0,
    "ShortRounding": 2,
    "NarrowRescale": 2,
    "OptimizeLoops": 0,
    "NarrowSums": 2,
    "OwnOutputs": 0,
    "KeepBlockWeights": 2,
    "PackBlockWeights": 2,
    "PackQuantizedWeights": 2,
    "PartitionGraph": 0,
    "PlaceImages": 0,
    "RemoveDeadChannels": 2,
    "RemoveUnusedFunctions": 1,
    "RepeatCasts": 2,
    "RoundOnce": 2,
    "SelectBranches": 0,
    "OutlineBranches": 0,
    "SimplifyExpr": 0,
    "SimplifyInference": 0,
    "FreeReshapes": 2,
    "SinkReshape": 2,
    "SplitArgs": 1,
    "SplitJoins": 0,
    "SubpixelConv": 0,
    "TanhOfSoftplus": 2,
    "ToANormalForm": 1,
    "ToGraphNormalForm": 1,
    "TexelLayout": 0,
    "ToMixedPrecision": 0,
    "TransposeWeights": 0,
    "WinogradConv": 0,
    "WidenProducts": 2,
    "qnn.CanonicalizeOps": 0,
    "qnn.Legalize": 1,
}
# Loop passes run at every level; the modules of neither are loaded by a PassContext.  `Pass` adds a
# user's own.
NAMES = set(
    """
    accumulate_dots begin_copies cut_loops flatten_storage hoist_choice hoist_padding
    inject_double_buffer inject_prefetch
    instrument_bounds join_rows lay_out_textures loop_partition lower_blocks lower_custom_calls
    lower_custom_datatypes map_threads reduce_over_threads remove_assertions
    remove_unused serialize_threads simplify storage_rewrite swizzle_storage transpose_loads
    unroll_loop vectorize_loop
    """.split()  # noqa: SIM905
).union(OPT_LEVELS)

# Passes of classic TVM for which there is none here.
_CLASSIC = frozenset(
    """
    CapturePostDfsIndexInSpans Defunctionalization DivToMul
    EtaExpand FirstOrderGradient FlattenNestedTuples
    ForwardFoldScaleAxis GradientCellTransform ImplicitPermuteQuantize LabelOps
    LambdaLift LazyGradientInit ManifestAlloc ManifestLifetimes MemoryPlan
    OutlineCompilerFunctions PartialEval
    PlanDevices RelayToTIRTargetHook RemoveStandaloneReshapes
    SimplifyFCTranspose ToBasicBlockNormalForm ToCPS
    tir.CommonSubexprElimTIR tir.CoProcSync tir.HoistIfThenElse tir.InjectVirtualThread
    tir.LiftAttrScope tir.LowerTVMBuiltin tir.MergeDynamicSharedMemoryAllocations
    tir.NarrowDataType tir.RewriteUnsafeSelect tir.SplitHostDevice tir.StorageFlatten
    tir.ThreadSync tir.UsePassUpDomain
    """.split()  # noqa: SIM905
)

_ALIASES = {
    "tir.LoopPartition": "loop_partition", "tir.StorageFlatten": "flatten_storage",
    "tir.FlattenBuffer": "flatten_storage", "tir.RemoveNoOp": "remove_unused",
}  # fmt: skip


def canonical(name: str) -> str:
    """Return our name for a pass: ``tir.VectorizeLoop`` is ``vectorize_loop``."""
    if name in _ALIASES:
        return _ALIASES[name]
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removeprefix("tir.")).lower()
    return snake if name.startswith("tir.") and snake in NAMES else name


def check_names(names: Iterable[str], option: str) -> frozenset[str]:
    """Return `names` as ours.  Raises LoweringError for one that names no pass."""
    if isinstance(names, str):
        raise LoweringError(f"{option} takes a list of names, got the text {names!r}: [{names!r}]")
    given = list(names) if isinstance(names, Iterable) else [names]
    for name in given:
        if not isinstance(name, str):
            raise LoweringError(
                f'{option} takes a list of names of passes, such as ["FuseOps"]; {name!r} is none'
            )
        if canonical(name) in NAMES or (name in _CLASSIC and option == "disabled_pass"):
            continue
        why = "Slipway has no such pass." if name in _CLASSIC else did_you_mean(name, NAMES)
        raise LoweringError(f"{option} names {name!r}, which is no pass.{' ' + why if why else ''}")
    return frozenset(map(canonical, given))
