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
from inspect import signature
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.errors import SlipwayError
from slipway.ir.field_types import field_checks
from slipway.ir.node import INTEGER_LIKE, NODE_CLASSES, Node
from slipway.ir.visit import post_order

FORMAT_VERSION = 1
MAX_DEPTH = 64  # of tuples, lists and dicts in a field


def save_json(value: Any) -> str:
    """Return `value` (a node, or tuples, lists and dicts of nodes) as JSON text."""
    return json.dumps(_Writer().document(value))


def load_json(text: str) -> Any:
    """Rebuild what `save_json` wrote.

    Raises SlipwayError when the text is not such a document, or names a class of a newer version.
    """
    try:
        document = json.loads(text)
    except RecursionError:
        raise SlipwayError(
            "not a Slipway IR document: its brackets are nested too deeply"
        ) from None
    except (ValueError, TypeError) as error:
        raise SlipwayError(f"not a Slipway IR document: {error}") from error
    parts = document if isinstance(document, dict) else {}
    if not isinstance(parts.get("nodes"), list) or not isinstance(parts.get("arrays"), list):
        raise SlipwayError("not a Slipway IR document: it lists no nodes and arrays")
    if parts.get("slipway_ir") != FORMAT_VERSION:
        raise SlipwayError(
            f"this IR document has format version {parts.get('slipway_ir')!r}; this Slipway reads "
            f"{FORMAT_VERSION}"
        )
    try:
        reader = _Reader(parts["nodes"], parts["arrays"])
        return reader.value(parts.get("root"))
    except SlipwayError:
        raise
    except Exception as error:  # what the constructors of the nodes say to values that do not fit
        raise SlipwayError(
            f"damaged Slipway IR document: {type(error).__name__}: {error}"
        ) from error


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
        for name, cls in INTEGER_LIKE.items():
            if type(value) is cls:
                return ["n", name, *(self._field(part) for part in value.record)]
        raise SlipwayError(f"cannot write a {type(value).__name__} as JSON: {value!r}")


class _Reader:
    def __init__(self, nodes: list[Any], arrays: list[Any]) -> None:
        self.arrays = arrays
        self.nodes: list[Any] = []
        for number, record in enumerate(nodes):
            if not isinstance(record, list) or not record or not isinstance(record[0], str):
                raise _damaged(f"node {number} is not a list that begins with its class")
            name, *fields = record
            cls = NODE_CLASSES.get(name)
            if cls is None:
                raise SlipwayError(f"this IR document uses the unknown node class {name!r}")
            values = [self.value(field) for field in fields]
            if len(values) > len(cls.FIELDS):
                raise _damaged(f"node {number}, {name}, has {len(values)} fields")
            for (field, fits), value in zip(field_checks(cls), values, strict=False):
                if not fits(value):
                    raise _damaged(
                        f"the field {field!r} of node {number}, {name}, cannot be a "
                        f"{type(value).__name__}"
                    )
                if field == "dtype" and not _is_dtype(value, cls):
                    raise _damaged(
                        f"the field 'dtype' of node {number}, {name}, is {value!r}, which is no "
                        "dtype such as 'float32' or 'int8x16'"
                    )
            self.nodes.append(cls(*values))

    def value(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, dict):
            raise _damaged("it has an object where a value is expected")
        if not isinstance(value, list):
            return value
        if depth > MAX_DEPTH:
            raise _damaged(f"values are nested more than {MAX_DEPTH} deep")
        tag, *items = value or [None]
        if tag == "t":
            return tuple(self.value(item, depth + 1) for item in items)
        if tag == "l":
            return [self.value(item, depth + 1) for item in items]
        if tag == "n" and items and isinstance(items[0], str) and items[0] in INTEGER_LIKE:
            return INTEGER_LIKE[items[0]](*(self.value(item, depth + 1) for item in items[1:]))
        if tag == "d" and all(isinstance(pair, list) and len(pair) == 2 for pair in items):
            return {self.value(k, depth + 1): self.value(v, depth + 1) for k, v in items}
        if tag == "f" and len(items) == 1 and isinstance(items[0], str):
            return float.fromhex(items[0])
        if tag == "@" and len(items) == 1:
            return _at(self.nodes, items[0], "node")
        if tag == "a" and len(items) == 1:
            return _array(_at(self.arrays, items[0], "array"))
        raise _damaged(f"{str(value)[:80]} is no value")


def _at(known: list[Any], index: Any, what: str) -> Any:
    if type(index) is not int or not 0 <= index < len(known):
        raise _damaged(f"it refers to {what} {index!r}, and {len(known)} come before")
    return known[index]


def _is_dtype(value: Any, cls: type[Node]) -> bool:
    """Return whether a field "dtype" may hold `value`; some attributes are "" by default."""
    if not isinstance(value, str):
        return True  # its kind fits the field already
    if value == "":
        return bool(signature(cls).parameters["dtype"].default == "")
    try:
        dtypes.parse(value)
    except ValueError:
        return False
    return True


def _array(record: Any) -> np.ndarray[Any, Any]:
    if not isinstance(record, list) or len(record) != 3:
        raise _damaged("an array is not its dtype, shape and data")
    dtype, shape, data = record
    made = np.dtype(dtype)
    if made.hasobject or not all(type(d) is int and d >= 0 for d in shape):
        raise _damaged(f"an array has the dtype {dtype!r} and the shape {shape!r}")
    return np.frombuffer(base64.b64decode(data), dtype=made).reshape(shape).copy()


def _damaged(why: str) -> SlipwayError:
    return SlipwayError(f"damaged Slipway IR document: {why}")
