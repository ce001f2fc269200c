"""Products of bfloat16 that give float32 sums, by instructions that take values in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import Any

from slipway.backends.cpu.lowering.blocked_convs import BlockedConvs
from slipway.backends.cpu.lowering.blocked_value import Blocked, plain_layout
from slipway.backends.cpu.lowering.dot_pairs import (
    Instruction,
    instruction_for,
    is_paired,
    lanes_in_groups,
    paired_groups,
)
from slipway.backends.cpu.lowering.join_groups import joined_kernel
from slipway.backends.cpu.lowering.layout_choice import best_block, filled_block
from slipway.ir.instructions.tiles import TileInstruction
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr
from slipway.relay.ops.packed.dot_pairs import PAIR
from slipway.target.cores import Core


class PairedProducts(BlockedConvs):
    """Convolutions and dense layers for one of the instructions `pairs`."""

    def __init__(self, lanes: int, core: Core | None, pairs: Sequence[Instruction]) -> None:
        super().__init__(lanes, core)
        self.pairs = pairs

    def takes_pairs(self, call: Call) -> bool:
        """Return whether a product of bfloat16 gives float32 sums by the instruction for pairs."""
        types = call.args[0].tensor_type.dtype, call.tensor_type.dtype
        paired = types == ("bfloat16", "float32") and bool(self.pairs)
        return paired and is_paired(call, self.costs, lanes_in_groups(self.pairs))

    def paired_conv(self, call: Call) -> Blocked | Expr | None:
        """A convolution in blocks that the instruction takes and gives; groups may stay plain."""
        if call.attrs.groups > 1:
            return self.paired_groups(call)
        channels, weight = call.args[0].tensor_type.shape[1], call.args[1]
        entry = instruction_for(self.pairs, prod(call.tensor_type.shape[2:]), costs=self.costs)
        held, depth = self.block_of_data(call), entry.depth
        widest, is_held = self.lanes, id(call.args[0]) in self.blocked
        if isinstance(entry, TileInstruction):
            widest = filled_block(channels, entry)
        if held % depth or (not is_held and (held < 4 or widest > self.lanes)):
            held = max(depth, best_block(-(-channels // depth) * depth, widest))
        read = gcd(channels, held)
        read = held if read % depth else read
        plain, lanes = plain_layout(call.tensor_type.rank), entry.c_size
        if isinstance(entry, TileInstruction):
            lanes = filled_block(weight.tensor_type.shape[0], entry)
        kernel = f"OI{plain[2:]}{read // depth}i{lanes}o{depth}i"
        layouts = f"{plain}{held}c", kernel, f"{plain}{lanes}c"
        return self.blocked_conv("conv", call, call.args[0], weight, layouts, weights="pairs")

    def paired_groups(self, call: Call) -> Blocked | Expr | None:
        """Groups in pairs, joined so that their filters fill vectors."""
        lanes, channels = lanes_in_groups(self.pairs), call.args[0].tensor_type.shape[1]
        joined, weight, groups = paired_groups(call, lanes), call.args[1], call.attrs.groups
        if joined is None or not isinstance(weight, Constant):
            return None
        weight = self.keep(
            Constant(joined_kernel(weight.array, groups, joined.together, joined.zeros))
        )
        parts, held = groups // joined.together, self.block_of_data(call)
        if held % PAIR or (held < 4 and id(call.args[0]) not in self.blocked):
            held = max(4, best_block(channels, self.lanes))
        read, plain = gcd(channels // parts, held), plain_layout(call.tensor_type.rank)
        kernel = f"OI{plain[2:]}{read // PAIR}i{lanes}o{PAIR}i"
        layouts = f"{plain}{held}c", kernel, f"{plain}{lanes}c"
        made = self.blocked_conv(
            "conv", call, call.args[0], weight, layouts, parts, weights="pairs"
        )
        return self.without_zeros(made, parts, joined.zeros) if joined.zeros else made

    def paired_dense(self, call: Call) -> Expr:
        """A product of plain rows with weights packed for the instruction."""
        rows, depth = call.args[0].tensor_type.shape
        units = call.args[1].tensor_type.shape[0]
        entry = instruction_for(self.pairs, rows, depth, self.costs)
        lanes = entry.c_size
        if isinstance(entry, TileInstruction) and units % (2 * lanes) == 0:
            lanes *= 2
        while entry.rows and lanes < 4 * entry.c_size and units % (2 * lanes) == 0:
            lanes *= 2  # more contiguous columns
        packed = self.pack(call.args[1], "NK", f"NK{lanes}n{entry.depth}k")
        definition = op_registry.get("nn.contrib_dense_pairs")
        made: Expr = definition(self.as_plain(call.args[0]), packed, span=call.span)
        if made.tensor_type.shape[1] == units:
            return made
        make: Any = op_registry.make("strided_slice")
        return make(made, [0], [units], axes=[1])  # type: ignore[no-any-return]
