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
    """Return whether two IR objects (tuples, lists, numbers) are the same up to variable names."""
    return _Comparison().equal(lhs, rhs)


class _Comparison:
    def __init__(self) -> None:
        self.forward: dict[int, Node] = {}
        self.backward: dict[int, Node] = {}
        self.known: set[tuple[int, int]] = set()

    def equal(self, lhs: Any, rhs: Any) -> bool:
        """Compare with an explicit stack, in order: graphs may be of any depth."""
        stack = [(lhs, rhs)]
        while stack:
            below = self._step(*stack.pop())
            if below is None:
                return False
            stack += below[::-1]
        return True

    def _step(self, lhs: Any, rhs: Any) -> list[tuple[Any, Any]] | None:
        """Return the pairs that must be equal too, or None if these two differ."""
        if isinstance(lhs, Node):
            return self._nodes(lhs, rhs) if isinstance(rhs, Node) else None
        if isinstance(lhs, (tuple, list)):
            if not isinstance(rhs, (tuple, list)) or len(lhs) != len(rhs):
                return None
            return list(zip(lhs, rhs, strict=True))
        if isinstance(lhs, dict):
            if not isinstance(rhs, dict) or lhs.keys() != rhs.keys():
                return None
            return [(value, rhs[key]) for key, value in lhs.items()]
        return [] if lhs is rhs or leaf_key(lhs) == leaf_key(rhs) else None

    def _nodes(self, lhs: Node, rhs: Node) -> list[tuple[Any, Any]] | None:
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
            self.forward[id(lhs)] = rhs
            self.backward[id(rhs)] = lhs
        ignored = _IGNORED.get(kind, ())
        names = [name for name in lhs.FIELDS if name not in ignored]
        return [(getattr(lhs, name), getattr(rhs, name)) for name in names]


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
                stack += [(field, False) for field in _fields(current)][::-1]
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
        return parts + [self._value(field) for field in _fields(node)]

    def _hash(self, parts: list[bytes]) -> bytes:
        return hashlib.blake2b(b"\0".join(parts), digest_size=self.size).digest()


def _fields(node: Node) -> list[Any]:
    ignored = _IGNORED.get(node.KIND, ())
    return [getattr(node, name) for name in node.FIELDS if name not in ignored]


def _inside(value: Any) -> list[Any]:
    """What a container holds; the tuples of fields hold few and are never deep."""
    if isinstance(value, (tuple, list)):
        return list(value)
    if isinstance(value, dict):
        return [part for key in sorted(value, key=str) for part in (key, value[key])]
    return []
