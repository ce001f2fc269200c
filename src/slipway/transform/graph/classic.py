"""``relay.transform``: graph passes under their classic names.

Each name makes a pass object, called on a module: ``relay.transform.FoldConstant()(mod)``.
`Sequential` runs several under the current PassContext, leaving out those above its opt_level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slipway.errors import LoweringError
from slipway.ir.function import GlobalVar, IRModule
from slipway.ir.visit import walk
from slipway.relay import op_rules
from slipway.relay.expr import Call, Expr, Function, Op
from slipway.relay.op_registry import is_primitive
from slipway.relay.open_dims import fix_shapes
from slipway.relay.visit import rewrite
from slipway.transform.context import PassContext
from slipway.transform.graph.byoc.annotate_target import annotate_target
from slipway.transform.graph.byoc.merge_composite import merge_composite
from slipway.transform.graph.byoc.merge_regions import merge_regions
from slipway.transform.graph.byoc.partition_graph import partition_graph
from slipway.transform.graph.common_subexpr import eliminate_common_subexpr
from slipway.transform.graph.conv.fold_scale_axis import fold_scale_axis
from slipway.transform.graph.convert_layout import convert_layout
from slipway.transform.graph.dead_channels import remove_dead_channels
from slipway.transform.graph.dead_code import eliminate_dead_code
from slipway.transform.graph.dynamic_to_static import dynamic_to_static
from slipway.transform.graph.fold_constant import fold_constant
from slipway.transform.graph.fuse_ops import MAX_DEPTH, fuse_ops
from slipway.transform.graph.infer_type import infer_type, infer_types
from slipway.transform.graph.inline import inline, inline_marked
from slipway.transform.graph.pipeline import main_function, over_functions
from slipway.transform.graph.precision.mixed_precision import to_mixed_precision
from slipway.transform.graph.simplify_expr import simplify_expr
from slipway.transform.graph.simplify_inference import simplify_inference
from slipway.transform.manager import (
    FunctionPass,
    ModulePass,
    Pass,
    Sequential,
    Setting,
    may_be_required,
    pass_of,
)

__all__ = [
    "AnnotateTarget", "CanonicalizeOps", "ConvertLayout", "DeadCodeElimination",
    "EliminateCommonSubexpr", "FixShapes", "FoldConstant", "FoldScaleAxis", "FunctionPass",
    "FuseOps", "InferType", "Inline", "Legalize", "MergeCompilerRegions", "MergeComposite",
    "ModulePass", "PartitionGraph", "Pass", "PassContext", "RemoveDeadChannels", "Sequential",
    "SimplifyExpr", "SimplifyInference", "ToGraphNormalForm", "ToMixedPrecision", "build_config",
    "function_pass", "module_pass",
]  # fmt: skip


def on_functions(
    name: str, run: Callable[[Function, IRModule], Function], typed: bool = True
) -> Pass:
    """Return a pass that replaces each relay function by ``run(function, module)``.

    The functions have their types, unless `typed` is False.
    """

    def over(module: IRModule, setting: Setting) -> IRModule:
        module = infer_types(module) if typed else module
        return over_functions(module, lambda function: run(function, module))

    return Pass(name, None, over)


def InferType() -> Pass:
    """Give every expression its `checked_type`."""
    return Pass("InferType", None, lambda module, setting: infer_types(module))


def FixShapes(shapes: Mapping[str, Sequence[int]]) -> Pass:
    """Give inputs of "main" that have open dimensions (`relay.Any()`) their shapes."""

    def run(module: IRModule, setting: Setting) -> IRModule:
        return module.update("main", fix_shapes(main_function(module), shapes))

    return Pass("FixShapes", None, run)


def SimplifyInference() -> Pass:
    """Replace batch_norm and dropout by what they are in inference."""
    return on_functions("SimplifyInference", lambda f, m: simplify_inference(f))


def FoldConstant(fold_qnn: bool = False) -> Pass:
    """Compute what depends on constants only.

    Either value of `fold_qnn` gives the same: operators of relay.qnn are made of plain ones.
    """
    return on_functions("FoldConstant", lambda f, m: fold_constant(f))


def SimplifyExpr() -> Pass:
    """Apply local rules that make the graph smaller."""
    return on_functions("SimplifyExpr", lambda f, m: simplify_expr(f))


def CanonicalizeOps() -> Pass:
    """Write bias_add as an addition, and apply the other rules of SimplifyExpr."""
    return on_functions("CanonicalizeOps", lambda f, m: simplify_expr(f))


def FoldScaleAxis() -> Pass:
    """Move per-channel factors into the weights before them."""
    return on_functions("FoldScaleAxis", lambda f, m: fold_scale_axis(f))


def EliminateCommonSubexpr(fskip: Callable[[Expr], Any] | None = None) -> Pass:
    """Share equal calls, but for those of which ``fskip(call)`` is true."""
    return on_functions("EliminateCommonSubexpr", lambda f, m: eliminate_common_subexpr(f, fskip))


def DeadCodeElimination(inline_once: bool = False) -> Pass:
    """Drop Lets that nothing uses; with `inline_once` put values used once where they are used."""
    return on_functions(
        "DeadCodeElimination", lambda f, m: eliminate_dead_code(f, inline_once), typed=False
    )


def RemoveDeadChannels() -> Pass:
    """Leave out channels of integer tensors that are constant for every input."""
    return on_functions("RemoveDeadChannels", lambda f, m: remove_dead_channels(f))


def Inline() -> Pass:
    """Put the module's functions that are marked ``Inline`` in the place of their calls."""

    def run(module: IRModule, setting: Setting) -> IRModule:
        made = inline_marked(module)
        typed = all(getattr(f, "type", f) is not None for _, f in module.items())
        return infer_types(made) if typed else made

    return Pass("Inline", None, run)


