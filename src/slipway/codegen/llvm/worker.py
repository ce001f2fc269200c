"""A process that holds LLVM: it reads requests, and writes what LLVM makes of them.

LLVM ends its process when an assertion fails or an inline assembler line is wrong; the process
that ends is this one.  `workers.py` starts it as a script with the folder of llvmlite as its
argument.  It needs nothing of Slipway, and ends when its input does, or when nothing has come for
`IDLE_S` seconds.

A request is ``u32 size of the head, u64 size of the body``, a head of JSON and a body.  The head
names what is wanted: "object", "asm" or "ir" (of LLVM IR, optimised), "part" (the object as the IR
stands), or "text" (of bitcode); and triple, cpu, features, abi, level, portable (another compiler
makes machine code of the result), loop_instructions (the processor has them), optimised (that has
been done).  The answer is ``u8 status, u64 size`` and the result; with status `REFUSED` it says why
there is none.
"""

from __future__ import annotations

import json
import os
import queue
import re
import resource
import signal
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

REQUEST, ANSWER = struct.Struct("<IQ"), struct.Struct("<BQ")
DONE, REFUSED = range(2)
NO_LLVM = 3  # the exit status where LLVM cannot be loaded
IDLE_S = 60.0
_VECTOR = re.compile(r"<\d+ x ")
_MASK = re.compile(rb"<\d+ x i1>")
# LLVM's defaults of what back ends change for all that the process compiles later: WebAssembly and
# RISC-V from how many cases on a switch is a table, some processors of ARM how large one may be.
_OF_THE_PROCESS = ("--min-jump-table-entries=4", "--max-jump-table-size=4294967295")
_Request = tuple[dict[str, Any], bytes]


class Compiler:
    """LLVM.  What it makes of a request is the same, whatever it was asked before."""

    def __init__(self) -> None:
        import llvmlite.binding

        self.llvm: Any = llvmlite.binding
        self.llvm.initialize_all_targets()
        self.llvm.initialize_all_asmprinters()
        self.llvm.initialize_native_asmparser()  # for inline assembler; llvmlite has no others
        self._key: tuple[Any, ...] | None = None
        self._used: Any = None

    def answer(self, head: dict[str, Any], body: bytes) -> bytes:
        """Return what a request asks for; raises RuntimeError when LLVM refuses it."""
        if head["want"] == "text":
            with self._module(lambda context: self.llvm.parse_bitcode(body, context)) as module:
                return str(module).encode()
        if b"\0" in body:
            raise RuntimeError("the text has a NUL character, where LLVM would end it")
        # Strength reduction keeps one address in a loop and forgets of the others that they do not
        # wrap, without which no offset goes into a load of WebAssembly (see pointer_steps.py).
        self.llvm.set_option("slipway", f"--disable-lsr={str(head['portable']).lower()}")
        # The pass that makes Armv8.1-M's loops of hardware asserts that a predicated instruction's
        # block begins within the loop, where others have moved it before (ARMLowOverheadLoops).
        predicated = head["loop_instructions"] and _MASK.search(body) is not None
        self.llvm.set_option("slipway", f"--disable-arm-loloops={str(predicated).lower()}")
        machine = self._machine(head)
        text = body.decode()
        with self._module(lambda context: self.llvm.parse_assembly(text, context)) as module:
            module.triple = head["triple"]
            module.data_layout = str(machine.target_data)
            module.verify()
            if head["want"] != "part" and not head.get("optimised"):
                self._optimise(module, machine, head, not _VECTOR.search(text))
            if head["want"] == "asm":
                return bytes(machine.emit_assembly(module).encode())
            if head["want"] == "ir":
                return str(module).encode()
            declared = [f.name.encode() for f in module.functions if f.is_declaration]
            made = bytes(machine.emit_object(module))
        for name in declared:  # an intrinsic becomes instructions; no library defines others
            if name.startswith(b"llvm.") and b"\0" + name + b"\0" in made:
                raise RuntimeError(f"there is no intrinsic {name.decode()}")
        return made

    def _machine(self, head: dict[str, Any]) -> Any:
        """Return the machine of the last request, or for another processor a new one.

        A new one sets `_OF_THE_PROCESS` as its processor wants them; a used one would not again.
        """
        key = tuple(head[name] for name in ("triple", "cpu", "features", "level", "abi"))
        if key != self._key:
            for option in _OF_THE_PROCESS:
                self.llvm.set_option("slipway", option)
            triple, cpu, features, level, abi = key
            self._used = self.llvm.Target.from_triple(triple).create_target_machine(
                cpu=cpu, features=features, opt=level, reloc="pic", codemodel="default", abiname=abi
            )
            self._key = key
        return self._used

    @contextmanager
    def _module(self, parse: Any) -> Iterator[Any]:
        """Parse in a context of its own, which must not be freed before the module is."""
        context = self.llvm.create_context()
        try:
            module = parse(context)
            try:
                yield module
            finally:
                module.close()
        finally:
            context.close()

    def _optimise(self, module: Any, machine: Any, head: dict[str, Any], scalar: bool) -> None:
        """Run LLVM's passes.

        Code that has explicit vectors is scheduled: it gets the simplification passes only.  Code
        without any (`scalar`) gets the whole pipeline, with the loop vectoriser.  Loops are
        unrolled by the last compiler, which knows the registers.
        """
        options = self.llvm.create_pipeline_tuning_options(speed_level=min(head["level"], 2))
        options.loop_vectorization = options.loop_interleaving = scalar
        options.slp_vectorization = False
        options.loop_unrolling = not head["portable"]
        builder = self.llvm.create_pass_builder(machine, options)
        if scalar:
            builder.getModulePassManager().run(module, builder)
            return
        passes = builder.getFunctionPassManager()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)


def _read(source: BinaryIO, into: queue.Queue[_Request]) -> None:
    """Pass on requests; end the process with its input, even while LLVM is at work."""
    while len(sizes := source.read(REQUEST.size)) == REQUEST.size:
        head_bytes, body_bytes = REQUEST.unpack(sizes)
        head, body = source.read(head_bytes), source.read(body_bytes)
        if len(head) < head_bytes or len(body) < body_bytes:
            break
        into.put((json.loads(head), body))
    os._exit(0)


def _settle() -> BinaryIO:
    """Keep apart from the program that asks; return where answers go.

    What LLVM prints goes to stderr.  Ctrl-C is for the program; so is memory, when it runs out.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
        file.write("500")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def main() -> None:
    """Answer requests until there are no more."""
    answers = _settle()
    requests: queue.Queue[_Request] = queue.Queue()
    source = os.fdopen(0, "rb")
    threading.Thread(target=_read, args=(source, requests), daemon=True).start()
    sys.path.append(sys.argv[1])
    try:
        compiler = Compiler()
    except (ImportError, OSError, RuntimeError) as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(NO_LLVM)
    while True:
        try:
            head, body = requests.get(timeout=IDLE_S)
        except queue.Empty:
            os._exit(0)
        try:
            status, result = DONE, compiler.answer(head, body)
        except (RuntimeError, ValueError) as error:
            status, result = REFUSED, str(error).encode()
        try:
            answers.write(ANSWER.pack(status, len(result)))
            answers.write(result)
            answers.flush()
        except OSError:
            os._exit(0)


if __name__ == "__main__":
    main()
