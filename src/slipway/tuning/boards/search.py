"""The search for a microcontroller: kernels of each layer, by instructions on the emulated board.

A count has no noise, so one run tells; and kernels run one after the other, so what one layer gains
does not depend on the others.  Every kernel of every layer is tried by itself.  Then those that
gain are taken, the most instructions for each byte of flash first, while the image fits the board.
Last comes the compiler's level.  Whatever is taken must give the bytes of the image without it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from slipway.backends.choices import key_of, using_records
from slipway.backends.micro.kernels.wish import LOOPS, WrittenProblem, written_met
from slipway.compiler.relay_build import build
from slipway.errors import SlipwayError, TuningError
from slipway.ir.function import IRModule
from slipway.micro.board import Board
from slipway.micro.emulator import run_image
from slipway.micro.image_size import linked_need, read_map
from slipway.micro.model_library import only_model, unpack_model_library
from slipway.micro.model_library_format import export_model_library_format
from slipway.micro.project import generate_project_from_mlf
from slipway.relay.backend import Executor, Runtime
from slipway.target import Target
from slipway.toolchain.link import write_file
from slipway.transform.context import PassContext

LEVELS = ("-O2", "-O3")
RUN_S = 300.0
CALLED_FROM_C: Mapping[str, Any] = {"unpacked-api": True, "interface-api": "c"}


@dataclass(frozen=True)
class BoardCost:
    """What an image with a model takes: instructions of a run, bytes; and what it computed."""

    instructions: int
    flash_bytes: int
    ram_bytes: int
    outputs: tuple[str, ...] = field(repr=False, default=())


@dataclass(frozen=True)
class LayerChoice:
    """A kernel for a layer, and what it alone makes of the model's instructions and flash."""

    problem: WrittenProblem
    family: str
    saved: int
    more_bytes: int
    error: str = ""

    @property
    def record(self) -> dict[str, Any]:
        """The choice as "schedules.records" takes it."""
        op, attrs, *types, target = key_of(self.problem.problem)
        return {
            "op": op, "attrs": attrs, "inputs": types, "target": target,
            "strategy": self.family, "saved": self.saved, "more_bytes": self.more_bytes,
        }  # fmt: skip

    def __str__(self) -> str:
        shapes = " ".join(str(t) for t in self.problem.problem.in_types)
        return f"{self.problem.problem.op.partition(':')[2]} {shapes}: {self.family}"


@dataclass(frozen=True)
class BoardResult:
    """What a search found: the image before and after, the choices, gcc's level, what was tried."""

    before: BoardCost
    after: BoardCost
    chosen: tuple[LayerChoice, ...]
    level: str
    tried: tuple[LayerChoice, ...]

    def write_records(self, path: Path) -> None:
        """Write the choices as lines of JSON, whole or not at all."""
        write_file(path, "".join(json.dumps(c.record) + "\n" for c in self.chosen).encode())


@dataclass(frozen=True)
class LinkedNeed:
    """An image as it would be flashed, and the bytes that it takes."""

    image: Path
    flash_bytes: int
    ram_bytes: int


Measure = Callable[[Iterable[LayerChoice], str], BoardCost]
Once = Callable[[Iterable[LayerChoice]], BoardCost]


class BoardModel:
    """A model that is compiled for a board, with some choices."""

    def __init__(
        self, module: IRModule, params: Mapping[str, Any], board: Board, folder: Path
    ) -> None:
        self.module, self.params, self.board, self.folder = module, dict(params), board, folder
        self.target = Target(board.target)
        self._number = 0

    def layers(self) -> list[WrittenProblem]:
        """Return the different layers that hand-written kernels compute."""
        with written_met() as met:
            self.compiled().program  # noqa: B018
        return list({key_of(each.problem): each for each in met}.values())

    def new_folder(self) -> Path:
        """Return a folder of its own for an image."""
        self._number += 1
        folder = self.folder / str(self._number)
        folder.mkdir()
        return folder

    def linked(self, choices: Iterable[LayerChoice], level: str, folder: Path) -> LinkedNeed:
        """Link the bench firmware with some choices; return the image, and what it needs.

        Raises SlipwayError if there is none.
        """
        with self.choosing(choices, folder):
            archive = export_model_library_format(self.compiled(), folder / "model.tar")
        options = {"board": self.board.name, "project_type": "bench", "optimise": level}
        project = generate_project_from_mlf("baremetal", folder / "project", archive, options)
        try:
            project.build()
        finally:
            project.close()
        built = folder / "project" / "build"
        model = only_model(unpack_model_library(archive, folder / "unpacked"))
        need = linked_need(read_map(built / "firmware.map", model))
        return LinkedNeed(built / "firmware.elf", need.flash, need.ram)

    @contextmanager
    def choosing(self, choices: Iterable[LayerChoice], folder: Path) -> Iterator[None]:
        """Let compilations in the block use some choices."""
        records = folder / "choices.records"
        records.write_text("".join(json.dumps(choice.record) + "\n" for choice in choices))
        with using_records(str(records)):
            yield

    def compiled(self, interface: Mapping[str, Any] = CALLED_FROM_C) -> Any:
        """Return the model compiled ahead of time."""
        with PassContext(opt_level=3):
            return build(
                self.module, self.target, params=self.params,
                executor=Executor("aot", dict(interface)), runtime=Runtime("crt"),
            )  # fmt: skip


