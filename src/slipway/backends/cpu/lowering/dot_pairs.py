"""Which products of bfloat16 an instruction of the target sums in float32, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway.backends.cpu.lowering.join_groups import JoinedGroups, joined_pairs
from slipway.backends.cpu.lowering.winograd_choice import winograd_tile
from slipway.ir.hardware import HARDWARE, HardwareIntrinsic
from slipway.ir.instructions.tiles import INSTRUCTIONS as TILE_INSTRUCTIONS
from slipway.ir.instructions.tiles import ROW_BYTES, ROWS, TileInstruction
from slipway.relay import op_registry
from slipway.relay.dims import is_open
from slipway.relay.expr import Call, Expr, Function, Op
from slipway.relay.op_registry import OpPattern, is_call_of
from slipway.relay.open_dims import has_open
from slipway.relay.ops.nn.windows import SPATIAL
from slipway.relay.ops.packed.dot_pairs import PAIR
from slipway.relay.visit import children, post_order
from slipway.target.costs import ANY_CORE, Costs
from slipway.transform.graph.precision.widen_products import has_known_weight

if TYPE_CHECKING:
    from slipway.target import Target
    from slipway.target.cores import Core

INSTRUCTIONS = ("neon.bfmmla", "neon.bfdot", "x86.bf16")  # the best first
LOW = "bfloat16"
Instruction = HardwareIntrinsic | TileInstruction
MATRICES = ("nn.batch_matmul", "nn.matmul")
CONVS = {f"nn.conv{n}d": "NC" + letters for n, letters in SPATIAL.items()}


def pair_instructions(target: Target | None) -> list[Instruction]:
    """Return the instructions of `target` for products of bfloat16 that beat those of float32.

    None with the option -strict: they take denormal numbers for zero.  A matrix unit, whose steps
    any number of rows may take, serves for all products.
    """
    if target is None or not target.is_by_llvm or target.is_strict:
        return []
    tiles = tile_pairs(target)
    if tiles is not None:
        return [tiles]
    found = [HARDWARE[name] for name in INSTRUCTIONS if _is_a_gain(name, target)]
    return [i for i in found if not i.missing(target) and 32 * i.c_size == target.vector_bits]


def vector_pairs(target: Target | None) -> list[HardwareIntrinsic]:
    """Return those of `pair_instructions` that work on vectors."""
    return [i for i in pair_instructions(target) if isinstance(i, HardwareIntrinsic)]


def tile_pairs(target: Target) -> TileInstruction | None:
    """Return the instruction of the target's matrix unit for bfloat16, if it has one."""
    entry = TILE_INSTRUCTIONS["x86.amx.bf16"]
    usable = target.is_by_llvm and target.vector_bits >= 512 and not target.is_strict
    return entry if usable and not entry.missing(target) else None


def gain_in_pairs(target: Target) -> int:
    """Return how many multiply-adds of bfloat16 take as long as one of float32."""
    if tile_pairs(target) is None:
        return pair_instructions(target)[0].depth
    costs, entry = target.core.costs, TILE_INSTRUCTIONS["x86.amx.bf16"]
    each = costs.tile_cycles + costs.tile_row_cycles * ROWS
    products = ROWS * entry.c_size * ROW_BYTES // 2
    return max(1, int(products / each / (target.core.fma_bits / 32)))


def gains_in_parts(call: Call, products: int, target: Target) -> bool:
    """Return whether `products` of bfloat16 take less time than one of float32 for `call`.

    With few rows or positions a product waits for its weights, whose parts are longer.  Few
    channels are packed one by one.  Winograd saves products of float32 only.
    """
    costs, out = target.core.costs, call.tensor_type
    if gain_in_pairs(target) <= products:
        return False
    if is_call_of(call, *CONVS):
        rows, depth = prod(out.shape[2:]), call.args[1].tensor_type.shape[1]
        speed, lanes = gain_in_pairs(target) // products, target.vector_bits // 32
        if is_call_of(call, "nn.conv2d") and winograd_tile(call, lanes, speed, target.core):
            return False
    else:
        rows, depth = prod(out.shape[:-1]), call.args[0].tensor_type.shape[-1]
    return rows > costs.streamed_positions and depth >= 2 * target.vector_bits // 32


def _is_a_gain(name: str, target: Target) -> bool:
    """Return whether an instruction is known to be faster than float32 on what `target` describes.

    ``vdpbf16ps`` is on AMD's cores, which alone have SSE4A: twice as many multiply-adds on Zen 4
    and 5.  Intel's do half as many with it as in float32; theirs is AMX (`tile_pairs`).
    """
    return name != "x86.bf16" or bool(target.has_feature("sse4a"))


def instruction_for(
    instructions: Sequence[Instruction],
    rows: int,
    depth: int = 0,
    costs: Costs = ANY_CORE,
) -> Instruction:
    """Return the best for so many rows of data, and sums of `depth` that cannot be padded.

    One that multiplies matrices wants rows that pay for packing them.
    """
    return next(
        i
        for i in instructions
        if depth % i.depth == 0 and (i.rows == 0 or rows >= costs.packed_rows)
    )


