"""Convolutions on blocks of channels: in which blocks, and the calls that compute on them."""

from __future__ import annotations

from math import gcd, prod
from typing import Any

from slipway.backends.cpu.lowering.blocked_readers import BlockedReaders
from slipway.backends.cpu.lowering.blocked_value import (
    Blocked,
    as_plain_value,
    plain_layout,
    reshaped,
)
from slipway.backends.cpu.lowering.layout_choice import best_block, block_size
from slipway.backends.cpu.lowering.winograd_choice import WinogradCosts
from slipway.relay import op_registry
from slipway.relay.dims import usual
from slipway.relay.expr import Call, Expr
from slipway.relay.layout import parse_layout
from slipway.relay.ops.nn.windows import SPATIAL
from slipway.relay.types import TensorType
from slipway.target.cores import Core
from slipway.target.costs import ANY_CORE


class BlockedConvs(BlockedReaders):
    """Calls of convolutions whose data, kernel and result are in blocks, for one core."""

    def __init__(self, lanes: int, core: Core | None) -> None:
        super().__init__(lanes)
        self.core = core
        self.costs = core.costs if core is not None else ANY_CORE

    def layouts(self, call: Call, in_block: int, read: int, out_block: int) -> tuple[str, str, str]:
        """The layouts of data, kernel and result; the kernel reads `read` channels at a time."""
        plain = plain_layout(call.tensor_type.rank)
        return (
            f"{plain}{in_block}c",
            f"OI{plain[2:]}{read}i{out_block}o",
            f"{plain}{out_block}c",
        )

    def block_of_data(self, call: Call) -> int:
        """The block in which the data is held, or shall be."""
        held = self.blocked.get(id(call.args[0]))
        channels = call.args[0].tensor_type.shape[1]
        if held is not None:
            return held.block
        block = 1 if channels < 4 else block_size(channels, self.lanes)
        # A window of one reads each value once: blocks of two are not worth their copy.  Nor where
        # all taps of a line are unrolled: two channels of each need twice the registers.
        window = call.args[1].tensor_type.shape[2:]
        is_single = prod(window) == call.attrs.groups == 1
        is_line = call.attrs.groups == 1 and window[-1] >= self.costs.row_steps
        return 1 if block == 2 and (is_single or is_line) else block

    def best_block(self, channels: int, data: TensorType, is_whole: bool = False) -> int:
        """The block of `channels` beside `data`; `is_whole`: of whole vectors, however few fill it.

        So it is with an image from beyond the second-level cache, of which each position that a
        tile takes is a line, and where each channel has a filter of its own: those wait for loads.
        """
        is_cached = self.core is not None and usual(data.size_bytes) <= self.core.l2_bytes
        return best_block(channels, self.lanes, self.core if is_cached and not is_whole else None)

    def blocked_conv(
        self,
        kind: str,
        call: Call,
        source: Expr,
        weight: Expr,
        layouts: tuple[str, str, str],
        groups: int = 1,
        weights: str = "nchwc",
    ) -> Blocked:
        """The call of a blocked operator; `groups` 0 are as many as filters."""
        old, rank = call.attrs, call.tensor_type.rank - 2
        definition = op_registry.get(f"nn.contrib_{kind}{rank}d_{weights}")
        assert definition.attrs_type is not None
        data = self.as_blocked(source, layouts[0])
        kernel = self.pack(weight, "OI" + SPATIAL[rank], layouts[1])
        filters = kernel.tensor_type.shape[0] * parse_layout(layouts[1]).block_of("O")
        attrs = definition.attrs_type(
            strides=old.strides, padding=old.padding, dilation=old.dilation,
            groups=groups or filters,
            data_layout=layouts[0], kernel_layout=layouts[1], out_layout=layouts[2],
        )  # type: ignore[call-arg]  # fmt: skip
        made = definition(data, kernel, attrs=attrs, span=call.span)
        return Blocked(made, layouts[2], weight.tensor_type.shape[0])

    def direct_kernel(self, call: Call, layouts: tuple[str, str, str]) -> str:
        """The layout of the kernel beside these; it skips the channels that pad the data."""
        in_block, out_block = (parse_layout(x).block_of("C") for x in (layouts[0], layouts[2]))
        read = gcd(call.args[0].tensor_type.shape[1], in_block)
        return self.layouts(call, in_block, read, out_block)[1]

    def winograd_conv(
        self,
        call: Call,
        layouts: tuple[str, str, str],
        tile: int,
        costs: WinogradCosts | None = None,
    ) -> Blocked:
        """By tiles; with `costs` of both ways by size, the kernel in both forms."""
        key = id(call.args[1]), f"winograd {tile}"
        rank = call.tensor_type.rank - 2
        if key not in self.packed:
            weight, layout = call.args[1], layouts[1]
            if rank == 3:
                weight, layout = self.frames_as_channels(weight, layouts)
            packed = self.pack(weight, "OIHW", layout)
            make: Any = op_registry.make("nn.contrib_winograd_weight")
            self.packed[key] = make(packed, tile)
        data, kernels = self.as_blocked(call.args[0], layouts[0]), [self.packed[key]]
        about = {"padding": call.attrs.padding, "data_layout": layouts[0], "out_layout": layouts[2]}
        name = f"nn.contrib_conv{rank}d_winograd_nchwc"
        if costs is not None:
            name, direct = "nn.contrib_conv2d_nchwc_by_size", self.direct_kernel(call, layouts)
            kernels.insert(0, self.pack(call.args[1], "OIHW", direct))
            about |= {"kernel_layout": direct, **costs.as_integers(tile)}
        definition = op_registry.get(name)
        attrs_type: Any = definition.attrs_type
        made = definition(data, *kernels, attrs=attrs_type(**about), span=call.span)
        return Blocked(made, layouts[2], call.args[1].tensor_type.shape[0])

    def frames_as_channels(self, weight: Expr, layouts: tuple[str, str, str]) -> tuple[Expr, str]:
        """The kernel (O, I, D, 3, 3) as (O, D * I, 3, 3), in whole blocks of I, and its layout."""
        in_block, out_block = (parse_layout(x).block_of("C") for x in (layouts[0], layouts[2]))
        outer, inner, frames, *window = weight.tensor_type.shape
        make, over = op_registry.make, -inner % in_block
        if over:
            weight = make("nn.pad")(weight, ((0, 0), (0, over), *((0, 0),) * 3))
        ordered = make("transpose")(weight, (0, 2, 1, 3, 4))
        merged = reshaped(ordered, (outer, frames * (inner + over), *window))
        self.plain[id(merged)] = merged
        self.made.append(merged)
        return merged, f"OIHW{in_block}i{out_block}o"

    def without_zeros(self, made: Blocked, parts: int, zeros: int) -> Expr:
        """The plain value without the last `zeros` channels of each of its `parts`."""
        plain = as_plain_value(made)
        batch, channels, *image = plain.tensor_type.shape
        apart = reshaped(plain, (batch, parts, channels // parts, *image))
        make: Any = op_registry.make("strided_slice")
        wanted = make(apart, [0], [channels // parts - zeros], axes=[2])
        return reshaped(wanted, (batch, channels - parts * zeros, *image))
