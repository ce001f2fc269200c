"""Does a model fit a board: flash and RAM by class, before and after linking.

The estimate needs no compiler of the board's: weights, arena, inputs and outputs are exact.  Code
and stack are what the package's own clang makes of the sources, with what gcc and start-up code add
at most (`measure_image`), or else guessed, the code from the number of kernels.  It errs upwards.
The truth comes from the linked image: its sections, the compiler's stack report, and the call
graph.  Both are `Need` values, so that one can be held against the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slipway.micro.board import Board

# Bytes of code at -O2, above what the test models and those of docs/micro.md link to on any core.
_CODE_PER_KERNEL = 900
_CODE_BASE = 6000  # start-up, run function, what kernels share
_STACK_ESTIMATE = 1024


@dataclass(frozen=True)
class Compiled:
    """Bytes of code and stack of a model's sources; None where no bound of the stack is known."""

    code: int
    stack: int | None


@dataclass(frozen=True)
class LayerNeed:
    """What one layer costs: bytes of weights, and of tensors alive while it runs."""

    name: str
    kernel: str
    weights_bytes: int
    alive_bytes: int


@dataclass(frozen=True)
class Need:
    """Bytes by class.  Flash: weights and code.  RAM: arena, inputs and outputs, stack, data."""

    weights: int
    code: int
    arena: int
    io: int
    stack: int
    data: int = 0
    origin: str = "estimate"

    @property
    def flash(self) -> int:
        """Bytes of flash."""
        return self.weights + self.code + self.data

    @property
    def ram(self) -> int:
        """Bytes of RAM."""
        return self.arena + self.io + self.stack + self.data


@dataclass(frozen=True)
class ModelNeeds:
    """A model's estimate, and what explains it."""

    name: str
    need: Need
    layers: tuple[LayerNeed, ...]
    peak_layer: str
    peak_tensors: tuple[tuple[str, int], ...]
    lower_bound_bytes: int = 0
    notes: tuple[str, ...] = field(default=())


def need_of(
    weights: int, arena: int, io: int, kernels: int, compiled: Compiled | None = None
) -> Need:
    """Return the estimate for known bytes of data, and a number of kernels or what they compile to.

    Bytes of the stack of which nothing is known are guessed.
    """
    code = _CODE_BASE + _CODE_PER_KERNEL * kernels if compiled is None else compiled.code
    known = None if compiled is None else compiled.stack
    stack = _STACK_ESTIMATE if known is None else known
    return Need(weights=weights, code=code, arena=arena, io=io, stack=stack)


def estimate(model: Mapping[str, Any], compiled: Compiled | None = None) -> ModelNeeds:
    """Return the needs of a model from its archive's description (see `only_model`).

    `compiled` is what `measure_image.compiled_estimate` says of its sources, where they are there.
    """
    main = model["memory"]["functions"]["main"][0]
    plan = model.get("memory_plan", {})
    tensors = plan.get("tensors", [])
    layers = []
    for layer in model.get("layers", []):
        alive = sum(t["size_bytes"] for t in tensors if t["first"] <= layer["step"] <= t["last"])
        weights = sum(layer["constants"].values())
        layers.append(LayerNeed(layer["name"], layer["kernel"], weights, alive))
    kernels = {layer.kernel for layer in layers}
    need = need_of(
        weights=main["constants_size_bytes"],
        arena=main["workspace_size_bytes"],
        io=main["io_size_bytes"],
        kernels=len(kernels),
        compiled=compiled,
    )
    peak = max(layers, key=lambda layer: layer.alive_bytes, default=None)
    there: list[tuple[str, int]] = []
    if peak is not None:
        step = next(layer["step"] for layer in model["layers"] if layer["name"] == peak.name)
        there = sorted(
            ((t["name"], t["size_bytes"]) for t in tensors if t["first"] <= step <= t["last"]),
            key=lambda pair: -pair[1],
        )
    return ModelNeeds(
        model["model_name"],
        need,
        tuple(layers),
        peak.name if peak else "",
        tuple(there),
        plan.get("lower_bound_bytes", 0),
    )


@dataclass(frozen=True)
class Verdict:
    """A model against a board."""

    board: Board
    need: Need

    @property
    def flash_margin(self) -> int:
        """Bytes of flash left over; negative when it does not fit."""
        return self.board.flash_bytes - self.need.flash

    @property
    def ram_margin(self) -> int:
        """Bytes of RAM left over, in the memory named RAM."""
        return self.board.ram_bytes - self.need.ram

    @property
    def fits(self) -> bool:
        """Whether flash and RAM suffice."""
        return self.flash_margin >= 0 and self.ram_margin >= 0


