"""A compiled model's graph: which functions run, in which order, over which tensors.

`GraphTables` is the one form in memory.  It reads and writes the classic graph JSON (for people
and tools) and ``graph.bin``, which `slipway.runtime.graph.flat_tables` describes byte by byte.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slipway import dtypes
from slipway.errors import ArtifactError
from slipway.runtime.graph.flat_tables import (
    IMAGE_VERSION,
    MAX_RANK,
    NONE,
    OPEN_VERSION,
    TOLD_VERSION,
    VERSION,
    FlatTables,
    ReadNames,
    Row,
    WrittenNames,
)
from slipway.runtime.graph.graph_sizes import OpenAxis, OpenSize, check_sizes, from_words, to_words

NO_OPERATION = "__nop"  # classic name of a reshape in place
COPY = "__copy"  # classic name of a copy from one device to another, which the executor does
_ALIGNMENT = 64
_DEVICE_ALIGNMENT = 512  # what every driver takes as the beginning of a tensor
MAX_EXTENT = 1 << 47


@dataclass(frozen=True)
class GraphEntry:
    """One tensor: its type, and the storage it lies in."""

    shape: tuple[int, ...]
    dtype: str
    storage: int

    @property
    def size_bytes(self) -> int:
        """Bytes of the tensor."""
        return math.prod(self.shape) * dtypes.bytes_of(self.dtype)


@dataclass(frozen=True)
class GraphNode:
    """One step: an input of the model (`function` None), or a call of a compiled function.

    `inputs` are (node, output) pairs.
    """

    name: str
    function: str | None
    inputs: tuple[tuple[int, int], ...]
    num_outputs: int = 1
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Storage:
    """A piece of the arena: `offset` and `size` in bytes."""

    offset: int
    size: int


@dataclass(frozen=True)
class Arena:
    """A device's part of the arena, from byte `begin` on; `device_type` is DLPack's number.

    It is an image of the device where `texels` is not 0: so many in a row, of four floats
    of `bits` each.
    """

    device_type: int
    begin: int
    texels: int = 0
    bits: int = 32


@dataclass(frozen=True)
class GraphTables:
    """A model's graph.

    `nodes` in the order they run; `entries` of all nodes one after the other; `inputs` are node
    numbers (parameters included); `outputs` are (node, output) pairs; `storages` may be left empty:
    then every storage gets its own place.  `output_names` are those of all outputs, or none.
    `arenas` is empty where one device has all tensors.
    Where dimensions are open, shapes have their upper bounds, and `open_dims` say what they are.
    """

    nodes: tuple[GraphNode, ...]
    entries: tuple[GraphEntry, ...]
    inputs: tuple[int, ...]
    outputs: tuple[tuple[int, int], ...]
    storages: tuple[Storage, ...] = ()
    arena_bytes: int = 0
    output_names: tuple[str, ...] = ()
    open_sizes: tuple[OpenSize, ...] = ()
    open_dims: tuple[OpenAxis, ...] = ()
    arenas: tuple[Arena, ...] = ()

    def __post_init__(self) -> None:
        _check(self)
        if not self.storages:
            storages, total = _storages_apart(self.entries)
            object.__setattr__(self, "storages", storages)
            object.__setattr__(self, "arena_bytes", total)

    @property
    def first_entries(self) -> list[int]:
        """For each node the number of its first entry, and at the end the number of entries."""
        starts = [0]
        for node in self.nodes:
            starts.append(starts[-1] + node.num_outputs)
        return starts

    def entry(self, node: int, output: int = 0) -> GraphEntry:
        """Return the tensor that is output `output` of node `node`."""
        return self.entries[self.first_entries[node] + output]

    def functions(self) -> list[str]:
        """Return the names of the compiled functions that the graph calls, each once."""
        own = (None, NO_OPERATION, COPY)
        called = (node.function for node in self.nodes if node.function not in own)
        return list(dict.fromkeys(name for name in called if name is not None))

    def device_type(self, entry: GraphEntry) -> int:
        """Return the kind of device that a tensor of several devices' graph lies on."""
        offset = self.storages[entry.storage].offset
        return max((a for a in self.arenas if a.begin <= offset), key=_begin).device_type

    # Classic JSON.

    def to_json(self, kind: int = 1) -> str:
        """Return the classic graph JSON; a graph without `arenas` is on a device of `kind`."""
        starts, names = self.first_entries, self.output_names
        nodes = [_node_to_json(node) for node in self.nodes]
        kinds = [self.device_type(entry) if self.arenas else kind for entry in self.entries]
        document = {
            "nodes": nodes,
            "arg_nodes": list(self.inputs),
            "heads": [[node, output, 0] for node, output in self.outputs],
            "attrs": {
                "dltype": ["list_str", [entry.dtype for entry in self.entries]],
                "device_index": ["list_int", kinds],
                "storage_id": ["list_int", [entry.storage for entry in self.entries]],
                "shape": ["list_shape", [list(entry.shape) for entry in self.entries]],
                **({"output_names": ["list_str", list(names)]} if names else {}),
                **(_open_to_json(self) if self.open_dims else {}),
                **_images_to_json(self),
            },
            "node_row_ptr": starts,
        }
        return json.dumps(document, indent=1)

    @classmethod
    def from_json(cls, text: str) -> GraphTables:
        """Read classic graph JSON; ArtifactError if it is not that."""
        try:
            return _from_json(json.loads(text))
        except (
            KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError,
            RecursionError,
        ) as error:  # fmt: skip
            raise ArtifactError(
                f"the graph cannot be read: {error!r}. It must be the JSON that get_graph_json() "
                "of a compiled model returns."
            ) from error

    # Flat tables.

    def to_binary(self) -> bytes:
        """Return graph.bin."""
        return _to_binary(self)

    @classmethod
    def from_binary(cls, data: bytes | memoryview) -> GraphTables:
        """Read graph.bin; ArtifactError if it is damaged."""
        try:
            return _from_binary(memoryview(data).cast("B"))
        except (struct.error, IndexError, ValueError, KeyError, OverflowError) as error:
            raise ArtifactError(
                f"the model's graph tables are damaged ({error}). Export the model again, and copy "
                "it in binary mode."
            ) from error


