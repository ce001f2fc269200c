"""What a model takes on a board: linked there, or told from what another compiler makes of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from slipway.errors import ToolchainError
from slipway.micro.board import Board, board_toml, with_room
from slipway.micro.board_tools import missing_for
from slipway.micro.fit import Compiled, Need
from slipway.micro.image_size import deepest, frame_of, linked_need, read_map, stack_bound
from slipway.micro.model_library import only_model, unpack_model_library
from slipway.micro.project import TemplateProject, get_microtvm_template_projects
from slipway.toolchain.elf import ElfFile, Symbol
from slipway.toolchain.elf_calls import frame_sizes, references
from slipway.toolchain.tempdir import scratch
from slipway.toolchain.zig import find_zig, run_zig

_OBJECT, _FUNCTION = 1, 2  # types of an ELF symbol
_RUN = re.compile(r"tvmgen_\w+_run")  # what a program calls
_ROOM_BYTES = 16 << 20
_IRQ_FRAME_BYTES = 104  # what a Cortex-M core with FPU pushes for an interrupt
_CALLER_BYTES = 64  # main's own frame


def measure_boards(
    boards: Sequence[Board], archive_for: Callable[[str], Path]
) -> dict[str, Need | None]:
    """Link a model for each board, and return what it takes by the board's name.

    `archive_for` makes the model's archive for a target; it is asked once for each.  None stands
    for a board whose compiler is not installed.
    """
    archives: dict[str, Path] = {}
    found: dict[str, Need | None] = {}
    for board in boards:
        if missing_for(board):
            found[board.name] = None
            continue
        if board.target not in archives:
            archives[board.target] = archive_for(board.target)
        archive = archives[board.target]
        with scratch("slipway-fit-") as folder:
            model = only_model(unpack_model_library(archive, Path(folder)))
            found[board.name] = measure_linked(archive, model, board)
    return found


def measure_linked(archive: Path, model: dict[str, Any], board: Board) -> Need:
    """Build the bench firmware of an archive for a board and add up its map file.

    The stack is the proven bound of the model's run function, with room for its caller and one
    interrupt.  It is linked for the board with more memory, so that a model that is too large gives
    numbers too.  Raises ToolchainError without the board's compiler.
    """
    with scratch("slipway-fit-") as folder:
        roomy = Path(folder) / f"{board.name}.toml"
        roomy.write_text(board_toml(with_room(board, _ROOM_BYTES)), encoding="utf-8")
        target = Path(folder) / "project"
        template = TemplateProject.from_directory(get_microtvm_template_projects("baremetal"))
        options = {"board": str(roomy), "project_type": "bench"}
        project = template.generate_project_from_mlf(archive, target, options)
        try:
            project.build()
        finally:
            project.close()
        bound = stack_bound(target / "build", f"tvmgen_{model['model_name']}_run")
        pieces = read_map(target / "build" / "firmware.map", model)
    if bound is not None:
        bound += _IRQ_FRAME_BYTES + _CALLER_BYTES
    return linked_need(pieces, bound)


# What gcc's code takes at most for each byte of clang's, and start-up, main and C library beside
# it: measured on fourteen models and up to four cores each (1.23 and 0.85 at most; 1.43 on Arm's
# cores where sums have 64 bits).
_GCC_FACTOR = {True: 1.45, False: 1.05}  # on Arm's cores; on RISC-V
_BESIDE_BYTES = 2200
_STEP_BYTES = 16  # of a step of the clock or the pins
_SOFTWARE_BYTES = 400  # of a function of the compiler's library, such as a float product
# The same for frames on the stack.
_GCC_FRAMES = 1.5
_LIBRARY_FRAME_BYTES = 64


def compiled_estimate(model: Path, board: Board) -> Compiled | None:
    """Return bytes of code and stack that an unpacked model takes at most on a board's core.

    Its sources are compiled by the clang that comes with the package.  None where that is missing,
    does not know the core, or where the model is no C source.
    """
    target = _clang_target(board)
    host = model / "codegen" / "host"
    sources = sorted(host.glob("src/*.c"))
    if target is None or not sources or find_zig() is None:
        return None
    total = float(_BESIDE_BYTES + _STEP_BYTES * len((*board.clock, *board.pins)))
    frames: dict[str, int] = {}
    calls: dict[str, set[str]] = {}
    with scratch("slipway-fit-") as folder:
        for source in sources:
            out = Path(folder) / f"{source.stem}.o"
            flags = ["-O2", "-std=c11", "-ffreestanding", "-ffunction-sections", "-fdata-sections"]
            flags += ["-fstack-size-section"]
            flags += [
                "-fno-unroll-loops",  # nor does gcc at -O2; clang doubles a model's code with it
                "-fno-sanitize=all",
                "-fno-stack-protector",
                "-w",
                f"-I{host / 'include'}",
            ]
            try:
                run_zig(
                    ["cc", *target, *flags, "-c", str(source), "-o", str(out)],
                    purpose="estimating code",
                )
            except ToolchainError:
                return None
            elf = ElfFile(out.read_bytes(), out.name)
            code = sum(s.size for s in elf.symbols if _is_code(s))
            called = [n for n in elf.undefined if "unwind" not in n]
            total += _GCC_FACTOR[board.is_arm] * code + _SOFTWARE_BYTES * len(called)
            frames |= dict.fromkeys(called, _LIBRARY_FRAME_BYTES)
            frames |= {name: frame_of(name, size) for name, size in frame_sizes(elf).items()}
            calls |= references(elf)
    depths = [deepest(frames, calls, name) for name in frames if _RUN.fullmatch(name)]
    known = [depth for depth in depths if depth is not None]
    beside = _IRQ_FRAME_BYTES + _CALLER_BYTES
    stack = int(max(known) * _GCC_FRAMES) + beside if known and None not in depths else None
    return Compiled(int(total), stack)


def _is_code(symbol: Symbol) -> bool:
    """Whether a symbol is a function, or a table of one; weights and workspace are neither."""
    if symbol.section == 0 or symbol.type not in (_OBJECT, _FUNCTION):
        return False
    return symbol.type == _FUNCTION or not re.match(r"constant_|(\w+_)?workspace_", symbol.name)


# gcc's names of floating-point units, and LLVM's; Helium has one of its own.
_FPU = {"fpv4-sp-d16": "vfp4d16sp", "fpv5-sp-d16": "fp_armv8d16sp", "fpv5-d16": "fp_armv8d16"}


def _clang_target(board: Board) -> list[str] | None:
    if board.is_arm:
        hard = any("float-abi=hard" in flag for flag in board.cflags)
        triple = f"thumb-freestanding-eabi{'hf' if hard else ''}"
        unit = next((_FPU[u] for u in _FPU if f"-mfpu={u}" in board.cflags), "fp_armv8d16sp")
        return ["-target", triple, f"-mcpu={board.core.replace('-', '_')}{f'+{unit}' * hard}"]
    march = next((f for f in board.cflags if f.startswith("-march=rv")), "")
    bits = march.removeprefix("-march=rv")[:2]
    letters = march.removeprefix(f"-march=rv{bits}").partition("_")[0].replace("g", "imafd")
    if bits not in ("32", "64"):
        return None
    extras = "".join(f"+{letter}" for letter in letters if letter != "i")
    return ["-target", f"riscv{bits}-freestanding-none", f"-mcpu=generic_rv{bits}{extras}"]
