"""Comparison of IR across variables: `structural_equal` and `structural_hash`.

Two trees are structurally equal when they have the same shape and the same leaves, and their
Vars and Buffers correspond one to one: a Var on the left always meets the same Var on the right.
Names of variables, buffers and blocks do not count, nor does what a function of loops calls
itself, though a module's names do.  A variable that nothing inside binds (it is free) is equal to
itself alone, unless `map_free_vars` is given.
"""

from __future__ import annotations

import hashlib
import struct
from enum import IntEnum
from typing import Any

from slipway.errors import StructuralMismatchError
from slipway.ir.node import Node

_UNIQUE = ("Var", "SizeVar", "Buffer", "IterVar", "relay.Var")
_IGNORED = {
    "Var": ("name",), "SizeVar": ("name",), "Buffer": ("name",),
    "relay.Var": ("name",), "relay.Call": ("span",), "Block": ("name",),
}  # fmt: skip
_SHOWN_CHARACTERS = 200


class _Binds(IntEnum):
    """What a place in a tree binds of the variables that stand there."""

    NOTHING = 0
    ITSELF = 1  # the variable or buffer, and a buffer's own strides and offset
    ALL = 2  # also the variables in a buffer's shape: the caller gives them


# Where variables are bound; in every other place they are read.
_BINDERS = {
    ("For", "loop_var"): _Binds.ITSELF,
    ("Let", "var"): _Binds.ITSELF,
    ("LetStmt", "var"): _Binds.ITSELF,
    ("Allocate", "buffer"): _Binds.ITSELF,
    ("Block", "axes"): _Binds.ITSELF,
    ("IterVar", "var"): _Binds.ITSELF,
    ("CommReducer", "lhs"): _Binds.ITSELF,
    ("CommReducer", "rhs"): _Binds.ITSELF,
    ("Reduce", "axis"): _Binds.ITSELF,
    ("ComputeOp", "axes"): _Binds.ITSELF,
    ("ExternOp", "input_placeholders"): _Binds.ITSELF,
    ("ExternOp", "output_placeholders"): _Binds.ITSELF,
    ("ScanOp", "scan_axis"): _Binds.ITSELF,
    ("ScanOp", "spatial"): _Binds.ITSELF,
    ("TensorIntrin", "buffers"): _Binds.ALL,
    ("PrimFunc", "params"): _Binds.ALL,
    ("PrimFunc", "buffer_map"): _Binds.ALL,
    ("relay.Function", "params"): _Binds.ALL,
    ("relay.Let", "var"): _Binds.ALL,
}
# Pairs of a name and a value, whose order says nothing.
_TABLES = {("Block", "annotations"), ("IRModule", "functions"), ("relay.Function", "attrs")}
_OF_BUFFER = ("data", "strides", "elem_offset")
_Pair = tuple[Any, Any, _Binds]


def structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> bool:
    """Return whether two IR objects (tuples, lists, numbers) are the same up to variable names.

    Free variables are equal to themselves alone, with `map_free_vars` to any of the other side.
    """
    return _Comparison(map_free_vars).difference(lhs, rhs) is None


def assert_structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> None:
    """Raise StructuralMismatchError, which shows the first difference, where two IRs differ."""
    found = _Comparison(map_free_vars).difference(lhs, rhs)
    if found is not None:
        left, right = (_shown(side) for side in found)
        reason = ": a free variable is equal to itself alone" if left == right else ""
        raise StructuralMismatchError(
            f"the two are not structurally equal; the first difference is between "
            f"{left} and {right}{reason}"
        )


def _shown(value: Any) -> str:
    text = f"{value}" if isinstance(value, Node) else f"{value!r}"
    short = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
    return f"{type(value).__name__} {short}"


class _Comparison:
    def __init__(self, map_free_vars: bool) -> None:
        self.outside = _Binds.ALL if map_free_vars else _Binds.NOTHING
        self.forward: dict[int, Node] = {}
        self.backward: dict[int, Node] = {}
        self.known: set[tuple[int, int]] = set()

    def difference(self, lhs: object, rhs: object) -> tuple[Any, Any] | None:
        """Compare with an explicit stack, in order: graphs may be of any depth."""
        stack: list[_Pair] = [(lhs, rhs, self.outside)]
        while stack:
            pair = stack.pop()
            below = self._step(*pair)
            if below is None:
                return pair[:2]
            stack += below[::-1]
        return None

    def _step(self, lhs: Any, rhs: Any, binds: _Binds) -> list[_Pair] | None:
        """Return the pairs that must be equal too, or None if these two differ."""
        if isinstance(lhs, Node):
            return self._nodes(lhs, rhs, binds) if isinstance(rhs, Node) else None
        if isinstance(lhs, (tuple, list)):
            if not isinstance(rhs, (tuple, list)) or len(lhs) != len(rhs):
                return None
            return [(a, b, binds) for a, b in zip(lhs, rhs, strict=True)]
        if isinstance(lhs, dict):
            if not isinstance(rhs, dict) or lhs.keys() != rhs.keys():
                return None
            return [(value, rhs[key], binds) for key, value in lhs.items()]
        return [] if lhs is rhs or leaf_key(lhs) == leaf_key(rhs) else None

    def _nodes(self, lhs: Node, rhs: Node, binds: _Binds) -> list[_Pair] | None:
        if type(lhs) is not type(rhs):
            return None
        if (id(lhs), id(rhs)) in self.known:
            return []
        # One difference anywhere ends the comparison, so that what is under way counts as known.
        self.known.add((id(lhs), id(rhs)))
        kind = lhs.KIND
        if kind in _UNIQUE:
            if id(lhs) in self.forward or id(rhs) in self.backward:
                same = self.forward.get(id(lhs)) is rhs and self.backward.get(id(rhs)) is lhs
                return [] if same else None
            if lhs is not rhs and not binds and kind != "IterVar" and not self._views(lhs, rhs):
                return None
            self.forward[id(lhs)] = rhs
            self.backward[id(rhs)] = lhs
        ignored = _IGNORED.get(kind, ())
        names = [name for name in lhs.FIELDS if name not in ignored]
        names.sort(key=lambda name: (kind, name) not in _BINDERS)  # bound before they are read
        return [
            (_field(lhs, name), _field(rhs, name), self._binds(kind, name, binds)) for name in names
        ]

    def _views(self, lhs: Any, rhs: Any) -> bool:
        """Return whether two buffers, bound nowhere, are over memory that corresponds."""
        return lhs.KIND == "Buffer" and self.forward.get(id(lhs.data)) is rhs.data

    def _binds(self, kind: str, field: str, around: _Binds) -> _Binds:
        """Return what `field` of a node binds, which itself stands where `around` is bound."""
        if self.outside or around == _Binds.ALL:
            return _Binds.ALL
        if kind == "Buffer" and field in _OF_BUFFER:
            return around
        return _BINDERS.get((kind, field), _Binds.NOTHING)