def _begin(arena: Arena) -> int:
    return arena.begin


def _check(tables: GraphTables) -> None:
    if any(node.num_outputs < 0 for node in tables.nodes):
        raise ValueError("a node has a negative number of outputs")
    starts = tables.first_entries
    if starts[-1] != len(tables.entries):
        raise ValueError(f"{starts[-1]} outputs of nodes, but {len(tables.entries)} entries")
    for index, node in enumerate(tables.nodes):
        for source, output in node.inputs:
            if not 0 <= source < index or not 0 <= output < tables.nodes[source].num_outputs:
                raise ValueError(f"node {node.name!r} reads output {output} of node {source}")
    if any(not 0 <= n < len(tables.nodes) for n in tables.inputs):
        raise ValueError("an input is no node")
    if len(tables.output_names) not in (0, len(tables.outputs)):
        raise ValueError(f"{len(tables.output_names)} names of {len(tables.outputs)} outputs")
    if any(not 0 <= n < len(tables.nodes) for n, _ in tables.outputs):
        raise ValueError("an output is of no node")
    for index in tables.inputs:
        if tables.nodes[index].function is not None:
            raise ValueError(f"input {tables.nodes[index].name!r} is not an input node")
    for source, output in tables.outputs:
        if not 0 <= output < tables.nodes[source].num_outputs:
            raise ValueError(f"the graph returns output {output} of node {source}")
    # Without a list of storages there are at most as many as entries.
    storages = len(tables.storages) or len(tables.entries)
    for entry in tables.entries:
        if not 0 <= entry.storage < storages:
            raise ValueError(f"an entry lies in storage {entry.storage} of {storages}")
        if len(entry.shape) > MAX_RANK or any(not 0 <= d <= MAX_EXTENT for d in entry.shape):
            raise ValueError(f"an entry has the shape {entry.shape}")

    check_sizes([entry.shape for entry in tables.entries], tables.open_sizes, tables.open_dims)


def _open_to_json(tables: GraphTables) -> dict[str, Any]:
    return {
        "open_sizes": ["list_size", [s.to_json() for s in tables.open_sizes]],
        "open_dims": [
            "list_dim", [[d.entry, d.axis, list(d.formula)] for d in tables.open_dims]
        ],
    }  # fmt: skip


def _images_to_json(tables: GraphTables) -> dict[str, Any]:
    """Return which storages are images: [storage, texels of a row, bits of a number]."""
    images = [
        [number, arena.texels, arena.bits]
        for number, storage in enumerate(tables.storages)
        for arena in tables.arenas
        if arena.texels and arena.begin == storage.offset
    ]
    return {"images": ["list_image", images]} if images else {}