def lanes_in_groups(instructions: Iterable[Instruction]) -> int:
    """Return the lanes of the instruction for convolutions in groups; 0: they have none.

    It multiplies one position by a vector of filters: tiles of matrices want more of both.
    """
    vectors = (i for i in instructions if isinstance(i, HardwareIntrinsic))
    return next((i.c_size for i in vectors if i.rows == 0), 0)


def paired_groups(call: Call, lanes: int) -> JoinedGroups | None:
    """Return how the groups of a convolution are joined for pairs on vectors of `lanes`, if so."""
    channels, kernel = call.args[0].tensor_type.shape[1], call.args[1].tensor_type.shape
    groups = call.attrs.groups
    if not lanes or groups == channels or has_open(call.type):
        return None
    return joined_pairs(kernel[0], channels, groups, lanes, prod(kernel[2:]), PAIR)


def is_paired(call: Call, costs: Costs = ANY_CORE, group_lanes: int = 0) -> bool:
    """Return whether a product of bfloat16 has a form with weights, or right matrices, in pairs.

    With vectors of `group_lanes` convolutions in groups have one too.
    """
    data, weight = (a.tensor_type for a in call.args[:2])
    if data.dtype != LOW:
        return False
    if is_call_of(call, *MATRICES):
        depth, columns = data.shape[-1], call.tensor_type.shape[-1]
        rows = call.tensor_type.shape[-2]
        enough = columns >= costs.pair_columns and rows >= costs.packed_rows
        return enough and depth % PAIR == 0 and not call.attrs.transpose_a
    if not has_known_weight(call):
        return False
    if is_call_of(call, "nn.dense"):
        return data.rank == 2 and data.shape[1] % PAIR == 0
    attrs: Any = call.attrs
    plain = CONVS.get(call.op.name, "")
    return (
        bool(plain)
        and (attrs.groups == 1 or paired_groups(call, group_lanes) is not None)
        and attrs.data_layout == plain
        and attrs.kernel_layout == "OI" + plain[2:]
        and getattr(attrs, "out_layout", "") in ("", plain)
        and (data.shape[1] >= 4 or prod(weight.shape) >= costs.pair_products * prod(attrs.strides))
    )


def best_in_pairs(
    function: Function, lanes: int, speed: int, winograd: bool, core: Core | None = None,
    group_lanes: int = 0,
) -> Callable[[Call], bool]:  # fmt: skip
    """Return what tells which products in `function` are best computed in bfloat16.

    That does `speed` multiply-adds for one of float32.  With `winograd`, float32 convolutions on
    vectors of `lanes` may take fewer products instead.  Those in groups are for `group_lanes`.
    """
    costs = core.costs if core is not None else ANY_CORE
    fused = products_of_attention(function, costs)

    def in_tiles(call: Call) -> bool:
        plain = is_call_of(call, "nn.conv2d") and call.attrs.groups == 1
        return bool(winograd and plain and winograd_tile(call, lanes, speed, core))

    return lambda call: (
        id(call) not in fused and is_paired(call, costs, group_lanes) and not in_tiles(call)
    )


def products_of_attention(function: Function, costs: Costs = ANY_CORE) -> set[int]:
    """Return the ids of products with only a softmax between them: FuseAttention joins those.

    It does so in float32, where scores and exponentials stay in registers.  Not those that save
    more in pairs than it takes to write their scores and to read them.
    """
    order = post_order(function)
    readers: dict[int, list[Expr]] = {}
    for expr in order:
        for child in children(expr):
            readers.setdefault(id(child), []).append(expr)
    found: set[int] = set()
    for expr in order:
        if is_call_of(expr, "nn.softmax"):
            products = _reached(expr, children)
            products |= _reached(expr, lambda e: readers.get(id(e), []))
            if not _gains_apart(expr, products.values(), costs):
                found |= products.keys()
    return found


def _gains_apart(softmax: Call, products: Collection[Call], costs: Costs) -> bool:
    """Return whether an attention is faster in its parts, if all of its products are in pairs."""
    scores = softmax.tensor_type.shape
    return (
        len(products) > 1
        and not any(is_open(n) for n in scores)
        and min(scores[-2:]) >= costs.paired_score_rows
        and prod(scores) <= costs.paired_scores
        and all(is_paired(product, costs) for product in products)
    )


def _reached(start: Expr, neighbours: Callable[[Expr], Iterable[Expr]]) -> dict[int, Call]:
    """Return the first products on every way from `start`, by their ids."""
    found: dict[int, Call] = {}
    seen, left = set(), list(neighbours(start))
    while left:
        expr = left.pop()
        if id(expr) in seen or not isinstance(expr, Call) or not isinstance(expr.op, Op):
            continue
        seen.add(id(expr))
        if is_call_of(expr, *MATRICES):
            found[id(expr)] = expr
        elif op_registry.get(expr.op.name).pattern <= OpPattern.INJECTIVE:
            left += neighbours(expr)
    return found
