"""Convolutions on a GPU as products with panels in shared memory.

A convolution is, for each group of channels, the product of its weights (channels x depth) with the
image's columns (depth x pixels), where depth counts the taps of all input channels::

    conv[n, c, y, x] = sum_k weights[c, k] * columns[k, (n, y, x)]

Neither matrix exists: they say how a block fetches its panels, and padding, strides and dilation
cost only there.  Pixels are the columns of a product where channels come first, and its rows where
they come last, so that neighbouring threads write neighbours in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from slipway import dtypes, te
from slipway.backends.gpu.limits import panel_scope
from slipway.backends.gpu.schedules.generic import (
    ThreadKnobs,
    only_reader,
    readers_of,
    schedule_elements,
)
from slipway.backends.gpu.schedules.shared import (
    Lies,
    SharedKnobs,
    Sizes,
    Tiling,
    legal_knobs,
    product_cost,
    shared_space,
)
from slipway.backends.gpu.warps import runs_in_step
from slipway.backends.stages import inline_injective, producers
from slipway.backends.strategy import Problem, register_strategy
from slipway.ir import ops
from slipway.ir.expr import PrimExpr
from slipway.relay.dims import size_of
from slipway.relay.ops.nn.conv import ConvAttrs, conv_relation
from slipway.relay.ops.nn.windows import SPATIAL, arrange, pad_stage
from slipway.relay.types import TensorType
from slipway.target import Target

Index = Mapping[str, Any]  # of a tensor, by the letters of its layout


@dataclass(frozen=True)
class Geometry:
    """A convolution's extents by the letters of their layouts."""

    attrs: ConvAttrs
    out: Mapping[str, int]
    kernel: Mapping[str, int]

    @staticmethod
    def of(attrs: ConvAttrs, in_types: Sequence[Any]) -> Geometry | None:
        """Return a convolution's geometry, None where a size is open."""
        if not all(isinstance(n, int) for t in in_types[:2] for n in t.shape):
            return None
        out = conv_relation(attrs, *in_types[:2])
        assert isinstance(out, TensorType)
        layout = attrs.out_layout or attrs.data_layout
        return Geometry(
            attrs,
            dict(zip(layout, map(size_of, out.shape), strict=True)),
            dict(zip(attrs.kernel_layout, map(size_of, in_types[1].shape), strict=True)),
        )

    @property
    def channels_last(self) -> bool:
        """Return whether an output pixel's channels lie beside each other."""
        return list(self.out)[-1] == "C"

    @property
    def pixels(self) -> list[str]:
        """The letters of the output's pixels, as they lie in memory."""
        return [letter for letter in self.out if letter != "C"]

    @property
    def fused_pixels(self) -> list[str]:
        """`pixels` without those of one step in front, which are no part of a fused axis.

        Of the fused axis, the others would be remainders then: past its end they begin again.
        """
        letters = self.pixels
        while len(letters) > 1 and self.out[letters[0]] == 1:
            letters = letters[1:]
        return letters

    def sides(
        self, stage: te.Stage, groups: int
    ) -> tuple[list[te.IterVar], te.IterVar, te.IterVar]:
        """Return the axes of the output beside each other, its rows and its columns."""
        axes = dict(zip(self.out, stage.op.axis, strict=True))
        batch, channel = [], axes["C"]
        if groups > 1:
            group, channel = stage.split(channel, nparts=groups)
            batch.append(group)
        pixels = [axes[letter] for letter in self.fused_pixels]
        batch += [axes[x] for x in self.pixels if x not in self.fused_pixels]
        stage.reorder(*batch, channel, *pixels)
        pixel = stage.fuse(*pixels)
        return batch, *((pixel, channel) if self.channels_last else (channel, pixel))

    def divides(self, block_rows: int, block_columns: int) -> bool:
        """Return whether no block's tile lies in two groups of channels."""
        if self.attrs.groups == 1:
            return True
        block = block_columns if self.channels_last else block_rows
        return self.out["C"] // self.attrs.groups % block == 0

    @property
    def taps(self) -> list[str]:
        """The letters of what a sum runs over, as they lie in the kernel's memory."""
        return [letter for letter in self.kernel if letter != "O"]

    @property
    def columns_by_step(self) -> bool:
        """Return whether what lies beside each other in an image are steps of the sum."""
        return self.attrs.data_layout[-1] == "C" and self.taps[-1] == "I"

    @property
    def weights_by_step(self) -> bool:
        """Return whether what lies beside each other in the kernel are steps of the sum."""
        return self.attrs.kernel_layout[-1] != "O"

    @property
    def sides_by_step(self) -> tuple[bool, bool]:
        """Return the same of the product's rows and of its columns."""
        pair = self.columns_by_step, self.weights_by_step
        return pair if self.channels_last else pair[::-1]

    @property
    def sizes(self) -> Sizes:
        """The sizes of the products, one for each group."""
        channels = self.out["C"] // self.attrs.groups
        pixels = prod(self.out[letter] for letter in self.pixels)
        sides = (pixels, channels) if self.channels_last else (channels, pixels)
        return Sizes(self.attrs.groups, *sides, prod(self.kernel[x] for x in self.taps))


