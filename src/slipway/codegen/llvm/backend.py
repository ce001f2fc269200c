"""Functions to a `CompiledModule` through LLVM; the kernel cache may know them unlowered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache

from slipway.codegen import cache
from slipway.codegen.compiled import CompiledModule
from slipway.codegen.llvm.machine import CompiledText, Job, text_key, with_parts
from slipway.codegen.llvm.module import (
    ModuleText,
    arena_symbol,
    emit_kernel,
    emit_shell,
    metadata_json,
)
from slipway.codegen.names import check_names
from slipway.codegen.narrow import widen_narrow
from slipway.codegen.snippet_objects import snippet_objects
from slipway.codegen.source import FunctionSource
from slipway.ir.function import PrimFunc
from slipway.target import Target
from slipway.toolchain.elf_rename import rename_symbols

_ARENA = "slw_arena"  # its symbol in objects that libraries share


class _Kernel:
    """A function's object: from the cache, or being compiled by another thread.

    A model's kernel is compiled under names that all libraries share, and renamed for this one;
    objects that are no ELF keep the names that they are compiled under.  Under its key the cache
    has the bytes of arena that the function uses and the key of its text's object.
    """

    def __init__(self, source: FunctionSource, target: Target, arena: str) -> None:
        self.source, self.target = source, target
        shared = bool(source.symbol) and target.parsed_triple.object_format == "elf"
        self.compiled_as = (source.symbol, _ARENA) if shared else (source.name, arena)
        self.symbols = dict(zip(self.compiled_as, (source.name, arena), strict=True))
        self.key = source.key and cache.key_of("kernel", source.key, *self.compiled_as)
        self.arena_bytes = 0
        self.brought: list[bytes] = []
        self._job: Job | None = None
        self._object = self._from_cache()
        if self._object is None:
            self._start()

    def _from_cache(self) -> bytes | None:
        found = cache.load(self.key) if self.key else None
        if found is None:
            return None
        self.arena_bytes = int.from_bytes(found[:8], "little")
        return cache.load(found[8:].decode())

    def _start(self) -> None:
        func = widen_narrow(self.source.lower())
        self.brought = snippet_objects([func], self.target)
        self._shared_text = self._emit(func)
        self.arena_bytes = self._shared_text.arena_bytes
        self._job = Job(self._shared_text.text, self.target, f"the kernel {self.source.name}")

    def _emit(self, func: PrimFunc) -> ModuleText:
        symbol, arena = self.compiled_as
        return emit_kernel(symbol, func, self.target, arena)

    @cached_property
    def _shared_text(self) -> ModuleText:
        """The LLVM IR under shared names; a function that came from the cache is lowered for it."""
        return self._emit(widen_narrow(self.source.lower()))

    def text(self) -> str:
        """Return the LLVM IR under the names of this library."""
        return re.sub(r"(?<=@)[\w.]+", lambda m: self._renamed(m[0]), self._shared_text.text)

    def object_bytes(self) -> bytes:
        """Return the object, when it is done."""
        if self._object is None:
            assert self._job is not None
            self._object = self._job.result().object_bytes
            if self.key and not self.brought:
                size = self.arena_bytes.to_bytes(8, "little")
                text = text_key(self._shared_text.text, self.target)
                cache.store(self.key, size + text.encode())
        if all(shared == own for shared, own in self.symbols.items()):
            return self._object
        return rename_symbols(self._object, self._renamed, self.source.name)

    def cancel(self) -> None:
        """Do not compile the function."""
        if self._job is not None:
            self._job.cancel()

    def _renamed(self, symbol: str) -> str:
        """Return the name in this library of a symbol of the object."""
        prefix = "__tvm_ffi_" if symbol.startswith("__tvm_ffi_") else ""
        shared, dot, rest = symbol.removeprefix(prefix).partition(".")
        return f"{prefix}{self.symbols.get(shared, shared)}{dot}{rest}"


@contextmanager
def _all_or_none(jobs: Sequence[_Kernel | Job]) -> Iterator[None]:
    """Cancel what is in `jobs` when one is refused, or with Ctrl-C: nobody waits for the others."""
    try:
        yield
    except BaseException:
        for job in reversed(jobs):  # those at work last: a thread that is free begins another
            job.cancel()
        raise


def compile_llvm(
    functions: dict[str, PrimFunc], target: Target, entry: str, compiler: str
) -> CompiledModule:
    """Compile `functions` to object code for `target`."""
    sources = [FunctionSource(n, lambda f=f: f) for n, f in functions.items()]  # type: ignore[misc]
    return compile_sources(sources, target, entry, compiler)


def compile_sources(
    sources: Sequence[FunctionSource],
    target: Target,
    entry: str,
    compiler: str,
    later: bool = False,
) -> CompiledModule:
    """Compile `sources` to object code for `target`; `later`: when it is first asked for.

    One function is lowered while others are compiled by LLVM.  A single function without a key
    shares its object with the library's metadata.
    """
    names = [source.name for source in sources]
    check_names(names, target)
    metadata = metadata_json(names, entry, target, compiler)
    arena = arena_symbol(names[0])
    if len(sources) == 1 and not sources[0].key:
        return _single(sources[0], target, entry, metadata)

    @lru_cache(1)
    def kernels() -> list[_Kernel]:
        made: list[_Kernel] = []
        with _all_or_none(made):
            for source in sources:
                made.append(_Kernel(source, target, arena))
        return made

    def shell_text() -> str:
        arena_bytes = max(kernel.arena_bytes for kernel in kernels())
        return emit_shell(metadata, arena, arena_bytes, target)

    @lru_cache(1)
    def objects() -> list[bytes]:
        parts = kernels()
        jobs: list[_Kernel | Job] = [*parts]
        try:
            with _all_or_none(jobs):
                jobs.append(shell := Job(shell_text(), target, "the library's metadata"))
                made = [*(kernel.object_bytes() for kernel in parts), shell.result().object_bytes]
        except BaseException:
            kernels.cache_clear()  # whoever asks again compiles again
            raise
        return [*made, *dict.fromkeys(data for kernel in parts for data in kernel.brought)]

    def texts() -> list[str]:
        return [*(kernel.text() for kernel in kernels()), shell_text()]

    if not later:
        objects()
    return _module(names, objects, texts, target, entry, metadata)


def _single(source: FunctionSource, target: Target, entry: str, metadata: str) -> CompiledModule:
    func = widen_narrow(source.lower())
    arena = arena_symbol(source.name)
    made = emit_kernel(source.name, func, target, arena)
    shell = emit_shell(metadata, arena, made.arena_bytes, target)
    texts = [made.text, shell] if made.arena_bytes else [shell + made.text]
    what = f"the kernel {source.name}"
    objects = [CompiledText(text, target, what).object_bytes for text in texts]
    objects += snippet_objects([func], target)
    return _module([source.name], lambda: objects, lambda: texts, target, entry, metadata)


def _module(
    names: Sequence[str],
    objects: Callable[[], Sequence[bytes]],
    texts: Callable[[], Sequence[str]],
    target: Target,
    entry: str,
    metadata: str,
) -> CompiledModule:
    def joined(form: Callable[[CompiledText], str]) -> Callable[[], str]:
        what = f"the kernels of {names[0]}"
        return lambda: "\n".join(form(CompiledText(text, target, what)) for text in texts())

    return CompiledModule(
        target,
        tuple(names),
        entry,
        metadata,
        lambda: with_parts(objects(), target),
        {
            "ll": joined(CompiledText.optimised_ir),
            "asm": joined(CompiledText.assembly),
            "raw": lambda: "\n".join(texts()),
        },
    )
