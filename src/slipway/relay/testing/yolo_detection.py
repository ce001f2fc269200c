"""Boxes from the outputs of YOLO networks: decoded, thinned out, and drawn.

A layer is a dictionary as Darknet describes it: ``type`` ("Yolo" or "Region"), ``output``
(anchors, values, rows, columns), ``biases``, ``classes``, and ``mask`` or ``coords`` and
``background``.  Images are (3, height, width) of 0 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slipway.errors import ArgumentValueError, ToolchainError

Detection = dict[str, Any]
FONT_SIZE = 25
_COLOURS = np.array([[1, 0, 1], [0, 0, 1], [0, 1, 1], [0, 1, 0], [1, 1, 0], [1, 0, 0]], np.float64)


class Box(NamedTuple):
    """Centre and size."""

    x: Any
    y: Any
    w: Any
    h: Any


def fill_network_boxes(
    net_shape: tuple[int, int],
    im_shape: tuple[int, int],
    thresh: float,
    relative: bool,
    tvm_out: Sequence[Mapping[str, Any]],
) -> list[Detection]:
    """Return the boxes of all layers whose objectness is over `thresh`.

    Shapes are (width, height).  The network saw the image scaled into its middle; the boxes are
    those of the image, in parts of it if `relative`, else in pixels.
    """
    found: list[Detection] = []
    for layer in tvm_out:
        if layer["type"] == "Yolo":
            boxes = _yolo(layer, net_shape, thresh)
        elif layer["type"] == "Region":
            boxes = _region(layer, thresh)
        else:
            raise ArgumentValueError(
                f"a layer is of type {layer['type']!r}; boxes come from 'Yolo' and 'Region'."
            )
        for one in boxes:
            one["bbox"] = _in_image(one["bbox"], im_shape, net_shape, relative)
        found += boxes
    return found


def _decoded(
    layer: Mapping[str, Any], at: tuple[int, int, int], anchor: int, unit: tuple[int, int]
) -> Box:
    """Return the box that the values at (anchor, row, column) mean, in parts of the network."""
    data, biases = layer["output"], layer["biases"]
    n, row, column = at
    x, y, w, h = data[n, :4, row, column]
    rows, columns = data.shape[2:]
    return Box(
        (column + x) / columns, (row + y) / rows,
        np.exp(w) * biases[2 * anchor] / unit[0], np.exp(h) * biases[2 * anchor + 1] / unit[1],
    )  # fmt: skip


def _yolo(layer: Mapping[str, Any], net: tuple[int, int], thresh: float) -> list[Detection]:
    data, classes = layer["output"], layer["classes"]
    found = []
    for n, row, column in zip(*np.where(data[:, 4] > thresh), strict=True):
        anchor = int(np.asarray(layer["mask"])[n])
        objectness = data[n, 4, row, column]
        prob = objectness * data[n, 5 : 5 + classes, row, column]
        found.append({
            "bbox": _decoded(layer, (n, row, column), anchor, net), "classes": classes,
            "prob": np.where(prob < thresh, 0, prob), "objectness": objectness,
        })  # fmt: skip
    return found


def _region(layer: Mapping[str, Any], thresh: float) -> list[Detection]:
    data, classes, coords = layer["output"], layer["classes"], layer["coords"]
    anchors, _, rows, columns = data.shape
    found = []
    for row, column, n in np.ndindex(rows, columns, anchors):
        scale = 1 if layer["background"] else data[n, coords, row, column]
        prob = np.zeros(classes, data.dtype)
        if scale > thresh:
            prob = scale * data[n, coords + 1 : coords + 1 + classes, row, column]
            prob = np.where(prob < thresh, 0, prob)
        found.append({
            "bbox": _decoded(layer, (n, row, column), n, (columns, rows)), "classes": classes,
            "prob": prob, "objectness": scale if scale > thresh else 0,
        })  # fmt: skip
    return found


def _in_image(b: Box, image: tuple[int, int], net: tuple[int, int], relative: bool) -> Box:
    """Return a box of the network as one of the image that was scaled into its middle."""
    width, height = image
    if net[0] / width < net[1] / height:
        inner = net[0], height * net[0] // width
    else:
        inner = width * net[1] // height, net[1]
    x, y = (
        (centre - (whole - part) / 2 / whole) / (part / whole)
        for centre, whole, part in zip((b.x, b.y), net, inner, strict=True)
    )
    w, h = (size * whole / part for size, whole, part in zip((b.w, b.h), net, inner, strict=True))
    return Box(x, y, w, h) if relative else Box(x * width, y * height, w * width, h * height)


def nms_comparator(a: Mapping[str, Any], b: Mapping[str, Any]) -> Any:
    """Return how much more likely `a` is than `b`, of the class that is being sorted."""
    kind = b.get("sort_class", -1)
    return a["prob"][kind] - b["prob"][kind] if kind >= 0 else a["objectness"] - b["objectness"]


def _overlap(a: Box, b: Box) -> Any:
    """Return intersection over union."""
    sides = [
        min(a[i] + a[i + 2] / 2, b[i] + b[i + 2] / 2)
        - max(a[i] - a[i + 2] / 2, b[i] - b[i + 2] / 2)
        for i in (0, 1)
    ]
    shared = sides[0] * sides[1] if min(sides) > 0 else 0
    return shared / (a.w * a.h + b.w * b.h - shared)


def do_nms_sort(dets: list[Detection], classes: int, thresh: float) -> None:
    """Set to 0 the probability of every box that a likelier one of its class overlaps.

    In place; boxes without objectness go to the end, the others are sorted by the last class.
    """
    real = [d for d in dets if d["objectness"] != 0]
    rest = [d for d in dets if d["objectness"] == 0]
    for kind in range(classes):
        real.sort(key=lambda d: float(d["prob"][kind]), reverse=True)
        for i, one in enumerate(real):
            one["sort_class"] = kind
            if one["prob"][kind] == 0:
                continue
            for other in real[i + 1 :]:
                if _overlap(one["bbox"], other["bbox"]) > thresh:
                    other["prob"][kind] = 0
    dets[:] = real + rest


def get_detections(
    im: npt.NDArray[Any], det: Detection, thresh: float, names: Sequence[str], classes: int
) -> tuple[bool, Detection | None]:
    """Return whether a class is likelier than `thresh`, and where and how to draw the box."""
    likely = [k for k in range(classes) if det["prob"][k] > thresh]
    if not likely:
        return False, None
    _, height, width = im.shape
    b = det["bbox"]
    hue = likely[0] * 123457 % classes
    return True, {
        "category": likely[0],
        "labelstr": [f"{names[k]} {round(det['prob'][k], 4)}" for k in likely],
        "left": max(int((b.x - b.w / 2) * width), 0),
        "top": max(int((b.y - b.h / 2) * height), 0),
        "right": min(int((b.x + b.w / 2) * width), width - 1),
        "bot": min(int((b.y + b.h / 2) * height), height - 1),
        "width": int(height * 0.006),
        "rgb": [_colour(channel, hue, classes) for channel in (2, 1, 0)],
    }


def _colour(channel: int, hue: int, count: int) -> float:
    """Return a channel of the `hue`-th of `count` colours around the circle."""
    position = hue / count * 5
    below, above = int(np.floor(position)), int(np.ceil(position))
    part = position - below
    return float((1 - part) * _COLOURS[below, channel] + part * _COLOURS[above, channel])


def show_detections(
    im: npt.NDArray[Any],
    dets: Sequence[Detection],
    thresh: float,
    names: Sequence[str],
    classes: int,
) -> None:
    """Print the likely boxes, in pixels."""
    for det in dets:
        valid, d = get_detections(im, det, thresh, names, classes)
        if valid and d is not None:
            print(
                f"class:{d['labelstr']} left:{d['left']} top:{d['top']} right:{d['right']} "
                f"bottom:{d['bot']}"
            )


def draw_detections(
    font_path: str,
    im: npt.NDArray[Any],
    dets: Sequence[Detection],
    thresh: float,
    names: Sequence[str],
    classes: int,
) -> None:
    """Draw the likely boxes and their labels into the image."""
    for det in dets:
        valid, d = get_detections(im, det, thresh, names, classes)
        if valid and d is not None:
            label = _label(font_path, "".join(d["labelstr"]), d["rgb"])
            for inset in range(d["width"]):
                _draw_frame(im, d, inset)
            top = d["top"] + d["width"]
            top = top - label.shape[1] if top >= label.shape[1] else top
            rows, columns = (
                min(size, whole - first)
                for size, whole, first in zip(
                    label.shape[1:], im.shape[1:], (top, d["left"]), strict=True
                )
            )
            position = im[:, top : top + rows, d["left"] : d["left"] + columns]
            position[:] = label[:, :rows, :columns]


def _draw_frame(im: npt.NDArray[Any], d: Detection, inset: int) -> None:
    left, right = d["left"] + inset, d["right"] - inset
    top, bottom = d["top"] + inset, d["bot"] - inset
    if left >= right or top >= bottom:
        return
    for channel, value in enumerate(d["rgb"]):
        im[channel, [top, bottom], left:right] = value
        im[channel, top:bottom, [left, right]] = value


def _label(font_path: str, text: str, rgb: Sequence[float]) -> npt.NDArray[Any]:
    """Return black text on a ground of the colour, (3, height, width)."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise ToolchainError(
            "labels are drawn with Pillow, which is missing: pip install pillow"
        ) from error
    font = ImageFont.truetype(font_path, FONT_SIZE)
    _, _, width, height = font.getbbox(text)
    ground = tuple(int(channel * 255) for channel in rgb)
    image = Image.new("RGB", (int(width), int(height)), ground)
    ImageDraw.Draw(image).text((0, 0), text, fill="black", font=font)
    return (np.asarray(image) / 255).transpose(2, 0, 1)