def certain_excess(board: Board, need: Need) -> str:
    """Return what of a model is too large for a board, whatever its code takes; "" for nothing."""
    data = need.arena + need.io
    if need.weights > board.flash_bytes:
        return (
            f"{board.name} has {board.flash_bytes:,} bytes of flash, and the weights alone "
            f"{need.weights:,}"
        )
    if data > board.ram_bytes:
        return f"{board.name} has {board.ram_bytes:,} bytes of RAM, and the tensors alone {data:,}"
    return ""


def remedies(verdict: Verdict, model: ModelNeeds) -> list[str]:
    """Return what would make the model fit, the cheapest first."""
    found = []
    if verdict.ram_margin < 0:
        spare = sum(m.size for m in verdict.board.memories if m.name not in ("FLASH", "RAM"))
        if spare >= -verdict.ram_margin:
            names = ", ".join(
                m.name for m in verdict.board.memories if m.name not in ("FLASH", "RAM")
            )
            found.append(
                f"place {-verdict.ram_margin} B of the arena in {names}: "
                "workspace_memory_pools=WorkspaceMemoryPools([...])"
            )
        if verdict.need.io:
            found.append(
                f"plan the {verdict.need.io} B of inputs and outputs with the other tensors, whose "
                'bytes they then share: "tir.usmp.enable": True, "tir.usmp.use_workspace_io": True '
                "in the PassContext's config"
            )
        if verdict.need.io >= -verdict.ram_margin:
            found.append("let inputs and outputs share the sensor's own buffers")
        if model.peak_tensors:
            biggest = ", ".join(f"{name} {size} B" for name, size in model.peak_tensors[:2])
            found.append(
                f"make the tensors of layer {model.peak_layer} smaller ({biggest}): a smaller "
                "input, a larger stride before it, fewer channels, or int8 instead of float32"
            )
    if verdict.flash_margin < 0:
        heavy = sorted(model.layers, key=lambda layer: -layer.weights_bytes)[:3]
        text = ", ".join(f"{layer.name} {layer.weights_bytes} B" for layer in heavy)
        found.append(f"shrink the weights, int8 instead of float32 first; the heaviest: {text}")
    return found


_CLASSES = ("weights", "code", "arena", "io", "stack", "data")


def fit_report(
    model: ModelNeeds,
    boards: Sequence[Board],
    linked: Mapping[str, Need | None] | None = None,
    needs: Mapping[str, Need] | None = None,
) -> str:
    """Return the tables that `slipway fit` prints.

    `needs`: the estimate for the core of each board, where it differs.  `linked`: the truth for
    each board by its name; None for a board whose compiler is missing.
    """
    linked = linked or {}
    lines = _classes(model, boards[0], linked.get(boards[0].name))
    if model.peak_layer:
        lines += [
            "",
            f"RAM peak at layer {model.peak_layer} (lower bound {model.lower_bound_bytes} B):",
        ]
        lines += [f"  {size:>10} B  {name}" for name, size in model.peak_tensors[:5]]
    own = {board.name: (needs or {}).get(board.name, model.need) for board in boards}
    verdicts = [Verdict(board, linked.get(board.name) or own[board.name]) for board in boards]
    head = f"  {'board':<16}{'flash left':>12}{'RAM left':>12}"
    if linked:
        head += f"{'code':>10}{'stack':>10}"
    lines += ["", head]
    for verdict in verdicts:
        name, need = verdict.board.name, verdict.need
        line = f"  {name:<16}{verdict.flash_margin:>12}{verdict.ram_margin:>12}"
        if linked:
            line += f"{need.code:>10}{need.stack:>10}"
        line += "  fits" if verdict.fits else "  DOES NOT FIT"
        if linked and linked.get(name) is None:
            line += " (estimate: its compiler is not installed)"
        lines.append(line)
    for verdict in verdicts:
        if not verdict.fits:
            lines += ["", f"To fit {verdict.board.name}:"]
            lines += [f"  - {text}" for text in remedies(verdict, model)]
    return "\n".join(lines)


def _classes(model: ModelNeeds, board: Board, linked: Need | None) -> list[str]:
    """Return the table of bytes by class: the estimate, and the truth for one board."""
    where = "" if linked is None else f", linked for {board.name}"
    lines = [f"{model.name}: bytes by class{where}"]
    head = f"  {'':<22}{'estimate':>12}"
    if linked is not None:
        head += f"{'linked':>12}{'difference':>12}"
    lines.append(head)
    for name in (*_CLASSES, "flash", "ram"):
        guess = getattr(model.need, name)
        line = f"  {_LABELS[name]:<22}{guess:>12}"
        if linked is not None:
            truth = getattr(linked, name)
            line += f"{truth:>12}{truth - guess:>+12}"
        lines.append(line)
    return lines


_LABELS = {
    "weights": "flash: weights",
    "code": "flash: code",
    "arena": "RAM: arena",
    "io": "RAM: inputs, outputs",
    "stack": "RAM: stack",
    "data": "RAM: static data",
    "flash": "flash, all",
    "ram": "RAM, all",
}
