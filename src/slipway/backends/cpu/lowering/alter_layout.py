"""Carry blocked channel layouts through a graph: NCHW becomes NCHW{c}c, NCW and NCDHW alike.

    nn.conv2d(%x, %w)  ->  layout_transform(
                               nn.contrib_conv2d_nchwc(layout_transform(%x, NCHW, NCHW16c),
                                                       layout_transform(%w, OIHW, OIHW16i16o)),
                               NCHW16c, NCHW)

A value is kept blocked as long as its readers can take it so: elementwise operators, sums of equal
layouts, pooling, joins along the channels.  Transforms remain only where plain readers meet blocked
values; those of constant kernels are folded away by FoldConstant.

Channels that are no multiple of a vector are padded with zeros to whole vectors where that takes
fewer of them: 40 channels are 3 vectors of 16, or 5 of 8.  Only operators that make finite numbers
of finite numbers work on the padding too; everything else gets the channels there are.

The filters of a group must be whole blocks.  Groups of fewer are joined, with zeros in their
kernels: four groups of four filters are one of sixteen, in a quarter of the steps.  Or they are
padded, and what comes of the zeros is left out afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from math import gcd, prod
from typing import Any

from slipway import dtypes
from slipway.backends.cpu.lowering.blocked_value import Blocked, plain_layout, reshaped
from slipway.backends.cpu.lowering.dot_pairs import Instruction
from slipway.backends.cpu.lowering.join_groups import JoinedGroups, joined_groups, joined_kernel
from slipway.backends.cpu.lowering.layout_choice import (
    best_block,
    block_size,
    few_filters,
    row_block,
)
from slipway.backends.cpu.lowering.layout_wish import LayoutWish, note_layout
from slipway.backends.cpu.lowering.paired_products import PairedProducts
from slipway.backends.cpu.lowering.plain_conv import (
    OnBlocks,
    as_image,
    read_by_channel,
    read_in,
    taps_inside,
)
from slipway.backends.cpu.lowering.strided_reads import on_rows_read
from slipway.backends.cpu.lowering.winograd_choice import (
    small_is_direct,
    winograd_part,
    winograd_tile,
)
from slipway.errors import TypeInferenceError
from slipway.relay import op_registry
from slipway.relay.dims import usual
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple, Var
from slipway.relay.op_registry import is_call_of
from slipway.relay.open_dims import has_open
from slipway.relay.ops.nn.windows import SPATIAL
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order, rebuild, use_counts
from slipway.target.cores import Core

_CONVS = tuple(f"nn.conv{n}d" for n in SPATIAL)

# Filters of each channel from which it is a group with filters: to repeat it takes longer.
MANY_FILTERS = 64


def alter_layout(
    function: Function,
    lanes: int,
    winograd: bool = False,
    panel_units: Callable[[int, int], int] | None = None,
    cut_units: Callable[[int, int], int] | None = None,
    pairs: Sequence[Instruction] = (),
    core: Core | None = None,
    wish: Callable[[Call], LayoutWish | None] | None = None,
    stays_plain: Callable[[Call, OnBlocks], bool] | None = None,
) -> Function:
    """Return `function` with its float32 convolutions on blocks of at most `lanes` channels.

    The result computes the same values; sums over channels are taken in another order.  With
    `winograd`, 3x3 convolutions of stride 1 use F(4x4, 3x3) or F(2x2, 3x3) where `core` tells that
    it saves time.
    Products with constant weights take those in blocks of at most ``panel_units(rows of data,
    units)``, if given; of ``cut_units(rows, units)`` where whole ones do not fill them.  Those of
    bfloat16 that give float32 take them packed for one of `pairs`.
    Those of plain values of which ``stays_plain(call, on_blocks)`` is true stay as they are.
    What ``wish(call)`` says comes before all of that.
    """
    lanes = max(4, lanes)
    units = panel_units or (lambda rows, units: lanes)
    cut = cut_units or (lambda rows, units: best_block(units, lanes))
    wanted = wish or (lambda call: None)
    plain = stays_plain or (lambda call, on_blocks: False)
    return _AlterLayout(lanes, winograd, units, cut, pairs, core, wanted, plain).run(function)


class _AlterLayout(PairedProducts):
    def __init__(
        self,
        lanes: int,
        winograd: bool,
        panel_units: Callable[[int, int], int],
        cut_units: Callable[[int, int], int],
        pairs: Sequence[Instruction],
        core: Core | None,
        wish: Callable[[Call], LayoutWish | None],
        stays_plain: Callable[[Call, OnBlocks], bool],
    ) -> None:
        super().__init__(lanes, core, pairs)
        self.stays_plain = stays_plain
        self.wish = wish
        self.winograd = winograd
        self.panel_units = panel_units
        self.cut_units = cut_units
        self.readers: dict[int, int] = {}
        self.read_in: dict[int, tuple[bool, bool]] = {}
        self.read_by_channel: set[int] = set()
        self.rules: dict[str, Callable[[Call], Blocked | Expr | None]] = {
            **dict.fromkeys(_CONVS, self.conv),
            "nn.dense": self.dense,
            **self.readers_of_blocks(),
        }

    def run(self, function: Function) -> Function:
        self.readers = use_counts(function)
        self.read_in = read_in(function, self.rules.keys() - {"nn.dense"})
        self.read_by_channel = read_by_channel(function)
        for expr in post_order(function, into_functions=False):
            if expr is function:
                break
            if isinstance(expr, Call) and isinstance(expr.op, Op):
                result = self.visit_call(expr)
                note_layout(expr, result.expr if isinstance(result, Blocked) else result)
                if isinstance(result, Blocked):
                    self.blocked[id(expr)] = result
                    continue
                if result is not None:
                    self.plain[id(expr)] = result
                    continue
            if not isinstance(
                expr, Tuple
            ):  # a Tuple is rebuilt when a reader of its fields asks for it
                self.plain[id(expr)] = rebuild(expr, self.as_plain)
        body = self.as_plain(function.body)
        return (
            function
            if body is function.body
            else Function(function.params, body, None, function.attrs)
        )

    def visit_call(self, call: Call) -> Blocked | Expr | None:
        rule = self.rules.get(call.op.name)
        if rule is None:
            return self.elementwise(call) if op_registry.is_pointwise(call) else None
        if not any(has_open(t) for t in (call.type, *(a.type for a in call.args))):
            return rule(call)
        with suppress(TypeInferenceError):  # what depends on the size stays in its layout
            return rule(call)
        return None

    def conv(self, call: Call) -> Blocked | Expr | None:
        attrs = call.attrs
        data, kernel = (a.tensor_type for a in call.args)
        plain = plain_layout(data.rank)
        if self.takes_pairs(call):
            return self.paired_conv(call)
        if (
            attrs.data_layout != plain
            or attrs.kernel_layout != "OI" + plain[2:]
            or getattr(attrs, "out_layout", "") not in ("", plain)
            or data.dtype != "float32"
            or dtypes.canonical(attrs.out_dtype or data.dtype) != data.dtype
        ):
            return None
        wish = self.wish(call)
        if wish is not None and wish.is_plain:
            return None
        if (read := self.part_read(call)) is not None:
            return self.conv(read)
        if wish is None and (row := self.row_conv(call)) is not None:
            return row
        if attrs.groups == 1:
            return self.dense_conv(call, data, kernel, wish)
        if attrs.groups == data.shape[1] and kernel.shape[0] < MANY_FILTERS * attrs.groups:
            return self.depthwise_conv(call, data, kernel, wish)
        return self.grouped_conv(call, data, kernel, wish)

    def row_conv(self, call: Call) -> Expr | None:
        """A convolution over one axis of plain data as one of images of a row, if that stays plain.

        Positions of a row are its lanes then, which few filters of a group would leave idle.
        """
        source, weight, attrs = *call.args, call.attrs
        if not is_call_of(call, "nn.conv1d") or not isinstance(weight, Constant):
            return None
        if id(source) in self.blocked or any(map(has_open, (call.type, source.type))):
            return None
        (filters, _, taps), channels = weight.array.shape, source.tensor_type.shape[1]
        made = as_image(call, self.as_plain(source))
        self.made.append(made)
        self.read_in[id(made)] = self.read_in[id(call)]
        if attrs.groups == 1:
            joined = JoinedGroups(1, max(4, best_block(filters, self.lanes)))
        else:
            joined = joined_groups(filters, channels, attrs.groups, self.lanes, taps)
        if attrs.groups == channels or not self.is_better_plain(made, joined):
            return None
        return reshaped(made, call.tensor_type.shape)

    def part_read(self, call: Call) -> Call | None:
        """The convolution of the part that it reads of data which is copied into blocks for it."""
        source = call.args[0]
        is_copied = id(source) not in self.blocked and self.block_of_data(call) >= 4
        readers = self.readers.get(id(source), 0) - isinstance(source, Var)  # one is its function
        if not is_copied or readers != 1 or has_open(source.type):
            return None
        read = on_rows_read(call)
        if read is not None:
            self.made.append(read)
            self.read_in[id(read)] = self.read_in[id(call)]
        return read

    def is_better_plain(
        self, call: Call, joined: JoinedGroups, times: int = 0, tile: int = 0
    ) -> bool:
        """Whether a convolution, whose groups would be `joined` so, stays on its plain data.

        With `times` each channel has so many filters, and is repeated as often for them.  `tile` is
        that of Winograd's algorithm on blocks; 0: the sum over the taps.
        """
        parts = call.attrs.groups // joined.together
        depth = 1 if times else call.args[0].tensor_type.shape[1] // parts
        chunks = -(-(call.args[1].tensor_type.shape[0] // parts) // joined.block)
        on_blocks = self.on_blocks(
            call, parts, depth, chunks, joined.block, joined.zeros > 0, times
        )
        if on_blocks is not None and tile:
            part = winograd_part(call, self.lanes, tile, self.core)
            on_blocks = replace(on_blocks, part=part)
        return on_blocks is not None and self.stays_plain(call, on_blocks)

    def on_blocks(
        self, call: Call, parts: int, depth: int, chunks: int, block: int, pads: bool,
        times: int = 0,
    ) -> OnBlocks | None:  # fmt: skip
        """What a convolution is on blocks; None for open sizes.  `pads`: channels are added."""
        data, kernel, out = (e.tensor_type for e in (*call.args, call))
        source = call.args[0]
        held = id(source) in self.blocked
        if any(map(has_open, (data, kernel, out))):
            return None
        readers = self.readers.get(id(source), 1) - isinstance(source, Var)  # one is its function
        copied = data.size_bytes // max(1, readers) if held or self.block_of_data(call) > 1 else 0
        moved = times * data.size_bytes if times else 0 if held else copied
        moved += 0 if isinstance(call.args[1], Constant) else kernel.size_bytes
        in_blocks, plainly = self.read_in[id(call)]
        results = in_blocks + 1 if pads else plainly  # their results are cut out as plain
        return OnBlocks(
            parts, depth, chunks, block,
            moved + results * out.size_bytes, in_blocks * out.size_bytes + held * copied,
        )  # fmt: skip

    def dense_conv(
        self, call: Call, data: TensorType, kernel: TensorType, wish: LayoutWish | None
    ) -> Blocked | None:
        # To take blocks apart takes longer than what a window of one gains.
        stays = prod(kernel.shape[2:]) == 1 and id(call.args[0]) in self.blocked
        if wish is None and not stays and few_filters(call.attrs, data, kernel, self.lanes):
            return None
        by_channel = id(call) in self.read_by_channel
        out_block = max(4, self.best_block(kernel.shape[0], data, is_whole=by_channel))
        in_block = self.block_of_data(call)
        if wish is not None:
            in_block, out_block, tile = wish.read or in_block, wish.written or out_block, wish.tile
        else:
            tile = winograd_tile(call, self.lanes, core=self.core) if self.winograd else 0
            held = id(call.args[0]) in self.blocked
            is_sure = tile and min(kernel.shape[:2]) >= self.costs.winograd_channels
            joined = JoinedGroups(1, out_block)
            if not is_sure and not held and self.is_better_plain(call, joined, tile):
                return None
        if tile:
            if in_block < 4:  # transforms work on vectors of channels
                in_block = self.best_block(data.shape[1], data)
            layouts = self.layouts(call, in_block, in_block, out_block)
            costs = small_is_direct(call, self.lanes, tile, self.core) if wish is None else None
            return self.winograd_conv(call, layouts, tile, costs)
        layouts = self.layouts(call, in_block, in_block, out_block)
        layouts = layouts[0], self.direct_kernel(call, layouts), layouts[2]
        return self.blocked_conv("conv", call, call.args[0], call.args[1], layouts)

    def grouped_conv(
        self, call: Call, data: TensorType, kernel: TensorType, wish: LayoutWish | None
    ) -> Blocked | Expr | None:
        weight, groups = call.args[1], call.attrs.groups
        is_constant = isinstance(weight, Constant)
        joined = joined_groups(
            kernel.shape[0], data.shape[1], groups, self.lanes, prod(kernel.shape[2:]),
            is_constant and not has_open(call.type),
        )  # fmt: skip
        if wish is None and self.is_better_plain(call, joined):
            return None
        if isinstance(weight, Constant):
            weight = self.keep(
                Constant(joined_kernel(weight.array, groups, joined.together, joined.zeros))
            )
        elif joined.together > 1:
            return None
        parts = groups // joined.together
        in_block = (wish.read if wish is not None else 0) or self.block_of_data(call)
        read = gcd(data.shape[1] // parts, in_block)
        layouts = self.layouts(call, in_block, read, joined.block)
        made = self.blocked_conv("conv", call, call.args[0], weight, layouts, parts)
        return self.without_zeros(made, parts, joined.zeros) if joined.zeros else made

    def depthwise_conv(
        self, call: Call, data: TensorType, kernel: TensorType, wish: LayoutWish | None
    ) -> Blocked | None:
        """One filter for each channel; where there are more, the channels are repeated first."""
        filters = kernel.shape[0]
        held = self.blocked.get(id(call.args[0]))
        source, times = call.args[0], filters // data.shape[1]
        whole = JoinedGroups(call.attrs.groups, best_block(filters, self.lanes))
        if wish is None and times > 1 and self.is_better_plain(call, whole, times):
            return None
        if times > 1:
            make: Any = op_registry.make("repeat")
            source = make(self.as_plain(source), times, 1)
            self.plain[id(source)] = source
            self.made.append(source)
            held = None
        block = held.block if held is not None else best_block(filters, self.lanes)
        if wish is not None and wish.written:
            block = wish.written
        if block < 4:
            return None
        if wish is None and held is None and source is call.args[0]:
            # A block of channels is computed as the only chunk of a convolution of one channel.
            on_blocks = self.on_blocks(call, -(-filters // block), 1, 1, block, filters % block > 0)
            if on_blocks is not None:
                on_blocks = replace(on_blocks, part=taps_inside(call))
                if self.stays_plain(call, on_blocks):
                    return None
        layouts = self.layouts(call, block, 1, block)
        return self.blocked_conv("depthwise_conv", call, source, call.args[1], layouts, 0)

    def dense(self, call: Call) -> Expr | None:
        """A product with constant weights takes them in blocks of units; the data stays plain."""
        data, weight = (a.tensor_type for a in call.args)
        if data.rank != 2:
            return None
        if self.takes_pairs(call):
            return self.paired_dense(call)
        is_float = data.dtype == "float32" == (call.attrs.out_dtype or data.dtype)
        if not isinstance(call.args[1], Constant) or not is_float:
            return None
        wish = self.wish(call)
        units, rows = weight.shape[0], usual(data.shape[0])
        block = (wish.units if wish is not None else 0) or self.units_of_panel(rows, units)
        if block < 4 or (wish is not None and wish.is_plain):
            return None
        packed = self.pack(call.args[1], "NK", f"NK{block}n")
        definition = op_registry.get("nn.contrib_dense_pack")
        attrs_type: Any = definition.attrs_type
        attrs = attrs_type(units=units if units % block else 0)
        return definition(self.as_plain(call.args[0]), packed, attrs=attrs, span=call.span)

    def units_of_panel(self, rows: int, units: int) -> int:
        """The units whose weights lie together in a product of `rows`; less than 4: none do."""
        widest = self.panel_units(rows, units)
        if rows == 1:
            block = row_block(units, widest, self.lanes)
        else:
            block = widest if units % widest == 0 else block_size(units, widest)
        if block < 4 or (rows > 1 and block < min(widest, self.lanes)):
            block = self.cut_units(rows, units)
        return block
