"""Functions to a `CompiledModule` through LLVM; the kernel cache may know them unlowered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property

from slipway.codegen import cache
from slipway.codegen.compiled import CompiledModule
from slipway.codegen.llvm.machine import CompiledText, submit, text_key, with_parts
from slipway.codegen.llvm.module import (
    KernelText,
    arena_symbol,
    emit_kernel,
    emit_shell,
    metadata_json,
)
from slipway.codegen.narrow import widen_narrow
from slipway.codegen.snippets import snippet_objects
from slipway.ir.function import PrimFunc
from slipway.target import Target

_NEEDS_ARENA = b"arena"


@dataclass(frozen=True)
class FunctionSource:
    """A function to compile: `lower` returns its target-ready loops, each time the same.

    `key` stands for everything that they are made from (`cache.key_of`); "" where nothing does.
    """

    name: str
    lower: Callable[[], PrimFunc]
    key: str = ""


class _Kernel:
    """A function's object: from the cache, or being compiled by another thread.

    Under its `key` the cache has the bytes of arena that it uses and the key of its text's object.
    """

    def __init__(self, source: FunctionSource, target: Target, arena: str) -> None:
        self.source, self.target, self.arena = source, target, arena
        self.arena_bytes = 0
        self.brought: list[bytes] = []
        self._job: Future[CompiledText] | None = None
        self._object = self._from_cache()
        if self._object is None:
            self._start()

    def _key(self, arena: str) -> str:
        return cache.key_of("kernel", self.source.key, arena)

    def _from_cache(self) -> bytes | None:
        if not self.source.key:
            return None
        found = cache.load(self._key(""))
        if found == _NEEDS_ARENA:
            found = cache.load(self._key(self.arena))
        if found is None:
            return None
        self.arena_bytes = int.from_bytes(found[:8], "little")
        return cache.load(found[8:].decode())

    def _start(self) -> None:
        func = widen_narrow(self.source.lower())
        self.brought = snippet_objects([func], self.target)
        self.text = emit_kernel(self.source.name, func, self.target, self.arena)
        self.arena_bytes = self.text.arena_bytes
        self._job = submit(self.text.text, self.target)

    @cached_property
    def text(self) -> KernelText:
        """The LLVM IR; a function that came from the cache is lowered for it."""
        func = widen_narrow(self.source.lower())
        return emit_kernel(self.source.name, func, self.target, self.arena)

    def object_bytes(self) -> bytes:
        """Return the object, when it is done."""
        if self._object is None:
            assert self._job is not None
            self._object = self._job.result().object_bytes
            if self.source.key and not self.brought:
                self._remember()
        return self._object

    def _remember(self) -> None:
        link = (
            self.arena_bytes.to_bytes(8, "little") + text_key(self.text.text, self.target).encode()
        )
        if self.arena_bytes:
            cache.store(self._key(""), _NEEDS_ARENA)
        cache.store(self._key(self.arena if self.arena_bytes else ""), link)


def compile_llvm(
    functions: dict[str, PrimFunc], target: Target, entry: str, compiler: str
) -> CompiledModule:
    """Compile `functions` to object code for `target`."""
    sources = [FunctionSource(n, lambda f=f: f) for n, f in functions.items()]  # type: ignore[misc]
    return compile_sources(sources, target, entry, compiler)


def compile_sources(
    sources: Sequence[FunctionSource], target: Target, entry: str, compiler: str
) -> CompiledModule:
    """Compile `sources` to object code for `target`.

    One function is lowered while others are compiled by LLVM.  A single function without a key
    shares its object with the library's metadata.
    """
    names = [source.name for source in sources]
    metadata = metadata_json(names, entry, target, compiler)
    arena = arena_symbol(names[0])
    if len(sources) == 1 and not sources[0].key:
        return _single(sources[0], target, entry, metadata)
    kernels = [_Kernel(source, target, arena) for source in sources]
    arena_bytes = max(kernel.arena_bytes for kernel in kernels)
    shell_text = emit_shell(metadata, arena, arena_bytes, target)
    shell = submit(shell_text, target)
    objects = [*(kernel.object_bytes() for kernel in kernels), shell.result().object_bytes]
    brought = list(dict.fromkeys(data for kernel in kernels for data in kernel.brought))

    def texts() -> list[str]:
        return [*(kernel.text.text for kernel in kernels), shell_text]

    return _module(names, objects, brought, texts, target, entry, metadata)


def _single(source: FunctionSource, target: Target, entry: str, metadata: str) -> CompiledModule:
    func = widen_narrow(source.lower())
    arena = arena_symbol(source.name)
    made = emit_kernel(source.name, func, target, arena)
    shell = emit_shell(metadata, arena, made.arena_bytes, target)
    texts = [made.text, shell] if made.arena_bytes else [shell + made.text]
    objects = [CompiledText(text, target).object_bytes for text in texts]
    brought = snippet_objects([func], target)
    return _module([source.name], objects, brought, lambda: texts, target, entry, metadata)


def _module(
    names: Sequence[str],
    objects: Sequence[bytes],
    brought: Sequence[bytes],
    texts: Callable[[], Sequence[str]],
    target: Target,
    entry: str,
    metadata: str,
) -> CompiledModule:
    def joined(form: Callable[[CompiledText], str]) -> Callable[[], str]:
        return lambda: "\n".join(form(CompiledText(text, target)) for text in texts())

    return CompiledModule(
        target,
        tuple(names),
        entry,
        metadata,
        lambda: with_parts([*objects, *brought], target),
        {
            "ll": joined(CompiledText.optimised_ir),
            "asm": joined(CompiledText.assembly),
            "raw": lambda: "\n".join(texts()),
        },
    )
