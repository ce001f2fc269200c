"""Kinds of virtual microcontrollers: which emulated board stands for each, and its firmware."""

from __future__ import annotations

from pathlib import Path

from slipway.errors import ExecutionError, ToolchainError
from slipway.micro.baremetal import IMAGE
from slipway.micro.board import Board, find_board
from slipway.micro.board_tools import missing_for
from slipway.micro.project import generate_firmware

# One board of each core that QEMU has with memory for code from the host: a micro:bit (cortex-m0)
# has 16 KiB, and the firmware alone needs 26.
BOARDS = {
    "cortex-m3": "mps2-an385",
    "cortex-m4": "mps2-an386",
    "cortex-m7": "mps2-an500",
    "cortex-m33": "mps2-an505",
    "cortex-m55": "mps3-an547",
    "riscv32": "riscv32-virt",
}
_HEAP_BYTES = 256 << 10  # for tensors; what is left of the memory is for code


def checked_board(kind: str) -> Board:
    """Return the board of a kind; ToolchainError when its compiler or emulator is not installed."""
    board = find_board(BOARDS[kind])
    package = missing_for(board, emulate=True)
    if package:
        raise ToolchainError(
            f"{kind}: {board.name} needs what is not installed: apt-get install {package}"
        )
    return board


def why_no_board(kind: str) -> str:
    """Return why there is no virtual device of a microcontroller's kind; "" for other kinds."""
    if not kind.startswith("cortex-m"):
        return ""
    return (
        f"{kind}: QEMU has no board of this core with memory for code from the host; there are "
        f"{', '.join(BOARDS)}"
    )


def build_firmware(board: Board, folder: Path) -> Path:
    """Build resident firmware for a board in a new folder; return its image."""
    options = {"board": board.name, "heap_bytes": _HEAP_BYTES}
    project = generate_firmware("baremetal", folder, options)
    try:
        project.build()
    finally:
        project.close()
    image = folder / IMAGE
    if not image.exists():
        raise ExecutionError(f"building the firmware of {board.name} left no {IMAGE}")
    return image
