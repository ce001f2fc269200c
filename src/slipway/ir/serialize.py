"""`save_json` and `load_json`: any IR object as JSON text, and back.

The format is ``{"slipway_ir": 1, "root": i, "nodes": [...], "arrays": [...]}``.  Each node is
``["ClassName", field, ...]``; a field is a plain JSON value or a tagged list:
``["@", i]`` node i, ``["t", ...]`` tuple, ``["l", ...]`` list, ``["d", [k, v], ...]`` dict,
``["f", "hex"]`` float (exact), ``["a", i]`` NumPy array i (dtype, shape, base64 bytes).
Shared nodes are written once, so identity of Vars and Buffers survives.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from slipway.errors import SlipwayError
from slipway.ir.node import NODE_CLASSES, Node
from slipway.ir.visit import post_order

FORMAT_VERSION = 1


def save_json(value: Any) -> str:
    """Return `value` (a node, or tuples, lists and dicts of nodes) as JSON text."""
    return json.dumps(_Writer().document(value))


def load_json(text: str) -> Any:
    """Rebuild what `save_json` wrote.

    Raises SlipwayError when the text is not such a document, or names a class of a newer version.
    """
    try:
        document = json.loads(text)
        version = document["slipway_ir"]
        reader = _Reader(document["nodes"], document["arrays"])
    except (ValueError, KeyError, TypeError) as error:
        raise SlipwayError(f"not a Slipway IR document: {error}") from error
    if version != FORMAT_VERSION:
        raise SlipwayError(
            f"this IR document has format version {version}; this Slipway reads {FORMAT_VERSION}"
        )
    try:
        return reader.value(document["root"])
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise SlipwayError(f"damaged Slipway IR document: {error}") from error


class _Writer:
    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.arrays: list[Any] = []
        self.index: dict[int, int] = {}

    def document(self, value: Any) -> dict[str, Any]:
        root = self.value(value)
        return {
            "slipway_ir": FORMAT_VERSION,
            "root": root,
            "nodes": self.nodes,
            "arrays": self.arrays,
        }

    def value(self, value: Any) -> Any:
        if isinstance(value, Node):
            for node in post_order(value):
                if id(node) not in self.index:
                    fields = [self._field(getattr(node, name)) for name in node.FIELDS]
                    self.index[id(node)] = len(self.nodes)
                    self.nodes.append([node.KIND, *fields])
            return ["@", self.index[id(value)]]
        return self._field(value)

    def _field(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return ["f", value.hex()]
        if isinstance(value, Node):
            return ["@", self.index[id(value)]] if id(value) in self.index else self.value(value)
        if isinstance(value, tuple):
            return ["t", *(self._field(item) for item in value)]
        if isinstance(value, list):
            return ["l", *(self._field(item) for item in value)]
        if isinstance(value, dict):
            return ["d", *([self._field(k), self._field(v)] for k, v in value.items())]
        if isinstance(value, np.ndarray):
            data = base64.b64encode(np.asarray(value, order="C").tobytes()).decode()
            self.arrays.append([value.dtype.str, list(value.shape), data])
            return ["a", len(self.arrays) - 1]
        if isinstance(value, np.generic):
            return self._field(value.item())
        raise SlipwayError(f"cannot write a {type(value).__name__} as JSON: {value!r}")


class _Reader:
    def __init__(self, nodes: list[Any], arrays: list[Any]) -> None:
        self.arrays = arrays
        self.nodes: list[Any] = []
        for record in nodes:
            name, *fields = record
            cls = NODE_CLASSES.get(name)
            if cls is None:
                raise SlipwayError(f"this IR document uses the unknown node class {name!r}")
            self.nodes.append(cls(*(self.value(field) for field in fields)))

    def value(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        tag, *items = value
        if tag == "@":
            return self.nodes[items[0]]
        if tag == "t":
            return tuple(self.value(item) for item in items)
        if tag == "l":
            return [self.value(item) for item in items]
        if tag == "d":
            return {self.value(k): self.value(v) for k, v in items}
        if tag == "f":
            return float.fromhex(items[0])
        if tag == "a":
            dtype, shape, data = self.arrays[items[0]]
            return np.frombuffer(base64.b64decode(data), dtype=dtype).reshape(shape).copy()
        raise SlipwayError(f"damaged Slipway IR document: unknown tag {tag!r}")
