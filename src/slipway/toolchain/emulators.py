"""Emulators of other processors that run one Linux program (QEMU user mode)."""

from __future__ import annotations

import platform
import shutil

from slipway.toolchain.elf import architecture_of

# Our architecture name -> QEMU's.
_QEMU_NAMES = {"x86_64": "x86_64", "aarch64": "aarch64", "armv7": "arm", "riscv64": "riscv64"}
# A version of QEMU that knows one Hexagon only asks for its name.
_OPTIONS = {"hexagon": ("-cpu", "v67")}
INSTALL_LINE = "apt-get install qemu-user-static"


def find(architecture: str) -> list[str] | None:
    """Return the command that runs programs of `architecture` (or triple) here, or None.

    An empty list means that this machine runs them itself.
    """
    wanted = architecture_of(architecture)
    if wanted == architecture_of(platform.machine()):
        return []
    name = _QEMU_NAMES.get(wanted, wanted)
    for program in (f"qemu-{name}-static", f"qemu-{name}"):
        path = shutil.which(program)
        if path is not None:
            return [path, *_OPTIONS.get(wanted, ())]
    return None


def install_hint(architecture: str) -> str:
    """Return a sentence that says how to get the emulator for `architecture`."""
    name = _QEMU_NAMES.get(architecture_of(architecture), architecture)
    return f"qemu-{name} is not installed; on Debian or Ubuntu: sudo {INSTALL_LINE}"
