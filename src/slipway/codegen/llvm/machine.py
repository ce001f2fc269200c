"""LLVM text to optimised object bytes, in the processes of ``workers.py``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from slipway.codegen import cache
from slipway.codegen.llvm import workers
from slipway.codegen.llvm.module import emit_part
from slipway.target import Target

LARGEST_POOL = 16  # processes at once: lowering, which feeds them, goes on in one thread


def _settings(target: Target) -> dict[str, Any]:
    """Return what LLVM's TargetMachine for `target` is made from."""
    triple = target.parsed_triple
    return {
        "triple": triple.llvm,
        "cpu": target.cpu,
        "features": ",".join(target.llvm_features),
        "abi": target.abi,
        "level": int(target.attrs.get("opt-level", 3)),
        "portable": triple.is_page,
        "loop_instructions": triple.has_loop_instructions,
        "asked": ",".join(target.mattr),  # for errors
    }


_WITHOUT_TIMING: set[str] = set()  # CPUs on which LLVM has ended for want of it


def _request(
    want: str, text: str, target: Target, what: str, task: workers.WorkerTask | None = None
) -> bytes:
    settings = _settings(target)
    if settings["portable"] and want != "part":
        from slipway.codegen.llvm.pointer_steps import step_pointers

        text = step_pointers(workers.request("ir", text.encode(), settings, what, task).decode())
        if want == "ir":
            return text.encode()
        settings["optimised"] = True
    if settings["cpu"] not in _WITHOUT_TIMING:
        try:
            return workers.request(want, text.encode(), settings, what, task)
        except workers.IncompleteModelError:
            _WITHOUT_TIMING.add(settings["cpu"])
    # The same instructions, in the order that suits any processor with them.
    settings |= {"cpu": "generic", "features": ",".join(f"+{f}" for f in sorted(target.features))}
    return workers.request(want, text.encode(), settings, what, task)


class CompiledText:
    """One module of LLVM text, compiled: object bytes at once, assembly and IR when asked for.

    `what` is its name in errors.  Instances may be made in several threads at once.
    """

    def __init__(
        self,
        text: str,
        target: Target,
        what: str = "a module",
        task: workers.WorkerTask | None = None,
    ) -> None:
        self._text, self._target, self._what = text, target, what
        self.object_bytes = _cached(
            text, target, lambda: _request("object", text, target, what, task)
        )

    def assembly(self) -> str:
        """Return the assembly text of the module."""
        return assembly_of(self._text, self._target, self._what)

    def optimised_ir(self) -> str:
        """Return the LLVM IR after optimisation."""
        return _request("ir", self._text, self._target, self._what).decode()


def assembly_of(text: str, target: Target, what: str) -> str:
    """Return the assembly text of a module; `what` is its name in errors."""
    return _request("asm", text, target, what).decode()


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


class Job:
    """A module that is compiled beside this thread; `what` is its name in errors."""

    def __init__(self, text: str, target: Target, what: str) -> None:
        self._task = workers.WorkerTask()
        self._future: Future[CompiledText] = _pool(os.getpid()).submit(
            CompiledText, text, target, what, self._task
        )

    def result(self) -> CompiledText:
        """Return the module when it is done; raises what compiling it raised."""
        return self._future.result()

    def exception(self) -> BaseException | None:
        """Return what compiling raised, when it is done."""
        return self._future.exception()

    def cancel(self) -> None:
        """Do not compile it; LLVM's process is ended where that has begun."""
        self._future.cancel()
        self._task.give_up()


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the threads of this process (a fork has none), which wait for LLVM's processes."""
    return ThreadPoolExecutor(min(os.cpu_count() or 1, LARGEST_POOL), "slipway-llvm")


def bitcode_text(data: bytes) -> str:
    """Return LLVM bitcode as text."""
    return workers.request("text", data, {}, "the bitcode").decode()


@lru_cache(maxsize=64)
def part_object(part: str, target: Target) -> bytes:
    """Return the object of one part of codegen/glue, "packed" or "support" say, for `target`.

    The text is optimised already (tools/generate_glue.py), so it only passes the back end.
    """
    text = emit_part(part, target)

    return _cached(text, target, lambda: _request("part", text, target, f"the part {part}"))


def glue_object(target: Target) -> bytes:
    """Return the object of the argument checks and slots for `target`."""
    return part_object("packed", target)


# Names that an object mentions only if it calls them.
_SUPPORT = (b"slw_fm", b"memcpy", b"memset", b"memmove", b"__divdi3", b"__udivdi3", b"__moddi3",
            b"__umoddi3")  # fmt: skip

_OF_ARM = (b"__aeabi_", b"__clzsi2")


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
    called = any(name in data for name in _OF_ARM for data in (*code, *objects))
    if called and target.parsed_triple.calls_aeabi:
        objects.append(part_object("arm", target))
    return tuple(objects)
