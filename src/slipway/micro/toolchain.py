"""Programs that firmware needs: cross compilers, make, emulators; found, run, and explained."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from slipway.errors import ToolchainError

_PACKAGES = {
    "arm-none-eabi-gcc": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
    "arm-none-eabi-nm": "binutils-arm-none-eabi",
    "riscv64-unknown-elf-gcc": "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf",
    "qemu-system-arm": "qemu-system-arm",
    "qemu-system-riscv32": "qemu-system-misc",
    "qemu-system-riscv64": "qemu-system-misc",
    "make": "make",
    "cmake": "cmake",
    "cppcheck": "cppcheck",
}
_ELSEWHERE = {
    "arduino-cli": "See https://arduino.github.io/arduino-cli/latest/installation",
    "pyocd": "It programs most boards: pip install pyocd",
    "esptool": "It programs Espressif's chips: pip install esptool",
    "teensy_loader_cli": "It programs Teensy boards: sudo apt-get install teensy-loader-cli",
    "pio": "It comes with PlatformIO: pip install platformio",
    "idf.py": "It comes with ESP-IDF: https://docs.espressif.com, Get Started",
    "west": "It comes with Zephyr: pip install west",
}


def find_tool(name: str) -> str:
    """Return the path of a program; raises ToolchainError with the install line."""
    path = shutil.which(name)
    if path is None:
        hint = _ELSEWHERE.get(Path(name).name)
        package = _PACKAGES.get(name, name)
        raise ToolchainError(
            f"{name} is not installed. "
            + (hint or f"On Debian and Ubuntu: sudo apt-get install {package}")
        )
    return path


def run_tool(command: Sequence[str], purpose: str, timeout_s: float = 600.0) -> str:
    """Run a program to its end and return what it printed.

    Raises ToolchainError with the program's own words when it fails or takes too long; then what it
    has started is ended with it, which would hold a board's probe or port otherwise.
    """
    with subprocess.Popen(
        list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, errors = process.communicate(timeout=timeout_s)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise ToolchainError(
                    f"{purpose} took more than {timeout_s:g} s: {shlex.join(command)}"
                ) from None
            raise
    if process.returncode != 0:
        message = (errors.strip() or output.strip())[-4000:]
        raise ToolchainError(f"{purpose} failed ({shlex.join(command)}):\n{message}")
    return output
