"""Local files in place of what scripts download: see classic_scripts.py.

A picture, a list of labels, or a model with the inputs that the script expects and random weights:
enough where a script needs *a* model, and never claimed to be the one it names.
"""

from __future__ import annotations

import email.message
import io
import os
import urllib.response
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SHARED = Path(os.environ.get("SLIPWAY_SHARED", Path(__file__).resolve().parents[2] / "shared"))


class NotStored(OSError):
    """A file of the net for which there is no local one."""


def opener(fetched: list[str]) -> Callable[..., Any]:
    """Return what stands in for urllib.request.urlopen; it notes the names of what it hands out."""

    def urlopen(url: Any, *args: Any, **options: Any) -> Any:
        address = url if isinstance(url, str) else url.full_url
        name = address.partition("?")[0].rpartition("/")[2]
        content = content_of(name)
        fetched.append(name)
        headers = email.message.Message()
        headers["Content-Length"] = str(len(content))
        return urllib.response.addinfourl(io.BytesIO(content), headers, address, 200)

    return urlopen


def content_of(name: str) -> bytes:
    """Return the bytes of a local file for the name of one of the net."""
    ending = name.rpartition(".")[2].lower()
    if name in MADE:
        return MADE[name]()
    if ending in ("png", "jpg", "jpeg"):
        return picture()
    if name.startswith("imagenet") and ending == "txt":  # a dictionary, as Python writes it
        return repr({i: f"class {i}" for i in range(1000)}).encode()
    if name.startswith("synset") and ending == "txt":  # a line a class
        return "\n".join(f"n{i:08d} class {i}" for i in range(1000)).encode()
    raise NotStored(f"{name} is in the net, and nothing here stands in for it")


def picture() -> bytes:
    """Return a PNG of 256 by 256 random colours."""
    from PIL import Image

    colours = np.random.default_rng(0).integers(0, 256, (256, 256, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(colours).save(out, "PNG")
    return out.getvalue()


def onnx_model(nodes: list[Any], inputs: Any, outputs: Any, weights: dict[str, Any]) -> bytes:
    """Return an ONNX file."""
    from onnx import TensorProto, helper, numpy_helper

    values = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in given]
        for given in (inputs, outputs)
    ]
    graph = helper.make_graph(
        nodes, "stand_in", *values, [numpy_helper.from_array(v, k) for k, v in weights.items()]
    )
    opset = [helper.make_opsetid("", 13)]
    content: bytes = helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    return content


def super_resolution() -> bytes:
    """Return a model of input "1" (1, 1, 224, 224) that makes a picture three times as large."""
    from onnx import helper

    rng = np.random.default_rng(1)
    weights = {
        "w0": rng.normal(0, 0.1, (16, 1, 5, 5)).astype("float32"),
        "w1": rng.normal(0, 0.1, (9, 16, 3, 3)).astype("float32"),
    }
    nodes = [
        helper.make_node("Conv", ["1", "w0"], ["a"], pads=[2, 2, 2, 2]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w1"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("DepthToSpace", ["c"], ["out"], blocksize=3, mode="CRD"),
    ]
    return onnx_model(nodes, [("1", (1, 1, 224, 224))], [("out", (1, 1, 672, 672))], weights)


def classifier() -> bytes:
    """Return a model of input "data" (1, 3, 224, 224) that gives 1000 scores."""
    from onnx import helper

    rng = np.random.default_rng(2)
    weights = {
        "w0": rng.normal(0, 0.1, (32, 3, 7, 7)).astype("float32"),
        "w1": rng.normal(0, 0.1, (32, 32, 3, 3)).astype("float32"),
        "w2": rng.normal(0, 0.1, (32, 1000)).astype("float32"),
    }
    nodes = [
        helper.make_node("Conv", ["data", "w0"], ["a"], pads=[3, 3, 3, 3], strides=[4, 4]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w1"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["b", "c"], ["d"]),
        helper.make_node("GlobalAveragePool", ["d"], ["e"]),
        helper.make_node("Flatten", ["e"], ["f"]),
        helper.make_node("MatMul", ["f", "w2"], ["out"]),
    ]
    return onnx_model(nodes, [("data", (1, 3, 224, 224))], [("out", (1, 1000))], weights)


def _shared(name: str) -> Callable[[], bytes]:
    def read() -> bytes:
        path = SHARED / "models" / "tflite" / name
        if not path.exists():
            raise NotStored(f"{path.name} is not in the folder of shared models")
        return path.read_bytes()

    return read


def _samples() -> bytes:
    out = io.BytesIO()
    values = np.random.default_rng(3).integers(-128, 128, (1, 49, 10, 1))
    np.save(out, values.astype("int8"))
    return out.getvalue()


def yolo_v3() -> bytes:
    """Return a network of Darknet with three scales of boxes of 80 classes, small."""
    anchors = "anchors=10,13, 16,30, 33,23, 30,61, 62,45, 59,119, 116,90, 156,198, 373,326"
    conv = "[convolutional]\nfilters={}\nsize={}\nstride={}\npad=1\nactivation={}\n"
    boxes = f"[yolo]\nmask={{}}\n{anchors}\nclasses=80\nnum=9\n"
    head = conv.format(255, 1, 1, "linear") + boxes
    text = "[net]\nwidth=64\nheight=64\nchannels=3\n"
    text += conv.format(8, 3, 8, "leaky") + conv.format(16, 3, 2, "leaky")
    text += conv.format(16, 3, 2, "leaky") + head.format("6,7,8")
    text += "[route]\nlayers=-3\n[upsample]\nstride=2\n[route]\nlayers=-1,1\n"
    text += head.format("3,4,5") + "[route]\nlayers=-3\n[upsample]\nstride=2\n"
    return (text + "[route]\nlayers=-1,0\n" + head.format("0,1,2")).encode()


def yolo_v3_weights() -> bytes:
    """Return weights for `yolo_v3`: a header, then (filters, channels * size * size) of each."""
    rng = np.random.default_rng(4)
    shapes = [(8, 27), (16, 72), (16, 144), (255, 16), (255, 32), (255, 40)]
    parts = [np.concatenate([np.zeros(n), rng.normal(size=n * m) * m**-0.5]) for n, m in shapes]
    header = np.array([0, 2, 0, 0, 0], "<i4").tobytes()
    return header + np.concatenate(parts).astype("<f4").tobytes()


def _font() -> bytes:
    from PIL import ImageFont

    font: Any = ImageFont.load_default(25)
    return bytes(font.font_bytes)


MADE: dict[str, Callable[[], bytes]] = {
    "super_resolution_0.2.onnx": super_resolution,
    "super_resolution.onnx": super_resolution,
    "resnet50-v2-7.onnx": classifier,
    "yolov3.cfg": yolo_v3,
    "yolov3.weights": yolo_v3_weights,
    "libdarknet2.0.so": bytes,  # networks are read without it
    "coco.names": lambda: "\n".join(f"class {i}" for i in range(80)).encode(),
    "arial.ttf": _font,
    "keyword_spotting_quant.tflite": _shared("kws_ref_model.tflite"),
    "keyword_spotting_int8_6.pyc.npy": _samples,
}
