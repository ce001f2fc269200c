"""What a board's firmware needs on this machine: compiler, C library, make, emulator."""

from __future__ import annotations

import shutil
import subprocess

from slipway.errors import ToolchainError
from slipway.micro.board import Board

_LIBRARY_SPECS = {
    "arm-none-eabi-gcc": ("nano.specs", "libnewlib-arm-none-eabi"),
    "riscv64-unknown-elf-gcc": ("picolibc.specs", "picolibc-riscv64-unknown-elf"),
}


def missing_for(board: Board, *, emulate: bool = False) -> str:
    """Return the Debian package that is missing to build (and emulate) for a board, else ""."""
    for tool in (board.compiler, "make"):
        if shutil.which(tool) is None:
            return tool.replace("arm-none-eabi-gcc", "gcc-arm-none-eabi").replace(
                "riscv64-unknown-elf-gcc", "gcc-riscv64-unknown-elf"
            )
    specs, package = _LIBRARY_SPECS.get(board.compiler, ("", ""))
    if specs:
        found = subprocess.run(
            [board.compiler, f"-print-file-name={specs}"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip()
        if found == specs:  # gcc repeats the name of what it does not find
            return package
    if emulate and board.emulator is not None and shutil.which(board.emulator.program) is None:
        return "qemu-system-arm" if board.is_arm else "qemu-system-misc"
    return ""


def need_tools(board: Board) -> None:
    """Raise ToolchainError with the install line when firmware cannot be built for a board."""
    package = missing_for(board)
    if package:
        raise ToolchainError(
            f"building for {board.name} needs {package}. On Debian and Ubuntu: "
            f"sudo apt-get install {package}"
        )
