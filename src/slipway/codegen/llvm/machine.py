"""LLVM text to optimised object bytes, through llvmlite."""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from slipway.codegen import cache
from slipway.errors import CodegenError, ToolchainError
from slipway.target import Target

_LOCK = threading.RLock()
_PER_THREAD = threading.local()
_VECTOR = re.compile(r"<\d+ x ")


@lru_cache(maxsize=1)
def _llvm() -> Any:
    """Import and initialise llvmlite."""
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise ToolchainError(
            "compiling with target llvm needs llvmlite: pip install 'slipway[compile]'"
        ) from error
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


def _machine(triple: str, cpu: str, features: str, abi: str, level: int) -> Any:
    """Return this thread's machine: one cannot be shared between threads."""
    known: dict[Any, Any] = _PER_THREAD.__dict__.setdefault("machines", {})
    key = (triple, cpu, features, abi, level)
    if key not in known:
        with _LOCK:
            known[key] = (
                _llvm()
                .Target.from_triple(triple)
                .create_target_machine(
                    cpu=cpu,
                    features=features,
                    opt=level,
                    reloc="pic",
                    codemodel="default",
                    abiname=abi,
                )
            )
    return known[key]


def machine_of(target: Target) -> Any:
    """Return llvmlite's TargetMachine for `target`."""
    triple = target.parsed_triple
    abi = str(target.attrs.get("mabi", ""))
    if not abi and triple.arch == "riscv64":
        abi = "lp64d" if target.has_feature("d") else "lp64"
    level = int(target.attrs.get("opt-level", 3))
    return _machine(triple.llvm, target.cpu, ",".join(target.llvm_features), abi, level)


class CompiledText:
    """One module of LLVM text, compiled: object bytes at once, assembly and IR when asked for.

    Instances may be made in several threads at once.
    """

    def __init__(self, text: str, target: Target) -> None:
        self._text, self._target = text, target
        self.object_bytes = _cached(text, target, self._compile)

    def _compile(self) -> bytes:
        with _optimised(self._text, self._target) as module:
            return _emit_object(machine_of(self._target), module)

    def assembly(self) -> str:
        """Return the assembly text of the module."""
        with _optimised(self._text, self._target) as module, _LOCK:
            return str(machine_of(self._target).emit_assembly(module))

    def optimised_ir(self) -> str:
        """Return the LLVM IR after optimisation."""
        with _optimised(self._text, self._target) as module, _LOCK:
            return str(module)


@contextmanager
def _optimised(text: str, target: Target) -> Iterator[Any]:
    """Parse and optimise `text`; the module is gone after the block.

    It must not outlive it: left to the garbage collector, its context could be freed first.
    """
    machine = machine_of(target)
    with _LOCK:
        context = _llvm().create_context()
        module = _parse(text, target, machine, context)
    try:
        level = min(int(target.attrs.get("opt-level", 3)), 2)
        _optimise(_llvm(), module, machine, level, _VECTOR.search(text) is None)
        yield module
    finally:
        module.close()
        context.close()


def text_key(text: str, target: Target) -> str:
    """Return the name under which the kernel cache has the object of `text`."""
    level, abi = (str(target.attrs.get(name, "")) for name in ("opt-level", "mabi"))
    triple = target.parsed_triple.llvm
    return cache.key_of(text, triple, target.cpu, level, abi, *target.llvm_features)


def _cached(text: str, target: Target, compile_: Callable[[], bytes]) -> bytes:
    """Return the object of `text` from the kernel cache, or compile and keep it."""
    key = text_key(text, target)
    data = cache.load(key)
    if data is None:
        data = compile_()
        cache.store(key, data)
    return data


def compile_texts(texts: Sequence[str], target: Target) -> list[CompiledText]:
    """Compile several modules, on all cores."""
    workers = os.cpu_count() or 1
    if len(texts) < 2 or workers < 2:
        return [CompiledText(text, target) for text in texts]
    order = sorted(range(len(texts)), key=lambda k: -len(texts[k]))  # the longest first
    jobs = {k: _pool(os.getpid(), workers).submit(CompiledText, texts[k], target) for k in order}
    return [jobs[k].result() for k in range(len(texts))]


def submit(text: str, target: Target) -> Future[CompiledText]:
    """Compile a module in another thread."""
    return _pool(os.getpid(), os.cpu_count() or 1).submit(CompiledText, text, target)


