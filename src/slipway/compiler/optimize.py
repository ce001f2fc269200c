"""From an imported module to kernels: the list of graph passes, in order.

`optimize` is what ``relay.build`` runs before it compiles the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from slipway.backends.cpu.lowering.alter_layout import alter_layout
from slipway.backends.cpu.lowering.dot_pairs import best_in_pairs, pair_instructions
from slipway.backends.cpu.lowering.fuse_attention import fuse_attention
from slipway.backends.cpu.lowering.move_activations import move_activations
from slipway.backends.cpu.lowering.narrow_rescale import narrow_rescale
from slipway.backends.cpu.lowering.pack_quantized import (
    pack_quantized,
    packing_instructions,
    stored_as,
)
from slipway.backends.cpu.lowering.subpixel_conv import subpixel_conv
from slipway.backends.cpu.lowering.widen_products import widen_products
from slipway.errors import LoweringError
from slipway.ir.function import IRModule
from slipway.relay.construct import bind, distinct_names
from slipway.relay.expr import Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.open_dims import need_fixed
from slipway.relay.ops.nn.attention import fills_vectors
from slipway.transform.context import PassContext
from slipway.transform.graph.common_subexpr import eliminate_common_subexpr
from slipway.transform.graph.dead_channels import remove_dead_channels
from slipway.transform.graph.fold_constant import fold_constant
from slipway.transform.graph.fold_scale_axis import fold_scale_axis
from slipway.transform.graph.fuse_ops import MAX_DEPTH, fuse_ops
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.graph.inline import inline
from slipway.transform.graph.integer_arithmetic import integer_arithmetic
from slipway.transform.graph.loop_invariants import optimize_loops
from slipway.transform.graph.own_outputs import own_outputs
from slipway.transform.graph.round_once import round_once
from slipway.transform.graph.simplify_expr import simplify_expr
from slipway.transform.graph.simplify_inference import simplify_inference
from slipway.transform.graph.sink_reshape import sink_reshape

FunctionPass = Callable[[Function], Function]

# (classic name, least opt_level, pass), for every target and model.
PIPELINE: tuple[tuple[str, int, FunctionPass], ...] = (
    ("InferType", 0, infer_type),
    ("FakeQuantizationToInteger", 0, integer_arithmetic),
    ("SimplifyInference", 0, simplify_inference),
    ("WidenProducts", 2, widen_products),
    ("RoundOnce", 2, round_once),
    ("FoldConstant", 2, fold_constant),
    ("SimplifyExpr", 0, simplify_expr),
    ("FoldConstant", 2, fold_constant),
    ("FoldScaleAxis", 3, fold_scale_axis),
    ("SinkReshape", 2, sink_reshape),
    ("SimplifyExpr", 0, simplify_expr),
    ("FoldConstant", 2, fold_constant),
    ("RemoveDeadChannels", 2, remove_dead_channels),
    ("EliminateCommonSubexpr", 3, eliminate_common_subexpr),
)


# Passes whose results differ from the model's own arithmetic by rounding.  The target option
# -strict leaves them out, and Winograd's convolution (docs/numerics.md).
INEXACT = ("FakeQuantizationToInteger", "FoldScaleAxis", "RoundOnce")


def main_function(mod: IRModule) -> Function:
    """Return the relay function "main".  Raises LoweringError when there is none."""
    main = dict(mod.items()).get("main")
    if not isinstance(main, Function):
        names = ", ".join(mod) or "nothing"
        raise LoweringError(f"a model needs a relay function called 'main'; the module has {names}")
    return main


def optimize(
    mod: IRModule,
    params: Mapping[str, Any] | None = None,
    target: Any = None,
    opt_level: int | None = None,
    layout_lanes: int = 0,
) -> IRModule:
    """Return the module of one function "main" whose body calls kernels (Primitive functions).

    `params` are bound as constants.  `opt_level` None is the PassContext's.  `layout_lanes` above
    1 carries channels in blocks of that many through the graph (see `alter_layout`); it needs
    opt_level 2.  Everything in the result is typed; there is no Let and no call but of kernels.
    """
    for _, main in optimize_steps(mod, params, target, opt_level, layout_lanes):
        done = main
    return IRModule((("main", done),))


def optimize_steps(
    mod: IRModule,
    params: Mapping[str, Any] | None = None,
    target: Any = None,
    opt_level: int | None = None,
    layout_lanes: int = 0,
) -> Iterator[tuple[str, Function]]:
    """Yield (name of the pass, "main" behind it) for each step of `optimize`, in order."""
    context = PassContext.current()
    level = context.opt_level if opt_level is None else opt_level
    main = distinct_names(inline(bind(main_function(mod), params or {}), mod))
    need_fixed(main)
    yield "Inline", main
    steps = partial(_graph_steps, target=target, context=context, level=level, lanes=layout_lanes)
    imported = main
    for name, main in steps(imported):
        yield name, main
    depth = int(context.option("relay.FuseOps.max_depth", MAX_DEPTH))
    if not _enabled(context, "FuseOps", 1, level):
        depth = 1
    fuse = partial(
        fuse_ops, max_depth=depth, ends=ends_quantized_layer if is_bare_metal(target) else None
    )

    def with_loops(graph: Function) -> Function:
        return optimize_loops(graph, lambda b: with_loops(_last(steps, inline(b, mod))), fuse)

    looped = with_loops(main)
    if looped is not main:
        main = fold_constant(looped) if _enabled(context, "FoldConstant", 2, level) else looped
        yield "OptimizeLoops", main
    main = own_outputs(main)
    yield "OwnOutputs", main
    yield "FuseOps", fuse(main)


def _last(steps: Callable[[Function], Iterable[tuple[str, Function]]], body: Function) -> Function:
    for _, done in steps(body):
        body = done
    return body


def _graph_steps(
    main: Function, target: Any, context: PassContext, level: int, lanes: int
) -> Iterator[tuple[str, Function]]:
    """Yield the passes over a graph of operators, before it is cut into kernels."""
    instructions = packing_instructions(target)
    packs = bool(instructions) and _enabled(context, "PackQuantizedWeights", 2, level)
    if packs and (stored := stored_as(instructions)):
        main = move_activations(main, stored)
        yield "MoveActivations", main
    strict = target is not None and target.is_strict
    pairs = pair_instructions(target) if lanes > 1 else []
    for name, least, run in PIPELINE:
        if strict and name in INEXACT:
            continue
        if _enabled(context, name, least, level):
            if run is widen_products and pairs:
                winograd, speed = allows_winograd(target), pairs[0].depth
                narrow = best_in_pairs(main, lanes, speed, winograd)
                run = partial(run, in_pairs=narrow)
            main = run(main)
            yield name, main
    rows = attention_lanes(target)
    if rows and _enabled(context, "FuseAttention", 2, level):
        main = fuse_attention(main, partial(fills_vectors, lanes=rows))
        main = eliminate_common_subexpr(fold_constant(simplify_expr(main)))
        yield "FuseAttention", main
    if lanes > 1 and _enabled(context, "AlterOpLayout", 2, level):
        altered = subpixel_conv(main)
        yield "SubpixelConv", altered
        units = partial(panel_units, target, lanes)
        altered = alter_layout(altered, lanes, allows_winograd(target), units, pairs)
        yield "AlterOpLayout", altered
        main = fold_constant(simplify_expr(altered))
        yield "FoldConstant", main
    if packs:
        main = sink_reshape(pack_quantized(main, instructions))
        yield "PackQuantizedWeights", main
    vectors = target is not None and target.kind.name == "llvm"
    if vectors and _enabled(context, "NarrowRescale", 2, level):
        main = narrow_rescale(main)
        yield "NarrowRescale", main


def is_bare_metal(target: Any) -> bool:
    """Tell whether code is C for a core without operating system."""
    return target is not None and target.kind.name == "c" and target.parsed_triple.system == "none"


def ends_quantized_layer(expr: Expr) -> bool:
    """Tell whether `expr` gives a layer's int8 result, or a value too long to compute twice.

    Kernels that end there keep tensors in memory at one byte an element; what a wider kernel would
    hand on in int32 does not fit into a microcontroller.
    """
    return is_call_of(expr, "qnn.reciprocal") or (
        is_call_of(expr, "cast")
        and expr.attrs.dtype == "int8"  # type: ignore[attr-defined]
        and is_call_of(expr.args[0], "clip")  # type: ignore[attr-defined]
    )


def panel_units(target: Any, lanes: int, rows: int, units: int) -> int:
    """Return how many of the `units` of a product of `rows` have their weights side by side.

    Where data is multiplied by lane, four vectors, so that two are loaded at once; sixteen for one
    row, whose few sums leave registers for them, eight with the 16 registers of armv7; three or two
    for whole tiles of eight rows, the lanes of two vectors (`schedules.cpu.rows_by_lane`).
    Elsewhere one vector of `lanes`, and for one row 64 units, or eight vectors: its weights then
    come from one place in memory.
    """
    if target is None or target.kind.name != "llvm":
        return lanes
    if not target.multiplies_by_lane:
        return min(64, 8 * lanes) if rows == 1 else lanes
    wide = target.parsed_triple.table == "aarch64"  # 32 registers
    if rows == 1:
        return (16 if wide else 8) * lanes
    whole = [n for n in (3, 2) if wide and rows % 8 == 0 and units % (n * lanes) == 0]
    return (whole or [4])[0] * lanes


def attention_lanes(target: Any) -> int:
    """Return the float32 lanes of vectors for a fused attention; 0: it stays in its parts.

    It does on microcontrollers, whose memory a block of scores would fill, and without vectors.
    """
    if target is None or target.kind.name not in ("llvm", "c"):
        return 0
    if target.parsed_triple.system == "none" or "thumb" in target.triple:
        return 0
    return int(target.vector_bits // 32)


def allows_winograd(target: Any) -> bool:
    """Tell whether convolutions may be computed by Winograd's algorithm.

    Not with the target option ``-strict``, which asks for direct sums, and not for
    microcontrollers, whose memory its transformed tiles would fill.
    """
    return (
        target is not None
        and target.kind.name == "llvm"
        and not target.is_strict
        and "thumb" not in target.triple
    )


def _enabled(context: PassContext, name: str, least: int, level: int) -> bool:
    return context.is_enabled(name) and (level >= least or name in context.required_pass)


def lower_ready(mod: IRModule, params: Mapping[str, Any] | None, target: Any = None) -> IRModule:
    """Return `optimize` of the module under the current PassContext."""
    return optimize(mod, params, target)
