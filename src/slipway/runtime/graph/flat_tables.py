"""The bytes of ``graph.bin``: flat tables of numbers that the C executor uses without parsing.

::

    header   16 x u32: "SLWG", version, total bytes, nodes, entries, inputs, outputs, args, dims,
             string bytes, storages, named outputs, arena bytes (u64), arenas, 0
    dims     i64 each                           extents of all shapes
    storages u64 offset, u64 bytes              in the arena, offsets are multiples of 64
    nodes    u32 name, function, first arg, number of args, first entry, number of outputs
             name and function are offsets into strings; function 0xffffffff: an input
    entries  u8 dtype code, u8 bits, u16 lanes, u32 ndim, u32 first dim, u32 storage
    arenas   u32 kind of device, u32 image, u64 first byte in the arena of each device's part; none
             where all tensors are on one device.  A part is an image of the device where `image` is
             not 0: so many texels in a row, with the highest bit of float16
    args     u32 entry each                     of one node: its inputs, then its outputs
    inputs   u32 node each
    outputs  u32 entry each
    names    u32 offset into strings of each output's name; of all outputs, or none
    strings  NUL-terminated

Version 2 is of models with open dimensions (`slipway.runtime.graph.graph_sizes`).  Its dims are
upper bounds, its header has four words more, and three tables come after the entries::

    header   4 x u32                            sizes, open dims, words, 0
    sizes    u32 name, u32 teller, i64 low, i64 high
    open     u32 dim, u32 first word, u32 words, u32 0
    words    i64 each                           of the formulas

In version 3 a size may have a teller, one more than an entry: its value is the size from then on.
Version 4 is of models with images.

An entry is one output of one node: node n's output i is entry ``n.first_entry + i``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

VERSION = 1
OPEN_VERSION = 2  # of models with open dimensions
TOLD_VERSION = 3  # of those that tell some of them as they run
IMAGE_VERSION = 4  # of those with images of a GPU
NONE = 0xFFFFFFFF  # the function of a node that is an input
MAX_RANK = 16  # of a tensor at run time: crt/include/slipway/tensor.h
_MAGIC = 0x47574C53
_HEADER = struct.Struct("<12IQII")
_OPEN_HEADER = struct.Struct("<4I")

Row = tuple[int, ...]


@dataclass
class FlatTables:
    """The numbers of each table, row by row, and the bytes of the names."""

    version: int = VERSION
    arena_bytes: int = 0
    dims: list[int] = field(default_factory=list)
    storages: list[Row] = field(default_factory=list)
    nodes: list[Row] = field(default_factory=list)
    entries: list[Row] = field(default_factory=list)
    sizes: list[Row] = field(default_factory=list)
    open_dims: list[Row] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    arenas: list[Row] = field(default_factory=list)
    args: list[int] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    names: list[int] = field(default_factory=list)
    strings: bytes = b""

    def pack(self) -> bytes:
        """Return the bytes of the file."""
        more = b""
        if self.version >= OPEN_VERSION:
            more = _OPEN_HEADER.pack(len(self.sizes), len(self.open_dims), len(self.words), 0)
        body = _numbers("q", self.dims) + _rows("<QQ", self.storages)
        body += _rows("<6I", self.nodes) + _rows("<BBHIII", self.entries)
        body += _rows("<IIqq", self.sizes) + _rows("<4I", self.open_dims)
        body += _numbers("q", self.words) + _rows("<IIQ", self.arenas)
        body += _numbers("I", [*self.args, *self.inputs, *self.outputs, *self.names])
        body += self.strings
        header = _HEADER.pack(
            _MAGIC, self.version, _HEADER.size + len(more) + len(body), len(self.nodes),
            len(self.entries), len(self.inputs), len(self.outputs), len(self.args), len(self.dims),
            len(self.strings), len(self.storages), len(self.names), self.arena_bytes,
            len(self.arenas), 0,
        )  # fmt: skip
        return header + more + body

    @classmethod
    def unpack(cls, data: memoryview) -> FlatTables:
        """Read a file; ValueError or struct.error where its tables do not fill it."""
        header = _HEADER.unpack_from(data)
        magic, version, size_bytes = header[:3]
        if magic != _MAGIC:
            raise ValueError("they do not begin as graph tables do")
        if not VERSION <= version <= IMAGE_VERSION:
            raise ValueError(f"version {version}, and this Slipway reads 1 to {IMAGE_VERSION}")
        if size_bytes != len(data):
            raise ValueError("the size is not the stated one")
        nodes, entries, inputs, outputs, args, dims, string_bytes, storages, names = header[3:12]
        at = _HEADER.size
        sizes, open_dims, words = 0, 0, 0
        if version >= OPEN_VERSION:
            sizes, open_dims, words, _ = _OPEN_HEADER.unpack_from(data, at)
            at += _OPEN_HEADER.size

        def rows(form: str, count: int) -> list[Row]:
            nonlocal at
            end = at + struct.calcsize(form) * count
            if end > len(data):
                raise ValueError("truncated")
            found = list(struct.iter_unpack(form, data[at:end]))
            at = end
            return found

        def numbers(form: str, count: int) -> list[int]:
            return [row[0] for row in rows(f"<{form}", count)]

        tables = cls(  # the arguments are read in the order of the file
            version, header[12], numbers("q", dims), rows("<QQ", storages), rows("<6I", nodes),
            rows("<BBHIII", entries), rows("<IIqq", sizes), rows("<4I", open_dims),
            numbers("q", words), rows("<IIQ", header[13]), numbers("I", args),
            numbers("I", inputs), numbers("I", outputs), numbers("I", names),
        )  # fmt: skip
        if at + string_bytes != len(data):
            raise ValueError("the tables do not fill the stated size")
        tables.strings = bytes(data[at:])
        tables.check_parts()
        return tables

    def check_parts(self) -> None:
        """Raise ValueError where a row has what lies beyond another table, or is another row's.

        Parts of tables may not be counted twice: what is built would be larger than the file.
        """
        made = sum(node[5] for node in self.nodes)
        if made != len(self.entries):  # before a list of that length is built
            raise ValueError(f"{made} outputs of nodes, but {len(self.entries)} entries")
        if any(first + ndim > len(self.dims) for _, _, _, ndim, first, _ in self.entries):
            raise ValueError("the shape of an entry lies beyond the dims")
        if any(ndim > MAX_RANK for _, _, _, ndim, _, _ in self.entries):
            raise ValueError(f"an entry has more than {MAX_RANK} dimensions")
        kernels = [node for node in self.nodes if node[1] != NONE]
        if sum(count for _, _, _, count, _, _ in kernels) > len(self.args):
            raise ValueError("nodes have more arguments than the table")
        if any(
            first + count > len(self.args) or outputs > count
            for _, _, first, count, _, outputs in kernels
        ):
            raise ValueError("the arguments of a node lie beyond the table")
        if sum(count for _, _, count, _ in self.open_dims) > len(self.words):
            raise ValueError("formulas have more words than the table")


def _numbers(form: str, numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}{form}", *numbers)


def _rows(form: str, rows: Iterable[Row]) -> bytes:
    pack = struct.Struct(form).pack
    return b"".join(pack(*row) for row in rows)


class WrittenNames:
    """The names of a file that is made, each once."""

    def __init__(self) -> None:
        self.strings = bytearray()
        self._offsets: dict[str, int] = {}

    def offset(self, text: str) -> int:
        """Return where a name begins, which is added where it is new."""
        if text not in self._offsets:
            self._offsets[text] = len(self.strings)
            self.strings.extend(text.encode() + b"\0")
        return self._offsets[text]


class ReadNames:
    """The names of a file, by where they begin in its strings."""

    def __init__(self, strings: bytes) -> None:
        self._strings = strings
        self._known: dict[int, str] = {}

    def at(self, offset: int) -> str:
        """Return the name that begins at an offset; ValueError inside of one."""
        strings = self._strings
        if offset not in self._known:
            if offset and strings[offset - 1]:
                raise ValueError("a name begins inside another")
            self._known[offset] = strings[offset : strings.index(b"\0", offset)].decode()
        return self._known[offset]
