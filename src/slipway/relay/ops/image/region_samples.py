"""vision.roi_align_adaptive: regions pooled with a sample for each element that a bin reaches.

How many samples there are depends on each region, as with ONNX's sampling_ratio 0 and torchvision's
-1, so that the loops over them end at computed numbers.  The positions and weights of a sample are
those of `vision.roi_align`, and are computed once for all channels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir import builder, ops
from slipway.ir.node import node
from slipway.relay.dims import SymbolDim, size_of
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import of_elements
from slipway.relay.ops.image.regions import MODES, check_regions, region_case
from slipway.relay.ops.image.sample import working_dtype
from slipway.relay.ops.tensor.small_types import to_integer
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.relay.expr import Array, Call, ExprLike


@node
class RoiAlignAdaptiveAttrs(Attrs):
    """Bins per region, input extent per unit of a region's coordinates, and how they are pooled.

    `aligned` takes half an element off the coordinates, and lets a region be narrower than one.
    """

    pooled_size: tuple[int, int] = (1, 1)
    spatial_scale: float = 1.0
    mode: str = "avg"
    aligned: bool = False


ADAPTIVE = register_op(
    "vision.roi_align_adaptive", "data", "rois", attrs=RoiAlignAdaptiveAttrs,
    pattern=OpPattern.OPAQUE, flops_per_element=200,
    doc="Features (N, C, H, W) pooled over regions (R, 5): sample number, x1, y1, x2, y2; a bin "
    "is sampled as often as elements fit into it.",
)  # fmt: skip


@ADAPTIVE.type_relation
@of_elements
def _type(attrs: RoiAlignAdaptiveAttrs, data: TensorType, rois: TensorType) -> TensorType:
    return check_regions(attrs, data, rois)


def _axis(
    attrs: RoiAlignAdaptiveAttrs, axis: int, low: Any, high: Any, number: Any, maximum: Any
) -> tuple[Any, Any]:
    """Return the start of a region along an axis and the length of a bin."""
    shift = number(0.5 if attrs.aligned else 0.0)
    start = low * number(attrs.spatial_scale) - shift
    length = high * number(attrs.spatial_scale) - shift - start
    if not attrs.aligned:
        length = maximum(length, number(1.0))
    return start, length / number(attrs.pooled_size[axis])


@ADAPTIVE.reference
def _reference(attrs: RoiAlignAdaptiveAttrs, data: Array, rois: Array) -> Any:
    real = np.dtype(working_dtype(data.dtype.name, rois.dtype.name)).type
    wide, regions = data.astype(real), rois.astype(real)
    found = np.zeros((len(rois), data.shape[1], *attrs.pooled_size), real)
    for r, (_, x1, y1, x2, y2) in enumerate(regions):
        image = wide[to_integer(regions[r, 0], "int32").clip(0, len(data) - 1)]
        weights = []
        for axis, (low, high) in enumerate(((y1, y2), (x1, x2))):
            start, step = _axis(attrs, axis, low, high, real, np.maximum)
            samples = int(to_integer(np.ceil(step), "int32"))
            weights.append(_tables(start, step, samples, attrs.pooled_size[axis],
                                   image.shape[axis + 1], real))  # fmt: skip
        for py, rows in enumerate(weights[0]):
            for px, columns in enumerate(weights[1]):
                found[r, :, py, px] = _pooled(attrs.mode, image, rows, columns)
    return found.astype(data.dtype)


def _tables(
    start: Any, step: Any, samples: int, bins: int, extent: int, real: Any
) -> list[list[tuple[int, int, Any, bool]]]:
    """Return for each bin the samples along an axis: two indices, the second's weight, inside."""
    found = []
    for position in range(bins):
        row = []
        for s in range(samples):
            at = start + real(position) * step + (real(s) + real(0.5)) * step / real(samples)
            inside = bool(-1 <= at <= extent)
            at = min(max(at, real(0)), real(extent - 1)) if inside else real(0)
            low = int(np.floor(at))
            row.append((low, min(low + 1, extent - 1), at - real(low), inside))
        found.append(row)
    return found


def _pooled(mode: str, image: Any, rows: Any, columns: Any) -> Any:
    total = np.zeros(len(image), image.dtype)
    for n, (y, x) in enumerate((y, x) for y in rows for x in columns):
        parts = [
            (wy * wx) * image[:, iy, ix]
            for iy, wy in ((y[0], 1 - y[2]), (y[1], y[2]))
            for ix, wx in ((x[0], 1 - x[2]), (x[1], x[2]))
        ]
        value = np.maximum.reduce(parts) if mode == "max" else sum(parts)
        value = value if y[3] and x[3] else np.zeros_like(total)
        total = (value if n == 0 else np.maximum(total, value)) if mode == "max" else total + value
    return total if mode == "max" else total / total.dtype.type(max(len(rows) * len(columns), 1))


