"""Every byte of a linked image: the layer, constant or buffer it belongs to, from the map file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.backends.micro.kernels.pushed import PUSHED_BYTES
from slipway.errors import FileError
from slipway.micro.fit import Need

_SECTION = re.compile(r"^ (\.[\w.$]+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S+)$", re.MULTILINE)
_WORKSPACE = re.compile(r"\.bss\.(\w+_)?workspace_")
_STACK = re.compile(r"^\.stack\s+0x[0-9a-f]+\s+0x([0-9a-f]+)", re.MULTILINE)
_NODE = re.compile(r'node: \{ title: "([^"]+)" label: "[^"]*?\\n(\d+) bytes')
_EDGE = re.compile(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')
_FLASH = (".text", ".vectors", ".rodata", ".srodata", ".ARM.ex", ".eh_frame", ".init")
_RAM = (".bss", ".sbss", ".noinit", ".slipway", "COMMON")


@dataclass(frozen=True)
class Piece:
    """One input section of the image: `kind` is a class of `Need`, `owner` a layer or symbol."""

    kind: str
    owner: str
    section: str
    size_bytes: int


def read_map(path: str | Path, model: Mapping[str, Any] | None = None) -> list[Piece]:
    """Return the pieces of an image from its map file (GNU ld's), largest first.

    `model` is the archive's description, which gives kernels and constants their layers' names.
    Functions that kernels call are attributed to the layers of those kernels, as far as gcc's
    call graph lies in the map's folder.
    """
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise FileError(
            f"{path}: no map file; build the project first ({error.strerror})"
        ) from error
    _, _, body = text.partition("Linker script and memory map")
    users = _users(model or {})
    for symbol, layers in _layers_of_callees(Path(path).parent, users).items():
        users.setdefault(symbol, layers)
    owners = {symbol: _owner(symbol, layers) for symbol, layers in users.items()}
    pieces = []
    for name, _, size, _ in _SECTION.findall(body):
        if int(size, 16) == 0 or name.startswith((".debug", ".comment")):
            continue
        piece = _piece(name, int(size, 16), owners)
        if piece is not None:
            pieces.append(piece)
    stack = _STACK.search(body)
    if stack:
        pieces.append(Piece("stack", "reserved stack", ".stack", int(stack.group(1), 16)))
    return sorted(pieces, key=lambda piece: (-piece.size_bytes, piece.section))


def _users(model: Mapping[str, Any]) -> dict[str, set[str]]:
    """Map kernels and constants to the layers that use them."""
    users: dict[str, set[str]] = {}
    order = [name for layer in model.get("layers", []) for name in layer["constants"]]
    numbers = {name: i for i, name in enumerate(model.get("constants", dict.fromkeys(order)))}
    for layer in model.get("layers", []):
        users.setdefault(layer["kernel"], set()).add(layer["name"])
        for constant in layer["constants"]:
            users.setdefault(f"constant_{numbers[constant]}", set()).add(layer["name"])
    return users


def _layers_of_callees(folder: Path, users: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Map each function below a kernel in the call graph to the layers that reach it."""
    calls: dict[str, set[str]] = {}
    for source, target in _call_graph(folder)[1]:
        calls.setdefault(_plain(source), set()).add(_plain(target))
    found: dict[str, set[str]] = {}
    for kernel in users.keys() & calls.keys():
        reached, todo = {kernel}, [kernel]
        while todo:
            new = calls.get(todo.pop(), set()) - reached
            reached |= new
            todo += new
        for symbol in reached - {kernel}:
            found.setdefault(symbol, set()).update(users[kernel])
    return found


def _plain(symbol: str) -> str:
    """Return a function's name without what the compiler added for its copies."""
    return re.sub(r"\.(constprop|isra|part|cold)\b.*", "", symbol)


def _owner(symbol: str, layers: set[str]) -> str:
    """Return a layer's name; what several layers use keeps its own."""
    return next(iter(layers)) if len(layers) == 1 else f"shared by {len(layers)} layers: {symbol}"


def _piece(section: str, size: int, owners: Mapping[str, str]) -> Piece | None:
    symbol = re.sub(r"^\.(text|rodata|bss|data|sdata|sbss|srodata)\.?", "", section)
    symbol = _plain(symbol)
    owner = owners.get(symbol, symbol or "runtime and start-up")
    if symbol.startswith("constant_") and section.startswith(".rodata"):
        return Piece("weights", owner, section, size)
    if section.startswith(".slipway.constant."):
        return Piece("weights", owner, section, size)
    if section.startswith((".bss.model_pool_", ".slipway.pool.")) or _WORKSPACE.match(section):
        return Piece("arena", "workspace", section, size)
    if section.startswith((".bss.memory_", ".bss.harness")):
        return Piece("io", "inputs and outputs", section, size)
    if section.startswith(_FLASH):
        return Piece("code", owner, section, size)
    if section.startswith((".data", ".sdata", *_RAM)):
        return Piece("data", owner, section, size)
    return None


def linked_need(pieces: Iterable[Piece], stack_bytes: int | None = None) -> Need:
    """Add the pieces up; `stack_bytes` is the proven bound, else the reserved stack counts."""
    totals = dict.fromkeys(("weights", "code", "arena", "io", "stack", "data"), 0)
    for piece in pieces:
        totals[piece.kind] += piece.size_bytes
    if stack_bytes is not None:
        totals["stack"] = stack_bytes
    return Need(**totals, origin="linked")


def stack_bound(folder: str | Path, entry: str) -> int | None:
    """Return the deepest stack below `entry`, in bytes, from gcc's ``-fcallgraph-info=su`` files.

    None when the files say nothing of `entry`, when its call graph has a cycle, and when it calls
    through pointers.
    """
    frames, edges = _call_graph(Path(folder))
    calls: dict[str, set[str]] = {}
    for source, target in edges:
        calls.setdefault(source, set()).add(target)
    return deepest(frames, calls, entry)


def deepest(
    frames: Mapping[str, int], calls: Mapping[str, Collection[str]], entry: str
) -> int | None:
    """Return the deepest stack below `entry` in bytes, of functions' frames and who calls whom.

    None when `entry` has no frame, when the calls have a cycle, and when one is indirect.
    """
    if entry not in frames:
        return None
    done: dict[str, int] = {}
    stack: list[tuple[str, bool]] = [(entry, False)]
    open_: set[str] = set()
    while stack:
        name, leaving = stack.pop()
        if leaving:
            open_.discard(name)
            below = (done.get(callee, 0) for callee in calls.get(name, ()))
            done[name] = frames.get(name, 0) + max(below, default=0)
        elif name in open_ or name == "__indirect_call":
            return None
        elif name not in done:
            open_.add(name)
            stack.append((name, True))
            stack += [(callee, False) for callee in calls.get(name, ())]
    return done[entry]


def frame_of(name: str, reported: int) -> int:
    """Return a function's frame in bytes, with what its own assembly pushes."""
    return reported + PUSHED_BYTES.get(name.partition(".")[0], 0)  # without gcc's ".isra.0"


def _call_graph(folder: Path) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return functions' frames in bytes, and who calls whom, from a folder's ``.ci`` files."""
    frames: dict[str, int] = {}
    edges: list[tuple[str, str]] = []
    for path in sorted(folder.rglob("*.ci")):
        text = path.read_text(encoding="utf-8", errors="replace")
        for label, size in _NODE.findall(text):
            name = label.rpartition(":")[2]
            frames[name] = frame_of(name, int(size))
        edges += [
            (source.rpartition(":")[2], target.rpartition(":")[2])
            for source, target in _EDGE.findall(text)
        ]
    return frames, edges


def size_table(pieces: Sequence[Piece], most: int = 40) -> str:
    """Return one line per owner and class, largest first."""
    totals: dict[tuple[str, str], int] = {}
    for piece in pieces:
        key = (piece.kind, piece.owner)
        totals[key] = totals.get(key, 0) + piece.size_bytes
    rows = sorted(totals.items(), key=lambda row: -row[1])
    lines = [f"{'bytes':>9}  {'class':<8} layer or symbol"]
    lines += [f"{size:>9}  {kind:<8} {owner}" for (kind, owner), size in rows[:most]]
    if len(rows) > most:
        rest = sum(size for _, size in rows[most:])
        lines.append(f"{rest:>9}  {'':<8} {len(rows) - most} smaller ones")
    need = linked_need(pieces)
    lines.append(f"flash {need.flash} B, RAM {need.ram} B")
    return "\n".join(lines)


def size_difference(before: Sequence[Piece], after: Sequence[Piece]) -> str:
    """Return what grew and what shrank, the largest change first."""
    changes: dict[tuple[str, str], int] = {}
    for sign, pieces in ((-1, before), (1, after)):
        for piece in pieces:
            key = (piece.kind, piece.owner)
            changes[key] = changes.get(key, 0) + sign * piece.size_bytes
    rows = sorted(((k, v) for k, v in changes.items() if v), key=lambda row: -abs(row[1]))
    lines = [f"{'change':>9}  {'class':<8} layer or symbol"]
    lines += [f"{change:>+9}  {kind:<8} {owner}" for (kind, owner), change in rows]
    if not rows:
        lines.append("        0  no difference")
    old, new = linked_need(before), linked_need(after)
    lines.append(f"flash {new.flash - old.flash:+d} B, RAM {new.ram - old.ram:+d} B")
    return "\n".join(lines)