def _apart(index: PrimExpr, letters: Sequence[str], extents: Index) -> dict[str, Any]:
    """Return what `index` is along each of the axes that are fused into it."""
    found: dict[str, Any] = {}
    for number, letter in enumerate(reversed(letters)):
        last = number == len(letters) - 1
        found[letter] = index if last else ops.floormod(index, extents[letter])
        index = index if last else ops.floordiv(index, extents[letter])
    return found


def _together(at: Index, letters: Sequence[str], extents: Index) -> Any:
    """Return the index of the fused axes."""
    index: Any = 0
    for letter in letters:
        index = index * extents[letter] + at[letter]
    return index


Element = Callable[[PrimExpr, PrimExpr, PrimExpr], Any]


def conv_operands(
    problem: Problem, inputs: Sequence[te.Tensor]
) -> tuple[Geometry, Element, Element, Callable[[te.Tensor], Callable[..., Any]]]:
    """Return a convolution as a product.

    An element of the columns and one of the weights, of group, pixel or channel, and step; and what
    makes an element of the output of the products' tensor.
    """
    data, weight = inputs
    attrs = problem.attrs
    geometry = Geometry.of(attrs, problem.in_types)
    assert geometry is not None
    spatial = SPATIAL[len(attrs.strides)]
    count, channels = len(spatial), geometry.out["C"] // attrs.groups
    pads = dict.fromkeys("NC", (0, 0))
    pads |= {s: (attrs.padding[a], attrs.padding[a + count]) for a, s in enumerate(spatial)}
    before, after = ([pads[letter][side] for letter in attrs.data_layout] for side in (0, 1))
    padded = pad_stage(data, before, after, 0)

    def column(group: PrimExpr, pixel: PrimExpr, step: PrimExpr) -> Any:
        at = _apart(pixel, geometry.pixels, geometry.out)
        tap = _apart(step, geometry.taps, geometry.kernel)
        source = {"N": at["N"], "C": group * geometry.kernel["I"] + tap["I"]}
        for a, s in enumerate(spatial):
            source[s] = at[s] * attrs.strides[a] + tap[s] * attrs.dilation[a]
        return padded(*arrange(source, attrs.data_layout))

    def filters(group: PrimExpr, channel: PrimExpr, step: PrimExpr) -> Any:
        tap = _apart(step, geometry.taps, geometry.kernel)
        return weight(*arrange({**tap, "O": group * channels + channel}, attrs.kernel_layout))

    def output(products: te.Tensor) -> Callable[..., Any]:
        def element(*indices: PrimExpr) -> Any:
            at = dict(zip(geometry.out, indices, strict=True))
            pixel = _together(at, geometry.pixels, geometry.out)
            group, channel = ops.const(0, "int32"), at["C"]
            if attrs.groups > 1:
                group, channel = ops.floordiv(channel, channels), ops.floormod(channel, channels)
            sides = (pixel, channel) if geometry.channels_last else (channel, pixel)
            return products(group, *sides)

        return element

    return geometry, column, filters, output


def compute_product(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: SharedKnobs
) -> list[te.Tensor]:
    """The stages: columns, weights, their product, and the product as the output lies."""
    geometry, column, filters, element = conv_operands(problem, inputs)
    (out,) = problem.out_types
    sizes = geometry.sizes
    depth, channels = sizes.depth, geometry.out["C"] // problem.attrs.groups
    pixels = prod(geometry.out[letter] for letter in geometry.pixels)
    # The last axis of a panel is the one that lies in memory so: neighbours fetch neighbours.
    columns = _panel("columns", sizes.batch, pixels, depth, column, geometry.columns_by_step)
    weights = _panel("weights", sizes.batch, channels, depth, filters, geometry.weights_by_step)
    k = te.reduce_axis((0, depth), name="k")

    def product(group: PrimExpr, row: PrimExpr, other: PrimExpr) -> Any:
        pixel, channel = (row, other) if geometry.channels_last else (other, row)
        x = columns(group, *((pixel, k) if geometry.columns_by_step else (k, pixel)))
        w = weights(group, *((channel, k) if geometry.weights_by_step else (k, channel)))
        return te.sum(x.astype(out.dtype) * w.astype(out.dtype), axis=k)

    products = te.compute((sizes.batch, sizes.rows, sizes.columns), product, name="products")

    return [te.compute(out.shape, element(products), name="conv", tag="injective")]