@ADAPTIVE.compute
def _compute(
    attrs: RoiAlignAdaptiveAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (out,) = out_types

    def statements(ins: list[Any], outs: list[Any]) -> Any:
        return _Regions(attrs, ins, outs).statements()

    return [te().extern([out.shape], inputs, statements, "roi_align_adaptive", [out.dtype])]


class _Regions:
    """The loops over regions, bins and samples, and what they read and write."""

    def __init__(self, attrs: RoiAlignAdaptiveAttrs, ins: list[Any], outs: list[Any]) -> None:
        self.ib = ib = builder.create()
        self.attrs = attrs
        data, rois = ins
        self.dtype = working_dtype(data.dtype, rois.dtype)
        sizes = [size_of(d) for d in data.shape]
        self.count, self.channels, self.height, self.width = (
            s.formula if isinstance(s, SymbolDim) else s for s in sizes
        )
        regions = size_of(rois.shape[0])
        self.regions = regions.formula if isinstance(regions, SymbolDim) else regions
        self.data, self.rois = map(ib.buffer_ptr, ins)
        (self.out,) = map(ib.buffer_ptr, outs)
        self.narrow = outs[0].dtype
        self.totals = ib.allocate(self.dtype, (self.channels,), "totals")

    def number(self, value: float) -> Any:
        return te().const(value, self.dtype)

    def real(self, value: Any) -> Any:
        return value.astype(self.dtype)

    def statements(self) -> Any:
        ib = self.ib
        with ib.for_range(0, self.regions, "r") as r:
            sample = te().to_integer(self.rois[r, 0], "int32")
            sample = ib.let("image", te().min(te().max(sample, 0), self.count - 1))
            starts, steps, samples = [], [], []
            for axis, (low, high) in enumerate(((2, 4), (1, 3))):
                start, step = _axis(
                    self.attrs, axis, self.real(self.rois[r, low]), self.real(self.rois[r, high]),
                    self.number, te().max,
                )  # fmt: skip
                starts.append(ib.let("start", start))
                steps.append(ib.let("step", step))
                whole = te().to_integer(te().ceil(steps[-1]), "int32")
                samples.append(ib.let("samples", te().max(whole, 0)))
            height, width = self.attrs.pooled_size
            with ib.for_range(0, height, "py") as py, ib.for_range(0, width, "px") as px:
                self.bin(r, sample, (py, px), starts, steps, samples)
        return ib.get()

    def bin(
        self, r: Any, sample: Any, at: tuple[Any, Any], starts: list[Any], steps: list[Any],
        samples: list[Any],
    ) -> None:  # fmt: skip
        """Pool one bin of a region in all channels."""
        ib, largest = self.ib, self.attrs.mode == "max"
        with ib.for_range(0, self.channels, "c") as c:
            self.totals[c] = self.number(0.0)
        with ib.for_range(0, samples[0], "sy") as sy:
            y = self.corners(at[0], sy, starts[0], steps[0], samples[0], self.height)
            with ib.for_range(0, samples[1], "sx") as sx:
                x = self.corners(at[1], sx, starts[1], steps[1], samples[1], self.width)
                inside = ib.let("inside", te().all(y[3], x[3]))
                is_first = ib.let("is_first", te().all(ops.equal(sy, 0), ops.equal(sx, 0)))
                weights = [
                    (iy, ix, ib.let("weight", wy * wx))
                    for iy, wy in ((y[0], self.number(1.0) - y[2]), (y[1], y[2]))
                    for ix, wx in ((x[0], self.number(1.0) - x[2]), (x[1], x[2]))
                ]
                with ib.for_range(0, self.channels, "c") as c:
                    parts = [w * self.real(self.data[sample, c, iy, ix]) for iy, ix, w in weights]
                    value = parts[0]
                    for part in parts[1:]:
                        value = te().max(value, part) if largest else value + part
                    value = te().select(inside, value, self.number(0.0))
                    known = self.totals[c]
                    if largest:
                        value = te().select(is_first, value, te().max(known, value))
                    else:
                        value = known + value
                    self.totals[c] = value
        count = self.real(te().max(samples[0] * samples[1], 1))
        divisor = ib.let("count", self.number(1.0) if largest else count)
        with ib.for_range(0, self.channels, "c") as c:
            self.out[r, c, at[0], at[1]] = (self.totals[c] / divisor).astype(self.narrow)

    def corners(
        self, bin_: Any, number: Any, start: Any, step: Any, samples: Any, extent: Any
    ) -> tuple[Any, Any, Any, Any]:
        """Return two indices along an axis, the second's weight, and whether they are inside."""
        ib, t = self.ib, te()
        extent = t.const(extent, "int32") if isinstance(extent, int) else extent
        moved = (self.real(number) + self.number(0.5)) * step / self.real(samples)
        at = ib.let("at", start + self.real(bin_) * step + moved)
        inside = ib.let("inside", t.all(at >= self.number(-1.0), at <= self.real(extent)))
        last = self.real(extent - 1)
        at = ib.let("clamped", t.min(t.max(at, self.number(0.0)), last))
        low = ib.let("low", t.to_integer(t.floor(at), "int32"))
        return low, ib.let("high", t.min(low + 1, extent - 1)), at - self.real(low), inside


@ADAPTIVE.make
def roi_align_adaptive(
    data: ExprLike,
    rois: ExprLike,
    pooled_size: tuple[int, int],
    spatial_scale: float,
    mode: str = "avg",
    aligned: bool = False,
) -> Call:
    """Pool `data` over regions (R, 5), with as many samples as elements fit into a bin."""
    if len(pooled_size) != 2 or isinstance(pooled_size, str):
        raise BadArgument("pooled_size", f"is {pooled_size!r}; write two numbers")
    attrs = RoiAlignAdaptiveAttrs(
        (int(pooled_size[0]), int(pooled_size[1])), float(spatial_scale), mode, bool(aligned)
    )
    return ADAPTIVE(data, rois, attrs=attrs)


for _mode in MODES:
    for _aligned in (True, False):
        ADAPTIVE.sample_case(
            attrs=RoiAlignAdaptiveAttrs((2, 3), 0.5, _mode, _aligned), make=region_case
        )
