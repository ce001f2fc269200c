"""Where a build system finds what Slipway ships: headers, the runtime, a server for a device."""

from __future__ import annotations

from slipway.toolchain import native
from slipway.toolchain.runtime_library import CRT


def find_include_path() -> list[str]:
    """Return the folders to give to a C compiler with ``-I``."""
    return [str(native.include_path())]


def find_crt_include_path() -> list[str]:
    """Return the folder of the C runtime: its headers in ``include``, its sources in ``src``."""
    return [str(CRT)]


def find_cmake_path() -> list[str]:
    """Return the folder of ``slipway-config.cmake``, for CMake's ``slipway_DIR``."""
    return [str(CRT / "cmake")]


def find_lib_path() -> list[str]:
    """Return the runtime library for this machine; compiled on first use if none came along."""
    return [str(native.host_runtime())]


def find_rpc_server(triple: str) -> str:
    """Return the static device server for `triple`, for example "aarch64-linux".

    The first one for a target takes about a minute to build. Raises ToolchainError for a target
    that there is no server for.
    """
    return str(native.build_device_server(triple))


def find_js_path() -> list[str]:
    """Return the folder of the JavaScript module: ``slipway.mjs``, its types, ``package.json``."""
    return [str(CRT.parent / "web")]


def find_rust_path() -> list[str]:
    """Return the folder of the Rust crate ``slipway-rt``."""
    return [str(CRT.parent / "rust")]