def _storages_by_device(
    entries: Sequence[GraphEntry], kinds: Sequence[int], images: Mapping[int, tuple[int, int]]
) -> tuple[tuple[Storage, ...], int, tuple[Arena, ...]]:
    """Return storages apart, those of one kind of device after one another, images at the end."""
    kind_of = {entry.storage: kind for entry, kind in zip(entries, kinds, strict=True)}
    apart, _ = _storages_apart(entries)
    placed, arenas, offset = list(apart), [], 0
    for kind in sorted(set(kind_of.values())):
        arenas.append(Arena(kind, offset))
        for index, storage in enumerate(apart):
            if kind_of.get(index, 1) == kind and index not in images:
                placed[index] = Storage(offset, storage.size)
                offset += -(-storage.size // _DEVICE_ALIGNMENT) * _DEVICE_ALIGNMENT
    for index, (texels, bits) in images.items():
        arenas.append(Arena(kind_of[index], offset, texels, bits))
        placed[index] = Storage(offset, apart[index].size)
        offset += -(-apart[index].size // _DEVICE_ALIGNMENT) * _DEVICE_ALIGNMENT
    return tuple(placed), offset, tuple(arenas)


def _storages_apart(entries: Sequence[GraphEntry]) -> tuple[tuple[Storage, ...], int]:
    sizes = [0] * (max((entry.storage for entry in entries), default=-1) + 1)
    for entry in entries:
        sizes[entry.storage] = max(sizes[entry.storage], entry.size_bytes)
    storages: list[Storage] = []
    offset = 0
    for size in sizes:
        storages.append(Storage(offset, size))
        offset += (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
    return tuple(storages), offset


def _node_to_json(node: GraphNode) -> dict[str, Any]:
    made: dict[str, Any] = {
        "op": "null" if node.function is None else "tvm_op",
        "name": node.name,
        "inputs": [[source, output, 0] for source, output in node.inputs],
    }
    if node.function is not None:
        made["attrs"] = {
            "num_outputs": str(node.num_outputs),
            "num_inputs": str(len(node.inputs)),
            "flatten_data": "0",
            "func_name": node.function,
            **{key: value for key, value in node.attrs.items() if key not in _OWN_ATTRS},
        }
    return made


_OWN_ATTRS = ("num_outputs", "num_inputs", "flatten_data", "func_name")


def _node_from_json(made: Mapping[str, Any]) -> GraphNode:
    attrs = dict(made.get("attrs", {}))
    function = None if made["op"] == "null" else str(attrs["func_name"])
    f"{made['name']}{function}".encode()  # a ValueError where a name is no text
    inputs = tuple((int(item[0]), int(item[1])) for item in made["inputs"])
    outputs = int(attrs.get("num_outputs", 1))
    rest = {key: value for key, value in attrs.items() if key not in _OWN_ATTRS}
    return GraphNode(str(made["name"]), function, inputs, outputs, rest)


def _from_json(document: Mapping[str, Any]) -> GraphTables:
    attrs = document["attrs"]
    starts = [0]  # of each node, the number of its first entry
    for node in document["nodes"]:
        starts.append(starts[-1] + int(node.get("attrs", {}).get("num_outputs", 1)))
    for number, node in enumerate(document["nodes"]):
        if str(node.get("attrs", {}).get("flatten_data", "0")) == "0":
            continue  # else the function takes tensors of one dimension: so must they be
        used = [starts[int(item[0])] + int(item[1]) for item in node["inputs"]]
        for entry in (*used, *range(starts[number], starts[number + 1])):
            if len(attrs["shape"][1][entry]) != 1:
                raise ValueError("flatten_data of tensors with other than one dimension")
    listed = zip(attrs["shape"][1], attrs["dltype"][1], attrs["storage_id"][1], strict=True)
    entries = tuple(
        GraphEntry(tuple(int(extent) for extent in shape), dtypes.canonical(dtype), int(storage))
        for shape, dtype, storage in listed
    )
    kinds = [int(kind) for kind in attrs.get("device_index", ("", ()))[1]]
    storages: tuple[Storage, ...] = ()
    arenas: tuple[Arena, ...] = ()
    arena_bytes = 0
    if set(kinds) - {1}:
        told = attrs.get("images", ("", ()))[1]
        images = {int(number): (int(texels), int(bits)) for number, texels, bits in told}
        storages, arena_bytes, arenas = _storages_by_device(entries, kinds, images)
    return GraphTables(
        nodes=tuple(_node_from_json(node) for node in document["nodes"]),
        entries=entries,
        storages=storages,
        arena_bytes=arena_bytes,
        arenas=arenas,
        inputs=tuple(int(index) for index in document["arg_nodes"]),
        outputs=tuple((int(head[0]), int(head[1])) for head in document["heads"]),
        output_names=tuple(str(name) for name in attrs.get("output_names", ("", ()))[1]),
        open_sizes=tuple(
            OpenSize(str(name), *map(int, numbers))
            for name, *numbers in attrs.get("open_sizes", ("", ()))[1]
        ),
        open_dims=tuple(
            OpenAxis(int(entry), int(axis), tuple(formula))
            for entry, axis, formula in attrs.get("open_dims", ("", ()))[1]
        ),
    )


def _version(tables: GraphTables) -> int:
    if any(arena.texels for arena in tables.arenas):
        return IMAGE_VERSION
    if any(size.teller is not None for size in tables.open_sizes):
        return TOLD_VERSION
    return OPEN_VERSION if tables.open_dims else VERSION


_HALF_TEXELS = 1 << 31  # of an image of float16, in the table of arenas


def _image_word(arena: Arena) -> int:
    return arena.texels | (_HALF_TEXELS if arena.texels and arena.bits == 16 else 0)


def _arena(kind: int, image: int, begin: int) -> Arena:
    return Arena(kind, begin, image & ~_HALF_TEXELS, 16 if image & _HALF_TEXELS else 32)


def _to_binary(tables: GraphTables) -> bytes:
    written = WrittenNames()
    starts = tables.first_entries
    flat = FlatTables(_version(tables), tables.arena_bytes)
    flat.storages = [(s.offset, s.size) for s in tables.storages]
    flat.arenas = [(a.device_type, _image_word(a), a.begin) for a in tables.arenas]
    first_dims = []
    for entry in tables.entries:
        code, bits, lanes = dtypes.parse(entry.dtype)
        first_dims.append(len(flat.dims))
        kind = dtypes.DLPACK_CODE[code], bits, lanes
        flat.entries.append((*kind, len(entry.shape), first_dims[-1], entry.storage))
        flat.dims += entry.shape
    for index, node in enumerate(tables.nodes):
        first_arg = len(flat.args)
        if node.function is not None:
            flat.args += [starts[source] + output for source, output in node.inputs]
            flat.args += range(starts[index], starts[index + 1])
        function = NONE if node.function is None else written.offset(node.function)
        count = len(flat.args) - first_arg
        flat.nodes.append(
            (written.offset(node.name), function, first_arg, count, starts[index], node.num_outputs)
        )
    flat.inputs = list(tables.inputs)
    flat.outputs = [starts[source] + output for source, output in tables.outputs]
    flat.names = [written.offset(name) for name in tables.output_names]
    written.offset("")
    if tables.open_dims:
        sizes = [s.name for s in tables.open_sizes]
        for dim in tables.open_dims:
            formula = to_words(dim.formula, sizes)
            at = first_dims[dim.entry] + dim.axis
            flat.open_dims.append((at, len(flat.words), len(formula), 0))
            flat.words += formula
        flat.sizes = [
            (written.offset(s.name), 0 if s.teller is None else s.teller + 1, s.low, s.high)
            for s in tables.open_sizes
        ]
    flat.strings = bytes(written.strings)
    return flat.pack()


def _from_binary(data: memoryview) -> GraphTables:
    flat = FlatTables.unpack(data)
    names = ReadNames(flat.strings)
    owner = [(index, i) for index, node in enumerate(flat.nodes) for i in range(node[5])]
    sizes = tuple(
        OpenSize(names.at(name), low, high, teller - 1 if teller else None)
        for name, teller, low, high in flat.sizes
    )
    return GraphTables(
        nodes=tuple(_flat_node(row, flat.args, owner, names) for row in flat.nodes),
        entries=tuple(
            GraphEntry(
                tuple(flat.dims[first : first + ndim]),
                dtypes.from_dlpack(code, bits, lanes),
                storage,
            )
            for code, bits, lanes, ndim, first, storage in flat.entries
        ),
        inputs=tuple(flat.inputs),
        outputs=tuple(owner[entry] for entry in flat.outputs),
        storages=tuple(Storage(*row) for row in flat.storages),
        arena_bytes=flat.arena_bytes,
        arenas=tuple(_arena(*row) for row in flat.arenas),
        output_names=tuple(names.at(name) for name in flat.names),
        open_sizes=sizes,
        open_dims=_flat_axes(flat, [size.name for size in sizes]),
    )


def _flat_node(
    row: Row, args: Sequence[int], owner: Sequence[tuple[int, int]], names: ReadNames
) -> GraphNode:
    name, function, first, count, _, made = row
    if function == NONE:
        return GraphNode(names.at(name), None, (), made)
    inputs = tuple(owner[entry] for entry in args[first : first + count - made])
    return GraphNode(names.at(name), names.at(function), inputs, made)


def _flat_axes(flat: FlatTables, size_names: Sequence[str]) -> tuple[OpenAxis, ...]:
    if not flat.open_dims:
        return ()
    position = {
        first + axis: (index, axis)
        for index, (_, _, _, ndim, first, _) in enumerate(flat.entries)
        for axis in range(ndim)
    }
    return tuple(
        OpenAxis(*position[dim], from_words(flat.words[first : first + count], size_names))
        for dim, first, count, _ in flat.open_dims
    )
