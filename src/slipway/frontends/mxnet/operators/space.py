"""Images: resized, sampled, their pixels moved into channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, converter, shape_of


@converter("depth_to_space", "space_to_depth")
def _pixels(node: NodeView) -> Any:
    return getattr(relay.nn, node.op)(node.data, node.integer("block_size"))


# Extents of the modes that make one even or odd.
SIZES: dict[str, Callable[[int], int]] = {
    "to_even_down": lambda n: n - n % 2,
    "to_even_up": lambda n: n + n % 2,
    "to_odd_down": lambda n: n - 1 + n % 2,
    "to_odd_up": lambda n: n + 1 - n % 2,
}


def _odd(extent: int, scale: float) -> int:
    return int(extent * scale) if extent % 2 == 0 else int((extent - 1) * scale) + 1


@converter("_contrib_BilinearResize2D")
def _resize(node: NodeView) -> Any:
    mode = node.text("mode", "size")
    height, width = node.shape[2:]
    if mode == "like":
        size = shape_of(node[1])[2:]
    elif mode in SIZES:
        size = (SIZES[mode](height), SIZES[mode](width))
    elif mode == "odd_scale":
        scales = node.real("scale_height", 1.0), node.real("scale_width", 1.0)
        size = (_odd(height, scales[0]), _odd(width, scales[1]))
    elif node.has("scale_height"):
        size = (
            int(height * node.real("scale_height", 1.0)),
            int(width * node.real("scale_width", 1.0)),
        )
    elif mode == "size":
        size = (node.integer("height", 1), node.integer("width", 1))
    else:
        raise node.unsupported(f"its mode is {mode!r}")
    coordinates = "align_corners" if node.flag("align_corners", True) else "half_pixel"
    return relay.image.resize2d(
        node.data, size, method="linear", coordinate_transformation_mode=coordinates
    )


@converter("GridGenerator")
def _grid(node: NodeView) -> Any:
    if node.text("transform_type") == "affine":
        return relay.image.affine_grid(
            relay.reshape(node.data, (node.shape[0], 2, 3)), tuple(node.ints("target_shape"))
        )
    height, width = node.shape[2:]  # a displacement in pixels for each
    grids = []
    for extent, axis in ((width, 1), (height, 0)):
        line = relay.arange(relay.const(extent, "float32"), dtype="float32")
        flat = relay.reshape(line, (1, extent) if axis else (extent, 1))
        grids.append(relay.broadcast_to(flat, (height, width)))
    positions = relay.add(node.data, relay.reshape(relay.stack(grids, 0), (1, 2, height, width)))
    half = relay.reshape(
        relay.stack([node.const((width - 1) / 2), node.const((height - 1) / 2)], 0), (1, 2, 1, 1)
    )
    return relay.subtract(relay.divide(positions, half), node.const(1.0))


@converter("BilinearSampler")
def _sample(node: NodeView) -> Any:
    return relay.image.grid_sample(node.data, node[1])


@converter("SpatialTransformer")
def _transformer(node: NodeView) -> Any:
    size = tuple(node.ints("target_shape"))
    grid = relay.image.affine_grid(relay.reshape(node[1], (node.shape[0], 2, 3)), size)
    return relay.image.grid_sample(node.data, grid)
