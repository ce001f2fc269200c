"""Comparison of IR across variables: `structural_equal` and `structural_hash`.

Two trees are structurally equal when they have the same shape and the same leaves, and their
Vars and Buffers correspond one to one: a Var on the left always meets the same Var on the right.
Names of variables and buffers do not count.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any

from slipway.ir.node import Node

_UNIQUE = ("Var", "SizeVar", "Buffer", "IterVar", "relay.Var")
_IGNORED = {
    "Var": ("name",), "SizeVar": ("name",), "Buffer": ("name",),
    "relay.Var": ("name",), "relay.Call": ("span",),
}  # fmt: skip


def structural_equal(lhs: Any, rhs: Any) -> bool:
    """Tell whether two IR objects (or tuples, lists, numbers) are the same up to variable names."""
    return _Comparison().equal(lhs, rhs)


class _Comparison:
    def __init__(self) -> None:
        self.forward: dict[int, Node] = {}
        self.backward: dict[int, Node] = {}
        self.known: set[tuple[int, int]] = set()

    def equal(self, lhs: Any, rhs: Any) -> bool:
        if isinstance(lhs, Node):
            return isinstance(rhs, Node) and self._nodes(lhs, rhs)
        if isinstance(lhs, (tuple, list)):
            return (
                isinstance(rhs, (tuple, list))
                and len(lhs) == len(rhs)
                and all(self.equal(a, b) for a, b in zip(lhs, rhs, strict=True))
            )
        if isinstance(lhs, dict):
            return (
                isinstance(rhs, dict)
                and lhs.keys() == rhs.keys()
                and all(self.equal(value, rhs[key]) for key, value in lhs.items())
            )
        return lhs is rhs or leaf_key(lhs) == leaf_key(rhs)

    def _nodes(self, lhs: Node, rhs: Node) -> bool:
        if type(lhs) is not type(rhs):
            return False
        if (id(lhs), id(rhs)) in self.known:
            return True
        kind = lhs.KIND
        if kind in _UNIQUE:
            if id(lhs) in self.forward or id(rhs) in self.backward:
                return self.forward.get(id(lhs)) is rhs and self.backward.get(id(rhs)) is lhs
            self.forward[id(lhs)] = rhs
            self.backward[id(rhs)] = lhs
        ignored = _IGNORED.get(kind, ())
        same = all(
            self.equal(getattr(lhs, name), getattr(rhs, name))
            for name in lhs.FIELDS
            if name not in ignored
        )
        if same:
            self.known.add((id(lhs), id(rhs)))
        return same


def leaf_key(value: Any) -> Any:
    """Return what identifies a leaf: floats bitwise, arrays by bytes, and True apart from 1."""
    if isinstance(value, float):
        return "float", struct.pack("<d", value)
    if hasattr(value, "tobytes") and hasattr(value, "shape"):
        return "array", str(value.dtype), tuple(value.shape), value.tobytes()
    return type(value).__name__, value


def structural_hash(value: Any) -> int:
    """Return a 64-bit hash, equal for structurally equal objects and stable between runs."""
    return int.from_bytes(_Digest(8).of(value), "little", signed=True)


def structural_digest(value: Any) -> bytes:
    """Return 32 bytes that structurally equal objects share, and no others: a name on disk."""
    return _Digest(32).of(value)


class _Digest:
    def __init__(self, size: int) -> None:
        self.size = size
        self.numbers: dict[int, int] = {}
        self.memo: dict[int, bytes] = {}
        self.keep: list[Any] = []  # ids stay valid while the objects live

    def of(self, value: Any) -> bytes:
        if isinstance(value, Node):
            known = self.memo.get(id(value))
            if known is None:
                known = self._hash(self._parts_of_node(value))
                self.memo[id(value)] = known
                self.keep.append(value)
            return known
        if isinstance(value, (tuple, list)):
            return self._hash([b"[", *(self.of(item) for item in value)])
        if isinstance(value, dict):
            pairs = ([self.of(key), self.of(value[key])] for key in sorted(value, key=str))
            return self._hash([b"{", *(part for pair in pairs for part in pair)])
        return self._hash([repr(leaf_key(value)).encode()])

    def _parts_of_node(self, node: Node) -> list[bytes]:
        kind = node.KIND
        parts = [kind.encode()]
        if kind in _UNIQUE:
            parts.append(b"#%d" % self.numbers.setdefault(id(node), len(self.numbers)))
        ignored = _IGNORED.get(kind, ())
        parts += [self.of(getattr(node, name)) for name in node.FIELDS if name not in ignored]
        return parts

    def _hash(self, parts: list[bytes]) -> bytes:
        return hashlib.blake2b(b"\0".join(parts), digest_size=self.size).digest()
