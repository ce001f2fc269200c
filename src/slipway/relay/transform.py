"""``relay.transform``: graph passes under their classic names."""

from slipway.lazy import by_module, offer

_HOMES = by_module(
    {
        "slipway.transform.graph.classic": (
            "AnnotateTarget CanonicalizeOps ConvertLayout DeadCodeElimination DynamicToStatic "
            "EliminateCommonSubexpr FixShapes FoldConstant FoldScaleAxis FunctionPass FuseOps "
            "InferType Inline Legalize MergeCompilerRegions MergeComposite ModulePass "
            "PartitionGraph Pass PassContext RemoveDeadChannels RemoveUnusedFunctions "
            "Sequential SimplifyExpr "
            "SimplifyInference ToGraphNormalForm ToMixedPrecision build_config function_pass "
            "module_pass"
        ),
        "slipway.transform.graph.classic_rewrites": (
            "AnnotateSpans BackwardFoldScaleAxis BatchingOps CanonicalizeCast ChangeBatch "
            "CombineParallelBatchMatmul CombineParallelConv2D CombineParallelDense DefuseOps "
            "DenseToSparse FakeQuantizationToInteger FastMath FlattenAtrousConv "
            "FoldExplicitPadding ForwardFoldScaleAxis InferTypeLocal SplitArgs ToANormalForm"
        ),
        "slipway.compiler.classic_passes": "AlterOpLayout FuseAttention",
        "slipway.transform.graph.convert_layout": "LayoutConfig",
        "slipway.compiler.optimize": "lower_ready optimize",
    }
) | {"PrintIR": "slipway.transform.manager:print_ir"}
__getattr__, __dir__ = offer(__name__, _HOMES, explain=True)
