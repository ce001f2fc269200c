"""Graph passes for processors, in order, and what decides between them.

After the passes for every target: attention in one piece, channels in blocks, weights packed for
the target's instructions.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from slipway.backends.cpu.knobs import fills_vectors
from slipway.backends.cpu.lowering.alter_layout import alter_layout
from slipway.backends.cpu.lowering.byte_sums import byte_sums
from slipway.backends.cpu.lowering.channels_first import channels_first
from slipway.backends.cpu.lowering.cut_kernels import cut_kernels
from slipway.backends.cpu.lowering.deep_pools import deep_pools
from slipway.backends.cpu.lowering.dilated_phases import dilated_phases
from slipway.backends.cpu.lowering.dot_pairs import (
    best_in_pairs,
    gain_in_pairs,
    gains_in_parts,
    lanes_in_groups,
    pair_instructions,
)
from slipway.backends.cpu.lowering.even_shifts import even_shifts
from slipway.backends.cpu.lowering.integer_products import integer_products
from slipway.backends.cpu.lowering.keep_blocks import keep_blocks
from slipway.backends.cpu.lowering.layout_choice import best_block
from slipway.backends.cpu.lowering.layout_wish import layout_wish
from slipway.backends.cpu.lowering.move_activations import move_activations
from slipway.backends.cpu.lowering.moved_bytes import moved_bytes
from slipway.backends.cpu.lowering.narrow_rescale import narrow_rescale
from slipway.backends.cpu.lowering.pack_blocks import float_lanes, pack_blocks
from slipway.backends.cpu.lowering.pack_quantized import (
    pack_quantized,
    packing_instructions,
    stored_as,
)
from slipway.backends.cpu.lowering.pad_quantized import pad_quantized
from slipway.backends.cpu.lowering.plain_conv import stays_plain
from slipway.backends.cpu.lowering.short_rounding import short_rounding
from slipway.backends.cpu.tile import (
    LANE_BLOCKS,
    choose_tile,
    dividing,
    fma,
    lane_rows,
    vector_registers,
)
from slipway.relay.expr import Call, Function
from slipway.target import Target
from slipway.target.capability import capability_of
from slipway.target.cores import Core
from slipway.target.costs import ANY_CORE, Costs
from slipway.transform.graph.attention.fuse_attention import fuse_attention
from slipway.transform.graph.common_subexpr import eliminate_common_subexpr
from slipway.transform.graph.conv.subpixel_conv import subpixel_conv
from slipway.transform.graph.fold_constant import fold_constant
from slipway.transform.graph.pipeline import (
    FREE_RESHAPES,
    MIDDLE,
    OPENING,
    ending,
    graph_pass,
    setting_pass,
)
from slipway.transform.graph.precision.widen_products import widen_products
from slipway.transform.graph.simplify_expr import simplify_expr
from slipway.transform.graph.sink_reshape import sink_reshape
from slipway.transform.manager import Pass, Setting


def _is_llvm(target: Target | None) -> bool:
    """Return whether code goes through LLVM, which has vectors and their instructions."""
    return target is not None and target.is_by_llvm


def panel_units(target: Target | None, lanes: int, rows: int, units: int) -> int:
    """Return how many of the `units` of a product of `rows` have their weights contiguous.

    With lane-indexed FMA, four vectors, so that two are loaded at once; sixteen for one row, whose
    few sums leave registers for them, eight with the 16 registers of armv7; three or two for whole
    tiles whose rows are lanes of vectors (`schedules.matmul.lane_fma_rows`).  Elsewhere one
    vector of `lanes`, and for one row 64 units, or eight vectors: its weights are then one stream
    from memory.  Engines of WebAssembly load all of a step before they multiply: there it is half
    the registers, those of a value and a product left out.
    """
    if target is None or not _is_llvm(target):
        return lanes
    if not target.has_lane_fma:
        if rows == 1 and target.parsed_triple.table == "wasm":
            return (vector_registers(target) - 2) // 2 * lanes
        return min(64, 8 * lanes) if rows == 1 else lanes
    wide = target.parsed_triple.table == "aarch64"  # 32 registers
    if rows == 1:
        return (16 if wide else 8) * lanes
    is_whole = wide and rows % lane_rows(target) == 0
    whole = [n for n in LANE_BLOCKS if is_whole and units % (n * lanes) == 0]
    return (whole or [4])[0] * lanes


def cut_units(target: Target | None, lanes: int, rows: int, units: int) -> int:
    """Return the block of units for a product of `rows`, of which the last is not full.

    That which takes the fewest vectors.  Where two half vectors begin in the time of a whole one,
    an odd number of halves, if that is clearly less.  Several vectors if tiles of them are clearly
    faster: one that is not full is in no tile with others unless all tiles have as many, and of 61
    vectors each is a tile.  With lane-indexed FMA, whose vectors are short, as many of them as are
    predicted to take least time: a tile of one takes a register for each of its rows.
    """
    whole = best_block(units, lanes)
    if target is None or not _is_llvm(target) or rows == 1:
        return whole

    def cycles(width: int, from_l1: bool = False) -> float:
        kernel = replace(fma(target, width), from_l1=from_l1)
        blocks = -(-units // (width * lanes))
        tile = choose_tile(kernel, rows, blocks, legal=dividing(blocks))
        return kernel.all_cycles(tile, rows, blocks)

    if not target.has_lane_fma:
        costs, half = target.core.costs, best_block(units, lanes, target.core)
        filled, padded = (-(-units // block) * block for block in (half, whole))
        if filled <= costs.half_vectors * padded:
            return half
        # All read the same weights: what tells is how long the sums wait for each other.
        waits = {width: cycles(width, from_l1=True) for width in (1, 2, 3, 4)}
        wider = min(waits, key=waits.__getitem__)
        is_faster = whole == lanes and waits[wider] < costs.several_vectors * waits[1]
        return wider * lanes if is_faster else whole
    return lanes * min((1, 2, 3, 4), key=cycles)


def attention_lanes(target: Target | None) -> int:
    """Return the float32 lanes of vectors for a fused attention; 0: it stays in its parts.

    It does on microcontrollers, whose memory a block of scores would fill, and without vectors.
    """
    if target is None or not (target.is_by_llvm or target.kind.name == "c"):
        return 0
    if target.parsed_triple.is_small:
        return 0
    return int(target.vector_bits // 32)


def allows_winograd(target: Target | None) -> bool:
    """Return whether convolutions may be computed by Winograd's algorithm.

    Not with the target option ``-strict``, which asks for direct sums, and not for
    microcontrollers, whose memory its transformed tiles would fill.
    """
    if target is None or not _is_llvm(target):
        return False
    return not target.is_strict and not target.parsed_triple.is_small


def fast_types(target: Target) -> dict[str, float]:
    """Return the types whose products beat those of float32, and how many times."""
    return {"bfloat16": gain_in_pairs(target)} if pair_instructions(target) else {}


def gain_of_parts(call: Call, products: int, target: Target) -> bool:
    """Return whether a float32 product takes less time as so many of bfloat16."""
    return gains_in_parts(call, products, target)


def _pairs(setting: Setting) -> list[Any]:
    return pair_instructions(setting.target) if setting.lanes > 1 else []


def _widen(function: Function, setting: Setting) -> Function:
    pairs = _pairs(setting)
    if not pairs or setting.target is None:
        return widen_products(function)
    winograd, gain = allows_winograd(setting.target), gain_in_pairs(setting.target)
    return widen_products(
        function,
        best_in_pairs(
            function, setting.lanes, gain, winograd, _core(setting), lanes_in_groups(pairs)
        ),
    )


def _attention(function: Function, setting: Setting) -> Function:
    lanes, minimum = attention_lanes(setting.target), _costs(setting).attention_lanes
    serves = partial(fills_vectors, lanes=lanes, minimum=minimum)
    fused = simplify_expr(fuse_attention(function, serves))
    return eliminate_common_subexpr(fold_constant(fused))


def _core(setting: Setting) -> Core | None:
    return setting.target.core if setting.target is not None else None


def _layout(function: Function, setting: Setting) -> Function:
    target, lanes = setting.target, setting.lanes
    units = partial(panel_units, target, lanes)
    cut = partial(cut_units, target, max(4, lanes))
    winograd = allows_winograd(target)
    wish = partial(layout_wish, target=target, lanes=max(4, lanes), winograd=winograd)
    plain = partial(stays_plain, target=target, lanes=lanes) if target is not None else None
    core, pairs = _core(setting), _pairs(setting)
    return alter_layout(function, lanes, winograd, units, cut, pairs, core, wish, plain)


def _costs(setting: Setting) -> Costs:
    return setting.target.core.costs if setting.target is not None else ANY_CORE


def _pack(function: Function, setting: Setting) -> Function:
    instructions = packing_instructions(setting.target)
    padded = pad_quantized(function, instructions)
    packed = sink_reshape(pack_quantized(padded, instructions, _costs(setting)))
    # Reshapes that meet, and those of factors, are left.
    return packed if packed is function else fold_constant(simplify_expr(packed))


def _pack_blocks(function: Function, setting: Setting) -> Function:
    return pack_blocks(function, setting.target)


def _subpixel(function: Function, setting: Setting) -> Function:
    return subpixel_conv(function, setting.lanes, _costs(setting))


def _phases(function: Function, setting: Setting) -> Function:
    return dilated_phases(function, max(4, setting.lanes), _core(setting))


def _transforms(setting: Setting) -> bool:
    return _blocks(setting) and allows_winograd(setting.target)


def _moves(setting: Setting) -> bool:
    stored = stored_as(packing_instructions(setting.target))
    return bool(stored) and setting.runs(PACK_QUANTIZED)


def _move(function: Function, setting: Setting) -> Function:
    return move_activations(function, stored_as(packing_instructions(setting.target)))


def _is_blocked(setting: Setting) -> bool:
    return setting.lanes > 1


def _blocks(setting: Setting) -> bool:
    return setting.runs(ALTER_LAYOUT)


def _shifts_alike(target: Target | None) -> bool:
    return target is not None and _is_llvm(target) and capability_of(target).shifts_alike()


def _shifts_each(target: Target | None) -> bool:
    return target is not None and _is_llvm(target) and not capability_of(target).shifts_alike()


def _multiplies_bytes(setting: Setting) -> bool:
    return bool(packing_instructions(setting.target)) and _blocks(setting)


PACK_QUANTIZED = setting_pass(
    "PackQuantizedWeights", _pack, lambda s: bool(packing_instructions(s.target))
)
ALTER_LAYOUT = setting_pass("AlterOpLayout", _layout, _is_blocked)
LOWERING: tuple[Pass, ...] = (
    setting_pass("FuseAttention", _attention, lambda s: attention_lanes(s.target) > 0),
    setting_pass("SubpixelConv", _subpixel, _blocks),
    graph_pass("CutKernels", cut_kernels),
    graph_pass("DeepPools", deep_pools, lambda s: _is_blocked(s) and _is_llvm(s.target)),
    setting_pass("DilatedPhases", _phases, _transforms, exact=False),
    graph_pass("EvenShifts", even_shifts, lambda s: _shifts_alike(s.target)),
    graph_pass("ShortRounding", short_rounding, lambda s: _shifts_each(s.target)),
    graph_pass("IntegerProducts", integer_products, _multiplies_bytes),
    graph_pass("ChannelsFirst", channels_first, lambda s: _is_blocked(s) and _blocks(s)),
    ALTER_LAYOUT,
    graph_pass("SimplifyExpr", simplify_expr, _blocks),
    graph_pass("FoldConstant", fold_constant, _blocks),
    PACK_QUANTIZED,
    graph_pass("MovedBytes", moved_bytes, lambda s: _is_llvm(s.target)),
    graph_pass("ByteSums", byte_sums, lambda s: _is_llvm(s.target)),
    setting_pass("PackBlockWeights", _pack_blocks, lambda s: _is_llvm(s.target)),
    graph_pass("NarrowRescale", narrow_rescale, lambda s: _is_llvm(s.target)),
)
PASSES: tuple[Pass, ...] = (
    setting_pass("MoveActivations", _move, _moves),
    *OPENING,
    graph_pass("KeepBlockWeights", keep_blocks, lambda s: float_lanes(s.target) > 0),
    setting_pass("WidenProducts", _widen),
    *MIDDLE,
    *LOWERING,
    *ending(),
    FREE_RESHAPES,
)
