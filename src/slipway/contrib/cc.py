"""Linking with a compiler of the user's; see `slipway.toolchain.cc`."""

from slipway.toolchain.cc import (
    create_executable,
    create_shared,
    cross_compiler,
    get_cc,
    get_target_by_dump_machine,
)

__all__ = [
    "create_executable",
    "create_shared",
    "cross_compiler",
    "get_cc",
    "get_target_by_dump_machine",
]
