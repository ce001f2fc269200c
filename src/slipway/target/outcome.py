"""What becomes of a kernel compiled for a target: a library, an object, or nothing yet."""

from __future__ import annotations

from slipway.target.target import Target

LIBRARY = "library"
FIRMWARE = "C, objects"
UNSERVED = "library; no runtime"
PAGE = "WebAssembly"
OBJECT = "objects"
NOTHING = "not compiled"

MEANINGS = {
    LIBRARY: ".so and .tar, for a device server or this process",
    FIRMWARE: "C text, .o and .a for firmware: slipway micro",
    UNSERVED: "a file to export, for a program of yours: no Slipway server loads it there",
    PAGE: ".wasm with the runtime inside, for browsers and node (docs/web.md); .o and .a",
    OBJECT: ".o and .a; linking them is up to you",
    NOTHING: "known as the description of a device; there is no code generator for it",
}
# With Linux or Android; an unknown system is linked as Linux: toolchain/zig_target.py.
_SERVED = ("x86_64", "aarch64", "arm", "riscv64", "hexagon")


def outcome_of(target: Target) -> str:
    """Return which of `MEANINGS` holds for kernels compiled for `target`."""
    if target.kind.name in ("opencl", "cuda", "rocm", "vulkan"):
        return LIBRARY  # of its host, with the kernels inside
    if target.kind.name in ("metal", "webgpu"):
        return UNSERVED
    if not target.kind.is_cpu:
        return NOTHING
    triple = target.parsed_triple
    if triple.table in ("nvptx", "amdgcn"):
        return NOTHING
    if triple.is_page:
        return PAGE
    if triple.object_format == "coff":
        return OBJECT
    if triple.object_format != "elf" or triple.arch not in _SERVED:
        return FIRMWARE if triple.is_bare and target.kind.name == "c" else UNSERVED
    return LIBRARY if triple.system in ("linux", "android", "unknown") else FIRMWARE
