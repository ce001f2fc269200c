"""What shells complete behind options whose values have names: targets and boards."""

from __future__ import annotations

_KINDS = ("llvm", "c", "cuda", "opencl", "vulkan", "metal", "rocm", "web/wasm")
_SERVERS = ("aarch64-linux", "armv7-linux", "riscv64-linux", "x86_64-linux", "hexagon-linux")


def target_names(incomplete: str) -> list[str]:
    """Return the devices and kinds of targets that begin so."""
    from slipway.target.tags import list_tags

    return [name for name in (*_KINDS, *sorted(list_tags())) if name.startswith(incomplete)]


def server_names(incomplete: str) -> list[str]:
    """Return the systems that begin so, of those that a device server is built for."""
    return [name for name in _SERVERS if name.startswith(incomplete)]


def board_names(incomplete: str) -> list[str]:
    """Return the boards that begin so, of those that Slipway builds firmware for."""
    from slipway.micro import board

    return [name for name in board.board_names() if name.startswith(incomplete)]