@lru_cache(maxsize=1)
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    """Return the threads of this process (a fork has none); they keep their target machines."""
    return ThreadPoolExecutor(workers, "slipway-llvm")


def _parse(text: str, target: Target, machine: Any, context: Any) -> Any:
    try:
        module = _llvm().parse_assembly(text, context)
    except RuntimeError as error:
        raise CodegenError(f"LLVM cannot read the IR: {error}") from error
    module.triple = target.parsed_triple.llvm
    module.data_layout = str(machine.target_data)
    return module


def bitcode_text(data: bytes) -> str:
    """Return LLVM bitcode as text."""
    with _LOCK:
        context = _llvm().create_context()
        try:
            module = _llvm().parse_bitcode(data, context)
        except RuntimeError as error:
            raise CodegenError(f"LLVM cannot read the bitcode: {error}") from error
        try:
            return str(module)
        finally:
            module.close()
            context.close()


def _unlocked(name: str) -> Any:
    """Return a function of llvmlite's C interface without the lock around it.

    llvmlite lets one thread at a time into LLVM.  Passes and code generation are safe beside each
    other as long as modules, contexts and target machines are not shared, as is the case here.
    """
    from llvmlite.binding import ffi

    wrapped = getattr(ffi.lib, name)
    return getattr(wrapped, "_cfn", wrapped)


def _optimise(llvm: Any, module: Any, machine: Any, level: int, scalar: bool) -> None:
    """Run LLVM's passes.

    Code that has explicit vectors is scheduled: it gets the simplification passes only.  Code
    without any (`scalar`) gets the whole pipeline, with the loop vectoriser.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.loop_interleaving = scalar
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    if scalar:
        passes = builder.getModulePassManager()
        _unlocked("LLVMPY_RunNewModulePassManager")(passes, module, builder)
        return
    passes = builder.getFunctionPassManager()
    run = _unlocked("LLVMPY_RunNewFunctionPassManager")
    for function in module.functions:
        if not function.is_declaration:
            run(passes, function, builder)


def _emit_object(machine: Any, module: Any) -> bytes:
    from llvmlite.binding import ffi

    with ffi.OutputString() as problem:
        buffer = _unlocked("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, problem)
        if not buffer:
            raise CodegenError(f"LLVM cannot generate code for this target: {problem}")
    try:
        start = ffi.lib.LLVMPY_GetBufferStart(buffer)
        return ctypes.string_at(start, ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


@lru_cache(maxsize=64)
def part_object(part: str, target: Target) -> bytes:
    """Return the object of one part of codegen/glue, "packed" or "support" say, for `target`.

    The text is optimised already (tools/generate_glue.py), so it only passes the back end.
    """
    from slipway.codegen.llvm.module import emit_part

    text = emit_part(part, target)

    def compile_() -> bytes:
        machine = machine_of(target)
        with _LOCK:
            context = _llvm().create_context()
            module = _parse(text, target, machine, context)
            try:
                return bytes(machine.emit_object(module))
            finally:
                module.close()
                context.close()

    return _cached(text, target, compile_)


def glue_object(target: Target) -> bytes:
    """Return the object of the argument checks and slots for `target`."""
    return part_object("packed", target)


# Names that an object mentions only if it calls them.
_SUPPORT = (b"slw_fm", b"memcpy", b"memset", b"memmove", b"__divdi3", b"__udivdi3", b"__moddi3",
            b"__umoddi3")  # fmt: skip


def with_parts(code: Sequence[bytes], target: Target) -> tuple[bytes, ...]:
    """Return the objects `code` and those of codegen/glue that they need."""
    objects = [*code, glue_object(target)]
    if any(b"slw_call_packed" in data for data in code):
        objects.append(part_object("call", target))
    return (*objects, *support_parts(objects, target))


def support_parts(code: Sequence[bytes], target: Target) -> tuple[bytes, ...]:
    """Return the objects with what LLVM calls by itself: copies, divisions, fmod."""
    objects = []
    if any(name in data for name in _SUPPORT for data in code):
        objects.append(part_object("support", target))
    if target.parsed_triple.arch == "arm" and any(
        b"__aeabi_" in data for data in (*code, *objects)
    ):
        objects.append(part_object("arm", target))
    return tuple(objects)