def DynamicToStatic() -> Pass:
    """Put static operators in the place of those whose sizes constants and shapes decide."""
    return on_functions("DynamicToStatic", lambda f, m: fold_constant(dynamic_to_static(f)))


def RemoveUnusedFunctions(entry_functions: Sequence[str] = ("main",)) -> Pass:
    """Leave out the functions that no entry function calls, itself or through others."""

    def run(module: IRModule, setting: Setting) -> IRModule:
        table = dict(module.items())
        kept = [name for name in entry_functions if name in table]
        for name in kept:  # grows while it is walked
            called = [e.name for e in walk(table[name]) if isinstance(e, GlobalVar)]
            kept += [n for n in dict.fromkeys(called) if n in table and n not in kept]
        left = tuple((n, f) for n, f in module.items() if n in kept)
        made: IRModule = module.replace(functions=left)
        return made

    return Pass("RemoveUnusedFunctions", None, run)


def ToGraphNormalForm() -> Pass:
    """Turn Lets into shared dataflow."""
    return on_functions("ToGraphNormalForm", lambda f, m: inline(f), typed=False)


def ToMixedPrecision(mixed_precision_type: str = "float16", missing_op_mode: int = 1) -> Pass:
    """Compute products in float16 or bfloat16 with sums in float32, and what follows them.

    bfloat16 is faster than float32 on Zen 4, Zen 5 and ARM with bf16; elsewhere it is no gain.
    `missing_op_mode` says what to do about an operator that it does not know, and leaves: 0 raise
    LoweringError, 1 warn, 2 nothing.  The outputs of "main" may become of that type, unless the
    option "relay.ToMixedPrecision.keep_orig_output_dtype" is set.
    """

    def run(module: IRModule, setting: Setting) -> IRModule:
        keeps = setting.context.option("relay.ToMixedPrecision.keep_orig_output_dtype", False)
        for key, function in module.items():
            if isinstance(function, Function):
                made = to_mixed_precision(
                    infer_type(function), mixed_precision_type, missing_op_mode,
                    bool(keeps) or str(key) != "main",
                )  # fmt: skip
                module = module.update(key, made)
        return module

    return Pass("ToMixedPrecision", None, run)


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Group operators into kernels; level 0 makes each operator a kernel of its own.

    -1 and the levels of a PassContext from 1 on group them.
    """
    if not isinstance(fuse_opt_level, int) or not -1 <= fuse_opt_level <= 4:
        raise LoweringError(f"fuse_opt_level is a number from -1 to 4, got {fuse_opt_level!r}")

    def run(function: Function, module: IRModule) -> Function:
        if is_primitive(function) or function.attr("Compiler"):
            return function  # a kernel of somebody else's
        limit = int(PassContext.current().option("relay.FuseOps.max_depth", MAX_DEPTH))
        return fuse_ops(infer_type(function), 1 if fuse_opt_level == 0 else limit)

    return on_functions("FuseOps", run)


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]]) -> Pass:
    """Compute operators in other layouts, as ``{"nn.conv2d": ["NHWC", "default"]}``.

    What is between them takes its operands as they lie; a layout_transform stands where a
    value of the graph is needed otherwise.
    """
    if not isinstance(desired_layouts, Mapping):
        raise LoweringError(
            'ConvertLayout takes a table such as {"nn.conv2d": ["NHWC", "default"]}, not '
            f"{desired_layouts!r}"
        )
    return on_functions("ConvertLayout", lambda f, m: convert_layout(f, desired_layouts))


def Legalize(legalize_map_attr_name: str = "FTVMLegalize") -> Pass:
    """Replace calls as the rules of `relay.op.register_legalize` say.

    Rules of another kind are those of ``relay.op_rules.register(legalize_map_attr_name, ...)``.
    Raises LoweringError for a kind under which there are none, but for TVM's own.
    """
    kind = legalize_map_attr_name
    if kind != "FTVMLegalize" and not op_rules.has_rules(kind):
        raise LoweringError(
            f"Legalize: no operator has rules under {kind!r}; register them with "
            "tvm.ir.register_op_attr(operator, kind, rule), or write a pass of your own with "
            "relay.transform.function_pass"
        )

    def rule(expr: Expr) -> Expr | None:
        if not isinstance(expr, Call) or not isinstance(expr.op, Op) or expr.type is None:
            return None
        made = op_rules.apply(kind, expr, expr.args, [[*(a.type for a in expr.args), expr.type]])
        if made is not None and made.type is not None and made.type != expr.type:
            raise LoweringError(
                f"the rule for {expr.op.name} gives {made.type} in the place of {expr.type}"
            )
        return made

    return on_functions("Legalize", lambda f, m: infer_type(rewrite(f, rule)))


def QnnCanonicalizeOps() -> Pass:
    """Type the module: quantised operators are compositions of plain ones from the start."""
    return on_functions("qnn.CanonicalizeOps", lambda f, m: f)


def QnnLegalize() -> Pass:
    """Type the module: a backend chooses how it multiplies integers itself."""
    return on_functions("qnn.Legalize", lambda f, m: f)


def MergeComposite(pattern_table: Sequence[Any]) -> Pass:
    """Make composite functions of what matches the patterns of an accelerator."""
    return on_functions("MergeComposite", lambda f, m: merge_composite(f, pattern_table))


def AnnotateTarget(targets: str | Sequence[str], include_non_call_ops: bool = True) -> Pass:
    """Mark what accelerators take; of several the first that takes a call gets it."""
    names = [targets] if isinstance(targets, str) else list(targets)
    return on_functions("AnnotateTarget", lambda f, m: annotate_target(f, names))


def MergeCompilerRegions() -> Pass:
    """Join neighbouring parts for one accelerator."""
    return on_functions("MergeCompilerRegions", lambda f, m: merge_regions(f))


def PartitionGraph(mod_name: str = "default", bind_constants: bool = True) -> Pass:
    """Make a function of the module of each part for an accelerator."""
    return Pass("PartitionGraph", None, lambda m, s: partition_graph(m, mod_name, bind_constants))


def function_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
) -> Any:
    """Make a pass of ``f(function, module, context) -> function``, or of a class.

    A decorator, or called as one.  A class has ``transform_function``; calling it makes the pass.
    """

    def checked(made: Any, title: str) -> Function:
        if not isinstance(made, Function):
            raise LoweringError(f"the pass {title!r} returned {made!r}, which is no relay function")
        return made

    def make(given: Any) -> Any:
        def over(run: Any, title: str) -> Pass:
            return FunctionPass(
                title,
                opt_level or 0,
                lambda m, s: over_functions(m, lambda f: checked(run(f, m, s.context), title)),
                required=required or (),
                by_user=True,
            )

        return pass_of(given, name, "transform_function", over)

    return make if pass_func is None else make(pass_func)


def module_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
) -> Any:
    """Make a pass of ``f(module, context) -> module``, or of a class with ``transform_module``."""

    def make(given: Any) -> Any:
        def over(run: Any, title: str) -> Pass:
            return ModulePass(
                title,
                opt_level or 0,
                lambda m, s: run(m, s.context),
                required=required or (),
                by_user=True,
            )

        return pass_of(given, name, "transform_module", over)

    return make if pass_func is None else make(pass_func)


def build_config(opt_level: int = 2, **options: Any) -> PassContext:
    """Return a PassContext (the name of TVM 0.6)."""
    known = {k: v for k, v in options.items() if k in ("required_pass", "disabled_pass", "trace")}
    if len(known) != len(options):
        raise LoweringError(f"build_config has no option {sorted(set(options) - set(known))[0]!r}")
    return PassContext(opt_level, **known)


may_be_required(
    InferType, SimplifyInference, FoldConstant, SimplifyExpr, CanonicalizeOps, FoldScaleAxis,
    EliminateCommonSubexpr, DeadCodeElimination, RemoveDeadChannels, Inline, DynamicToStatic,
    RemoveUnusedFunctions, ToGraphNormalForm, ToMixedPrecision, FuseOps, Legalize,
    MergeCompilerRegions, PartitionGraph,
)  # fmt: skip
