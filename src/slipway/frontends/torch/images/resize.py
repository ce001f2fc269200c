"""Resampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway import relay
from slipway.frontends.torch.converters import NodeView, converter
from slipway.relay.dims import is_open
from slipway.relay.op_registry import make

NAMES = {
    f"upsample_{mode}{n}d": (method, n)
    for mode, method, ranks in (
        ("nearest", "nearest_neighbor", (1, 2, 3)), ("linear", "linear", (1,)),
        ("bilinear", "linear", (2,)), ("trilinear", "linear", (3,)), ("bicubic", "cubic", (2,)),
    )
    for n in ranks
}  # fmt: skip
NAMES |= {f"_upsample_nearest_exact{n}d": ("nearest_neighbor", n) for n in (1, 2, 3)}


@converter(*NAMES)
def upsample(node: NodeView) -> Any:
    """Torch's interpolation of the spatial axes; factors that are given are used as they are."""
    method, count = NAMES[node.kind]
    x = node.input("input" if "input" in node.arguments else "self")
    shape, size = x.tensor_type.shape, node.out.shape
    given = node.arg("scale_factors")
    if given is None:
        names = ("scales_d", "scales_h", "scales_w")[3 - count :] if count > 1 else ("scales",)
        given = [node.arguments.get(name) for name in names]
    scales = _scales(given, shape, size)
    if method == "nearest_neighbor":
        exact = node.kind.startswith("_")
        coordinates, rounding = ("half_pixel", "round_prefer_ceil") if exact else (
            "asymmetric", "floor")  # fmt: skip
    elif node.arg("align_corners", False):
        coordinates, rounding = "align_corners", ""
        scales = _scales([None] * count, shape, size)
    else:
        coordinates, rounding = "half_pixel", ""
    return relay.image.resize(x, size, tuple(scales), method, coordinates, rounding)


def _scales(given: Sequence[Any], shape: Sequence[Any], size: Sequence[Any]) -> list[float]:
    """Return the factor of each axis; none at all where sizes are open, which then say it."""
    spatial = list(zip(given, shape[2:], size[2:], strict=True))
    if any(not factor and (is_open(old) or is_open(new)) for factor, old, new in spatial):
        return []
    return [1.0, 1.0, *(float(factor) if factor else new / old for factor, old, new in spatial)]


@converter("grid_sampler_2d", "grid_sampler", "grid_sampler_3d")
def grid_sample(node: NodeView) -> Any:
    """Data interpolated at the positions of a grid."""
    method = ("bilinear", "nearest", "bicubic")[int(node.arg("interpolation_mode", 0))]
    padding = ("zeros", "border", "reflection")[int(node.arg("padding_mode", 0))]
    return make("image.grid_sample")(
        node.input("input"), node.input("grid"), method, "NCHW", padding,
        bool(node.arg("align_corners", False)),
    )  # fmt: skip