class BoardBench(BoardModel):
    """Builds a model into the bench firmware of a board and runs it in the board's emulator."""

    def __init__(
        self, module: IRModule, params: Mapping[str, Any], board: Board, folder: Path
    ) -> None:
        if board.emulator is None:
            raise TuningError(
                f"{board.title} has no emulator, where a search counts instructions. A board with "
                "the same core that has one serves as well, and so does the board itself at a "
                "cable (--port)"
            )
        super().__init__(module, params, board, folder)

    def __call__(self, choices: Iterable[LayerChoice], level: str) -> BoardCost:
        """Return what the image with some choices takes.  Raises SlipwayError if it is none."""
        need = self.linked(choices, level, self.new_folder())
        status, text = run_image(self.board, need.image, RUN_S)
        counts = [int(number) for number in re.findall(r"NS (\d+)", text)]
        if status != 0 or not counts:
            raise TuningError(f"the image ended with status {status} and said: {text[-300:]!r}")
        outputs = tuple(re.findall(r"OUT (\w+)", text))
        return BoardCost(min(counts), need.flash_bytes, need.ram_bytes, outputs)


def search_board(
    layers: Iterable[WrittenProblem],
    measure: Measure,
    flash_bytes: int,
    ram_bytes: int,
    watcher: Callable[[LayerChoice], None] | None = None,
    *,
    levels: Sequence[str] = LEVELS,
    noise: float = 0.0,
) -> BoardResult:
    """Return the best of what fits a board of `flash_bytes` and `ram_bytes`.

    What a kernel saves counts where it is more than `noise` of the model's time.
    """

    def once(choices: Iterable[LayerChoice]) -> BoardCost:
        return measure(choices, levels[0])

    before = once([])
    tried = []
    for layer in layers:
        for family in layer.families[1:]:
            choice = _tried(LayerChoice(layer, family, 0, 0), before, once, noise)
            tried.append(choice)
            if watcher is not None:
                watcher(choice)
    smallest_gain = noise * before.instructions
    chosen, after = _taken(tried, before, once, smallest_gain, flash_bytes, ram_bytes)
    # Layers that share a function are compiled with it: all of them may gain where one does not.
    for family in sorted({c.family for c in tried if c.family != LOOPS and not c.error}):
        every = [c for c in tried if c.family == family and not c.error]
        cost = once(every)
        saved = after.instructions - cost.instructions
        if _may_be(cost, before, flash_bytes, ram_bytes) and saved > smallest_gain:
            chosen, after = every, cost
    level = levels[0]
    for other in levels[1:]:
        cost = measure(chosen, other)
        saved = after.instructions - cost.instructions
        if _may_be(cost, before, flash_bytes, ram_bytes) and saved > smallest_gain:
            after, level = cost, other
    return BoardResult(before, after, tuple(chosen), level, tuple(tried))


def _tried(choice: LayerChoice, before: BoardCost, once: Once, noise: float) -> LayerChoice:
    try:
        cost = once([choice])
    except SlipwayError as error:
        return replace(choice, error=f"{type(error).__name__}: {error}")
    if cost.outputs != before.outputs:
        return replace(choice, error="its outputs are not those of the image without it")
    saved = before.instructions - cost.instructions
    return replace(
        choice,
        saved=saved if abs(saved) > noise * before.instructions else 0,
        more_bytes=cost.flash_bytes - before.flash_bytes,
    )


def _taken(
    tried: Iterable[LayerChoice],
    before: BoardCost,
    once: Once,
    smallest_gain: float,
    flash_bytes: int,
    ram_bytes: int,
) -> tuple[list[LayerChoice], BoardCost]:
    """Return what is taken, and the cost of the image with it, which was measured.

    Of a layer's kernels the best; the most instructions for each byte first.  Two that share code
    need less than both alone, so what is taken last is only left out where the linked image, not
    the sum, is too large.
    """
    best: dict[int, LayerChoice] = {}
    for choice in tried:
        known = best.get(id(choice.problem))
        if choice.saved > 0 and (known is None or choice.saved > known.saved):
            best[id(choice.problem)] = choice
    order = sorted(best.values(), key=lambda c: -c.saved / max(1, c.more_bytes))
    while order:
        after = once(order)
        is_less = before.instructions - after.instructions > smallest_gain
        if is_less and _may_be(after, before, flash_bytes, ram_bytes):
            return order, after
        order = order[:-1]
    return [], before


def _may_be(cost: BoardCost, before: BoardCost, flash_bytes: int, ram_bytes: int) -> bool:
    """Return whether an image fits the board and computes what the first one does."""
    fits = cost.flash_bytes <= flash_bytes and cost.ram_bytes <= ram_bytes
    return fits and cost.outputs == before.outputs