def leaf_key(value: Any) -> Any:
    """Return what identifies a leaf: floats bitwise, arrays by bytes, and True apart from 1."""
    if isinstance(value, float):
        return "float", struct.pack("<d", value)
    if hasattr(value, "tobytes") and hasattr(value, "shape"):
        return "array", str(value.dtype), tuple(value.shape), value.tobytes()
    if isinstance(value, int) and not isinstance(value, bool):
        return "int", int(value)  # a known dimension in an attribute is its number
    return type(value).__name__, value


def structural_hash(value: object, map_free_vars: bool = False) -> int:
    """Return a 64-bit hash, equal for structurally equal objects and stable between runs.

    Free variables count by where they stand: both meanings of `map_free_vars` have one hash.
    """
    del map_free_vars
    return int.from_bytes(_Digest(8, named=False).of(value), "little", signed=True)


def structural_digest(value: object) -> bytes:
    """Return 32 bytes that equal objects of the same exported names share, and no others."""
    return _Digest(32).of(value)


class _Digest:
    def __init__(self, size: int, named: bool = True) -> None:
        self.size = size
        self.named = named  # whether what functions call themselves counts
        self.numbers: dict[int, int] = {}
        self.memo: dict[int, bytes] = {}
        self.keep: list[Any] = []  # ids stay valid while the objects live

    def of(self, value: object) -> bytes:
        """Hash with an explicit stack: what is inside a node before the node itself."""
        stack: list[tuple[Any, bool]] = [(value, False)]
        while stack:
            current, ready = stack.pop()
            if not isinstance(current, Node):
                stack += [(inside, False) for inside in _inside(current)][::-1]
            elif ready:
                self.memo[id(current)] = self._hash(self._parts_of_node(current))
                self.keep.append(current)
            elif id(current) not in self.memo:
                if current.KIND in _UNIQUE:
                    self.numbers.setdefault(id(current), len(self.numbers))
                stack.append((current, True))
                stack += [(field, False) for field in self._fields(current)][::-1]
        return self._value(value)

    def _value(self, value: Any) -> bytes:
        """The hash of a value whose nodes are hashed."""
        if isinstance(value, Node):
            return self.memo[id(value)]
        if isinstance(value, (tuple, list)):
            return self._hash([b"[", *(self._value(item) for item in value)])
        if isinstance(value, dict):
            pairs = ([self._value(key), self._value(value[key])] for key in sorted(value, key=str))
            return self._hash([b"{", *(part for pair in pairs for part in pair)])
        return self._hash([repr(leaf_key(value)).encode()])

    def _parts_of_node(self, node: Node) -> list[bytes]:
        parts = [node.KIND.encode()]
        if node.KIND in _UNIQUE:
            parts.append(b"#%d" % self.numbers[id(node)])
        return parts + [self._value(field) for field in self._fields(node)]

    def _fields(self, node: Node) -> list[Any]:
        ignored = _IGNORED.get(node.KIND, ())
        return [_field(node, n, self.named) for n in node.FIELDS if n not in ignored]

    def _hash(self, parts: list[bytes]) -> bytes:
        return hashlib.blake2b(b"\0".join(parts), digest_size=self.size).digest()


def _field(node: Node, name: str, named: bool = False) -> Any:
    """Return a field of a node, what is a mapping in one order; see `_Digest` for `named`."""
    value: Any = getattr(node, name)
    field = (node.KIND, name)
    if field == ("GlobalVar", "function_type") and not named:
        return None  # what its function says
    if field == ("PrimFunc", "attrs"):
        kept = (pair for pair in value if named or pair[0] != "global_symbol")
        return tuple(sorted(kept, key=lambda pair: str(pair[0])))
    if field == ("PrimFunc", "buffer_map"):
        order = {id(param): number for number, param in enumerate(node.params)}  # type: ignore[attr-defined]
        return tuple(sorted(value, key=lambda pair: order.get(id(pair[0]), len(order))))
    if field in _TABLES:
        pairs = sorted(value, key=lambda pair: str(pair[0]))
        return tuple((key, _plain(held)) for key, held in pairs)
    return value


def _plain(value: Any) -> Any:
    """Return what an IntImm or StringImm that stands as an attribute says."""
    return value.value if getattr(value, "KIND", "") in ("IntImm", "StringImm") else value


def _inside(value: Any) -> list[Any]:
    """What a container holds; the tuples of fields hold few and are never deep."""
    if isinstance(value, (tuple, list)):
        return list(value)
    if isinstance(value, dict):
        return [part for key in sorted(value, key=str) for part in (key, value[key])]
    return []
