"""What compilation gives: objects, sources and names; loading and linking happen elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from slipway.arguments import file_to_write, text_of
from slipway.codegen.device_code import DeviceCode
from slipway.errors import CodegenError, ToolchainError
from slipway.runtime.libraries.library import DEVICE_CODE_SYMBOL
from slipway.target import Target
from slipway.toolchain.tempdir import scratch
from slipway.toolchain.zig import run_zig


@dataclass
class CompiledModule:
    """Functions compiled for one CPU target.

    `objects` are the bytes of object files (this module's own first, then the argument checks);
    linking them with nothing else gives a library without undefined symbols.
    `functions` are the names that ``__tvm_ffi_<name>`` exists for, `entry` the main one, and
    `metadata` the JSON text of ``__slipway_metadata``.  `external` are the symbols that calls of
    foreign C functions left undefined.  `device` is what the functions launch on a device; a
    library carries it, an object of the host's code does not.  `lists_functions`: an object that a
    program links tells the runtime what is in it (compiler/system_library.py).
    """

    target: Target
    functions: tuple[str, ...]
    entry: str
    metadata: str
    make_objects: Callable[[], tuple[bytes, ...]]
    sources: dict[str, Callable[[], str]] = field(repr=False)
    external: tuple[str, ...] = ()
    device: DeviceCode | None = None
    lists_functions: bool = False

    @cached_property
    def objects(self) -> tuple[bytes, ...]:
        """The object files' bytes; C is compiled when they are first asked for."""
        return self.make_objects()

    @cached_property
    def library_objects(self) -> tuple[bytes, ...]:
        """The objects of a library: those of the functions, and the code of a device as data."""
        if self.device is None:
            return self.objects
        from slipway.codegen.llvm.data import data_object

        code = data_object({DEVICE_CODE_SYMBOL: self.device.packed()}, self.device.host)
        return (*self.objects, code)

    def get_source(self, fmt: str = "") -> str:
        """Return the text in format "ll", "asm" ("s") or "c"; the default one when empty.

        Raises CodegenError for a format this module has not.
        """
        text_of(fmt, "the format of the source", "'asm'")
        fmt = {"s": "asm", "llvm": "ll", "": next(iter(self.sources))}.get(fmt, fmt)
        if fmt not in self.sources:
            raise CodegenError(
                f"a module compiled for {self.target.kind.name} has no source in format {fmt!r}: "
                f"it has {', '.join(self.sources)}"
            )
        return self.sources[fmt]()

    def save(self, path: str | Path, fmt: str = "") -> None:
        """Write one file by its ending: .o, .ll, .s, .asm or .c (`fmt` overrides the ending)."""
        path = file_to_write(path, "the file to save", "kernel.o")
        kind = fmt or path.suffix.lstrip(".")
        if kind in ("o", "obj"):
            path.write_bytes(self.object_bytes())
            return
        path.write_text(self.get_source(kind))

    def object_bytes(self) -> bytes:
        """Return one relocatable object with everything, made by ``ld.lld -r``."""
        if len(self.objects) == 1:
            return self.objects[0]
        return merge_objects(self.objects)


def merge_objects(objects: tuple[bytes, ...]) -> bytes:
    """Join ELF or WebAssembly objects into one relocatable object.

    Raises ToolchainError for objects of other formats, which no linker here can join.
    """
    linkers = {b"\x7fELF": "ld.lld", b"\0asm": "wasm-ld"}
    linker = linkers.get(objects[0][:4])
    if linker is None:
        raise ToolchainError(
            "objects for Windows and macOS cannot be joined into one here: write an archive of "
            "them, with a name that ends in .a"
        )
    with scratch() as folder:
        paths = []
        for number, data in enumerate(objects):
            path = Path(folder) / f"{number}.o"
            path.write_bytes(data)
            paths.append(str(path))
        out = Path(folder) / "out.o"
        run_zig([linker, "-r", "-o", str(out), *paths], purpose="joining object files")
        return out.read_bytes()
