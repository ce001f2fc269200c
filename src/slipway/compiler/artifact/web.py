"""``.wasm`` files: kernels, the model and the runtime in one WebAssembly module without imports."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slipway.codegen.compiled import CompiledModule
from slipway.codegen.llvm.data import data_object, quoted, wasm_section
from slipway.codegen.llvm.machine import CompiledText
from slipway.errors import InternalError
from slipway.runtime.libraries.library import FUNCTION_PREFIX, GRAPH_SYMBOL, PARAMS_SYMBOL
from slipway.toolchain.link import (
    THREADED_WASM_FLAGS,
    Linker,
    linked_bytes,
    write_file,
)

if TYPE_CHECKING:
    from pathlib import Path

    from slipway.compiler.artifact.parts import ModelParts
    from slipway.target import Target

# The C structure slw_image (crt/include/slipway/image.h) with pointers of 32 bits.
_IMAGE = "{ i32, i16, i8, i8, ptr, ptr, ptr, ptr, ptr, i32, ptr, ptr, i32, ptr, i32 }"
_MAGIC, _VERSION, _POINTER_BYTES = 0x494D4C53, 1, 4
METADATA_SECTION = "slipway.metadata"
_IMPORTS, _MEMORY = 2, 2  # the section, and the kind of an import


def web_objects(compiled: CompiledModule, model: ModelParts | None) -> list[bytes]:
    """Return the objects that make compiled functions a program: runtime, table, model."""
    objects = [_runtime(compiled.target)]
    blobs = {}
    if model is not None:
        blobs = {GRAPH_SYMBOL: model.graph_binary}
        if params := model.params:  # else they are in a file of their own
            blobs[PARAMS_SYMBOL] = params
        objects.append(data_object(blobs, compiled.target))
    text = _image(compiled.entry, compiled.functions, {n: len(d) for n, d in blobs.items()})
    objects.append(CompiledText(text, compiled.target, "the table of functions").object_bytes)
    return objects


def _runtime(target: Target) -> bytes:
    from slipway.toolchain.web_runtime import web_runtime

    return web_runtime(threaded=target.shares_memory).read_bytes()


def web_program(code: bytes, model_text: str, target: Target) -> list[bytes]:
    """Return the objects of a model compiled ahead of time: runtime, its code, its description.

    `model_text` is LLVM IR that defines the structure slw_aot_model as ``@slw_web_model``.
    """
    text = model_text + _image("", (), {}, model="@slw_web_model")
    table = CompiledText(text, target, "the description of the program").object_bytes
    return [_runtime(target), code, table]


def write_page(
    out: Path,
    objects: Sequence[bytes],
    target: Target,
    metadata: dict[str, Any],
    cc: Linker | None = None,
    options: Sequence[str] | None = None,
) -> None:
    """Link objects into a module, and append what JavaScript is told of the model."""
    is_shared = target.shares_memory
    options = [*(THREADED_WASM_FLAGS if is_shared else ()), *(options or ())]
    linked = linked_bytes(objects, target.triple, out.name, cc, options=options)
    if is_shared:
        metadata["shared_pages"] = shared_pages(linked)
    write_file(out, linked + metadata_section(metadata))


def metadata_section(metadata: Mapping[str, Any]) -> bytes:
    """Return the section that tells JavaScript of the model, to be appended to a module."""
    text = json.dumps(metadata, separators=(",", ":")).encode()
    name = METADATA_SECTION.encode()
    return wasm_section(0, bytes([len(name)]) + name + text)


def shared_pages(linked: bytes) -> int:
    """Return the pages of 64 KB that a module wants of the memory that it imports.

    JavaScript makes the memory, and is not told by engines how large it must be.
    """
    at = 8
    while at < len(linked):
        section, (size, at) = linked[at], _number(linked, at + 1)
        if section == _IMPORTS:
            break
        at += size
    count, at = _number(linked, at)
    for _ in range(count):
        for _ in range(2):  # names of the module and of what it gives
            size, at = _number(linked, at)
            at += size
        if linked[at] == _MEMORY:
            return _number(linked, at + 2)[0]
        raise InternalError("a module for workers imports something before its memory")
    raise InternalError("a module for workers imports no memory")


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Read a LEB128 number; return it and the place after it."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def _image(entry: str, functions: Sequence[str], sizes: dict[str, int], model: str = "null") -> str:
    """Return LLVM IR of the program's description; the entry is its first function."""
    names = sorted(functions, key=lambda name: name != entry)
    lines = [f"declare i32 @{quoted(FUNCTION_PREFIX + n)}(ptr, ptr, i32, ptr)" for n in names]
    for number, name in enumerate(names):
        data = name.encode()
        text = "".join(f"\\{byte:02X}" for byte in data) + "\\00"
        lines.append(f'@name{number} = private constant [{len(data) + 1} x i8] c"{text}"')
    rows = ", ".join(
        f"{{ ptr, ptr }} {{ ptr @name{number}, ptr @{quoted(FUNCTION_PREFIX + name)} }}"
        for number, name in enumerate(names)
    )
    lines.append(f"@functions = private constant [{len(names)} x {{ ptr, ptr }}] [{rows}]")
    lines += [f"@{symbol} = external constant i8" for symbol in sizes]
    graph, params = (
        (f"ptr @{symbol}, i32 {sizes[symbol]}" if symbol in sizes else "ptr null, i32 0")
        for symbol in (GRAPH_SYMBOL, PARAMS_SYMBOL)
    )
    head = f"i32 {_MAGIC}, i16 {_VERSION}, i8 0, i8 {_POINTER_BYTES}"
    four = ", ".join(["ptr null"] * 4)  # for images that are uploaded
    lines.append(
        f"@slw_web_image = constant {_IMAGE} {{ {head}, {four}, "
        f"ptr @functions, i32 {len(names)}, ptr {model}, {graph}, {params} }}"
    )
    maker = "null"  # without a graph there is no graph executor in the file
    if GRAPH_SYMBOL in sizes:
        maker = "@slw_image_make_graph"
        lines.append(f"declare i32 {maker}(ptr, ptr, ptr)")
    lines.append(f"@slw_web_make_graph = constant ptr {maker}")
    return "\n".join(lines) + "\n"