def _panel(
    name: str, batch: int, count: int, depth: int, element: Callable[..., Any], by_step: bool
) -> te.Tensor:
    """Return one operand, `element(group, number, step)`, with the steps or the numbers last."""
    if by_step:
        made = te.compute((batch, count, depth), element, name=name)
    else:
        made = te.compute((batch, depth, count), lambda g, k, i: element(g, i, k), name=name)
    return made  # type: ignore[no-any-return]


def _applies(attrs: Any, in_types: Sequence[Any], target: Target) -> bool:
    geometry = Geometry.of(attrs, in_types)
    if geometry is None or not geometry.sizes.fits(target):
        return False
    return bool(legal_knobs(in_types[0].dtype, target))


def conv_knobs(
    geometry: Geometry, dtype: str, target: Target, copied: bool = True
) -> list[SharedKnobs]:
    """Return the knobs with which a block is of one group, and fits a device of the target.

    A tile in two groups can be asked for: it is right, but its panels take the memory of two.
    """
    legal = legal_knobs(dtype, target, copied)
    return [k for k in legal if geometry.divides(k.block_rows, k.block_columns)]


def _is_default(attrs: Any, in_types: Sequence[Any], target: Target) -> bool:
    if not runs_in_step(target) or not _applies(attrs, in_types, target):
        return False
    geometry = Geometry.of(attrs, in_types)
    assert geometry is not None
    return bool(conv_knobs(geometry, in_types[0].dtype, target))


def _is_choice(attrs: Any, in_types: Sequence[Any], target: Target) -> bool:
    default = _is_default(attrs, in_types, target)
    return not default and _applies(attrs, in_types, target)


def _cost(problem: Problem, knobs: SharedKnobs) -> float:
    geometry = Geometry.of(problem.attrs, problem.in_types)
    assert geometry is not None
    size = dtypes.bytes_of(problem.in_types[0].dtype)
    return product_cost(geometry.sizes, knobs, Lies(size, geometry.sides_by_step))


def _knobs(problem: Problem) -> SharedKnobs:
    geometry = Geometry.of(problem.attrs, problem.in_types)
    assert geometry is not None
    dtype, target = problem.in_types[0].dtype, problem.target
    legal = conv_knobs(geometry, dtype, target) or legal_knobs(dtype, target)
    return min(legal, key=lambda knobs: _cost(problem, knobs))


@register_strategy(
    "nn.conv1d", "nn.conv2d", "nn.conv3d", name="threads.shared", priority=20,
    applies=_is_default, compute=compute_product, default=_knobs, space=shared_space, cost=_cost,
)  # fmt: skip
@register_strategy(
    "nn.conv1d", "nn.conv2d", "nn.conv3d", name="threads.shared", priority=5,
    applies=_is_choice, compute=compute_product, default=_knobs, space=shared_space, cost=_cost,
)  # fmt: skip
def schedule_product(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: SharedKnobs
) -> te.Schedule:
    """A tile for each block; a thread for each element where the kernel does more than that."""
    sums = [op for op in producers(outs) if isinstance(op, te.ComputeOp) and op.reduce_axis]
    (products,) = anchor.op.input_tensors
    schedule = te.create_schedule([t.op for t in outs])
    panels = list(products.op.input_tensors)
    inline_injective(schedule, outs, keep=[anchor, *panels])
    is_result = any(t.op is anchor.op for t in outs)
    out = anchor if is_result else only_reader(readers_of(schedule, outs), anchor.op, outs)
    if len(outs) != 1 or sums != [products.op] or out is None:
        return schedule_elements(problem, outs, anchor, ThreadKnobs(64))
    if not is_result:
        schedule[anchor].compute_inline()
    geometry = Geometry.of(problem.attrs, problem.in_types)
    assert geometry is not None
    batch, rows, columns = geometry.sides(schedule[out], problem.attrs.groups)
    schedule[products].set_scope("local")
    tiling = Tiling(schedule, knobs)
    tiling.bind(out, batch, rows, columns)
    step = tiling.sum_up(products)
    scope = panel_scope(problem.target, knobs.panel_bytes(panels[0].dtype))
    for panel in panels:
        schedule[panel].set_scope(scope)
        side = int((panel.op.name == "columns") != geometry.channels_last)
        count = (knobs.block_rows, knobs.block_columns)[side]
        tiling.share(panel, products, step, geometry.sides_by_step[side], count)
    return schedule
