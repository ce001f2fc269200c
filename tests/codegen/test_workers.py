"""LLVM in processes of its own: what ends one is an error of the kernel, and the next one works."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import CancelledError
from contextlib import nullcontext
from functools import partial

import pytest

from slipway import te
from slipway.codegen.llvm import machine, workers
from slipway.codegen.llvm.backend import compile_sources
from slipway.codegen.llvm.machine import CompiledText
from slipway.codegen.llvm.worker import Compiler
from slipway.codegen.source import FunctionSource
from slipway.errors import CodegenError, LoweringError
from slipway.target import Target

TARGET = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64")
GOOD = "define i32 @good() {\n  ret i32 1\n}\n"
# LLVM's answers to these: a fatal error, a failed assertion, a refusal of the verifier, an exit.
NO_INSTRUCTION = """
declare <16 x float> @llvm.x86.avx512.rcp14.ps.512(<16 x float>, <16 x float>, i16)
define <16 x float> @f(<16 x float> %x) {
  %y = call <16 x float> @llvm.x86.avx512.rcp14.ps.512(<16 x float> %x, <16 x float> %x, i16 -1)
  ret <16 x float> %y
}
"""
ABORT = """
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
define void @f() {
  %t = call token @llvm.coro.id(i32 0, ptr null, ptr null, ptr null)
  ret void
}
"""
NO_INTRINSIC = """
declare float @llvm.sqrt.f32(double)
define float @f(double %x) {
  %y = call float @llvm.sqrt.f32(double %x)
  ret float %y
}
"""
NO_ASSEMBLER = 'define void @f() {\n  call void asm sideeffect "bogus %rax", ""()\n  ret void\n}\n'
# Two contiguous elements, which are loaded as a pair.
WITHOUT_TIMING = """
define void @f(ptr %p, ptr %q, i64 %n) {
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
  %at = getelementptr float, ptr %p, i64 %i
  %beside = getelementptr float, ptr %at, i64 1
  %a = load float, ptr %at
  %b = load float, ptr %beside
  %r = fmul float %a, %b
  store float %r, ptr %q
  %next = add i64 %i, 3
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret void
}
"""


@pytest.fixture(autouse=True)
def nothing_remembered(cache_folder):
    return cache_folder


def compile_text(text, target=TARGET):
    return CompiledText(text, target, "the kernel conv").object_bytes


def processes():
    return [worker.process.pid for worker in workers._pool.all]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            NO_INSTRUCTION,
            "LLVM refuses the kernel conv for x86_64.*the processor has no instruction",
        ),
        (ABORT, "LLVM ended with SIGABRT while it compiled the kernel conv for .*Assertion"),
        (NO_INTRINSIC, "LLVM refuses the kernel conv for x86_64.*sqrt"),
        (NO_ASSEMBLER, "LLVM refuses the kernel conv for .*error: .*bogus"),
        ("define void @f() {", "LLVM refuses the kernel conv .*error: found end of file"),
        (GOOD + "\0", "LLVM refuses the kernel conv .*NUL"),
    ],
)
def test_what_llvm_cannot_compile_is_an_error_with_the_kernels_name(text, words):
    target = Target("llvm") if text == NO_ASSEMBLER else TARGET
    with pytest.raises(CodegenError, match=words):
        compile_text(text, target)
    assert compile_text(GOOD)[:4] == b"\x7fELF"


def test_processors_whose_timing_llvm_lacks_are_compiled_for():
    """LLVM ends on the first such instruction; the order of any processor does as well."""
    target = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=oryon-1")
    assert compile_text(WITHOUT_TIMING, target)[:4] == b"\x7fELF"
    assert compile_text(WITHOUT_TIMING, target)[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("words", "said"),
    [("+xqcia", "rv32"), ("+zdinx", "incompatible"), ("+xsfvfbfexp16e", "to also be specified")],
)
def test_features_that_do_not_fit_each_other_are_refused_in_words(words, said):
    target = Target(f"llvm -mtriple=riscv64-linux-gnu -mattr={words}")
    with pytest.raises(CodegenError, match=f"LLVM refuses .*{said}.*change -mattr"):
        compile_text(GOOD, target)


def test_what_ends_llvm_names_the_features_that_were_asked_for():
    target = Target("llvm -mtriple=x86_64-linux-gnu -mattr=+avx2")
    with pytest.raises(CodegenError, match=r"Perhaps -mattr=\+avx2 does not fit"):
        compile_text(ABORT, target)


def test_assembler_is_for_the_processor_of_this_machine():
    word = 'define void @f() {\n  call void asm sideeffect "nop", ""()\n  ret void\n}\n'
    assert compile_text(word, Target("llvm"))
    other = "riscv64" if Target("llvm").parsed_triple.arch != "riscv64" else "aarch64"
    with pytest.raises(CodegenError, match=r"conv .*inline assembler.*import_c"):
        compile_text(word, Target(f"llvm -mtriple={other}-linux-gnu"))


def test_the_text_that_ended_llvm_is_kept_for_a_report(cache_folder):
    with pytest.raises(CodegenError, match="please report it with the file"):
        compile_text(ABORT)
    (kept,) = (cache_folder / "failed").iterdir()
    assert kept.read_text() == ABORT


def test_of_many_in_threads_only_the_bad_ones_fail():
    texts = [GOOD.replace("1", str(n)) for n in range(12)]
    texts[3] = texts[8] = ABORT
    jobs = [machine.Job(text, TARGET, f"the kernel k{n}") for n, text in enumerate(texts)]
    for n, job in enumerate(jobs):
        if n in (3, 8):
            assert f"the kernel k{n} for" in str(job.exception())
        else:
            assert job.result().object_bytes[:4] == b"\x7fELF"


def test_a_process_that_went_away_is_replaced():
    compile_text(GOOD)
    for worker in workers._pool.idle:
        worker.process.stdin.close()  # as if nothing had come for a minute
        worker.process.wait()
        worker.process.stdin = open(os.devnull, "wb", buffering=0)  # noqa: PTH123, SIM115
    assert compile_text(GOOD.replace("1", "2"))


def test_a_process_that_was_killed_says_that_memory_may_have_run_out(monkeypatch):
    compile_text(GOOD)
    for pid in processes():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(CodegenError, match="ended by the system while it compiled the kernel conv"):
        compile_text(GOOD.replace("1", "2"))


@pytest.mark.parametrize("said", ["by the environment", "for a block"])
def test_what_takes_too_long_is_ended(monkeypatch, said):
    if said == "by the environment":
        monkeypatch.setenv("SLIPWAY_COMPILE_LIMIT_S", "0.01")
    before = processes()
    slow = "".join(f"  %v{n} = udiv i1024 %v{n - 1}, %v{max(0, n - 2)}\n" for n in range(1, 400))
    limit = workers.limited(0.01) if said == "for a block" else nullcontext()
    with limit, pytest.raises(CodegenError, match=r"still compiling .* conv .* after 0.01 s"):
        compile_text(f"define i1024 @f(i1024 %v0) {{\n{slow}  ret i1024 %v399\n}}\n")
    assert set(processes()) <= set(before)


def test_bad_bitcode_is_refused():
    with pytest.raises(CodegenError, match="LLVM refuses the bitcode"):
        machine.bitcode_text(b"BC\xc0\xdeabcd")


def test_a_fork_has_processes_of_its_own():
    compile_text(GOOD)
    ours = set(processes())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, as here
        child = os.fork()
    if child == 0:
        status = 1
        try:
            if not processes() and compile_text(GOOD.replace("1", "3")):
                status = 0
        finally:
            workers._end_all()
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert compile_text(GOOD.replace("1", "4"))
    assert ours <= set(processes())


_SCRIPT = """
import os, sys
from slipway.codegen.llvm import machine, workers
from slipway.target import Target
machine.CompiledText({text!r}, Target({target!r}), "x")
print(*[w.process.pid for w in workers._pool.all], flush=True)
{rest}
"""


def run_script(rest):
    text = _SCRIPT.format(text=GOOD, target=str(TARGET), rest=rest)
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SLIPWAY_KERNEL_CACHE": "0"},
    ), text


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


SLOW = "define i1024 @f(i1024 %v0, i1024 %w) {{\n{}  ret i1024 %v{}\n}}\n"


def slow_text(steps):
    """Divisions that LLVM cannot fold, each of which it writes as a long program."""
    lines = (
        f"  %x{n} = xor i1024 %v{n - 1}, {n}\n  %v{n} = udiv i1024 %x{n}, %w\n"
        for n in range(1, steps + 1)
    )
    return SLOW.format("".join(lines), steps)


def test_a_module_that_nobody_waits_for_ends_llvm_at_once():
    compile_text(GOOD)
    jobs = [machine.Job(slow_text(400 + n), TARGET, f"the kernel k{n}") for n in range(8)]
    while not any(job._task._process for job in jobs):
        time.sleep(0.01)
    began = time.monotonic()
    for job in jobs:
        job.cancel()
    for job in jobs:
        with pytest.raises(CancelledError):
            job.result()
    assert time.monotonic() - began < 5  # the one that has begun is not waited for
    assert compile_text(GOOD.replace("1", "9"))[:4] == b"\x7fELF"


def test_a_module_that_is_done_does_not_cost_the_next_one_its_process():
    job = machine.Job(GOOD, TARGET, "the kernel k")
    job.result()
    job.cancel()
    before = processes()
    assert compile_text(GOOD.replace("1", "8"))[:4] == b"\x7fELF"
    assert processes() == before


@pytest.mark.parametrize("problem", [LoweringError("no schedule"), KeyboardInterrupt()])
@pytest.mark.parametrize("phase", ["lowering", "code"])
def test_a_failed_build_leaves_nothing_to_be_compiled(monkeypatch, problem, phase):
    requested = []

    def request(want, body, settings, what, task):
        requested.append(what)
        if phase == "code":
            raise problem
        while not task.is_given_up:
            time.sleep(0.01)
        raise CancelledError

    def lowered(number):
        if phase == "lowering" and number == 39:
            raise problem
        a = te.placeholder((4,), name="A")
        b = te.compute((4,), lambda i: a[i] + float(number))
        return te.lower(te.create_schedule(b.op), [a, b], name=f"k{number}")

    def give_up(task):
        given_up(task)
        time.sleep(0.02)  # as where other programs run: what can begin meanwhile does

    given_up = workers.WorkerTask.give_up
    monkeypatch.setattr(workers.WorkerTask, "give_up", give_up)
    monkeypatch.setattr(workers, "request", request)
    sources = [FunctionSource(f"k{n}", partial(lowered, n)) for n in range(40)]
    with pytest.raises(type(problem)):
        compile_sources(sources, TARGET, "k0", "test")
    machine._pool(os.getpid()).submit(int).result(timeout=20)  # all that waited is through
    if phase == "lowering":
        assert len(requested) <= min(os.cpu_count(), machine.LARGEST_POOL)


def test_what_was_interrupted_can_be_asked_for_again(monkeypatch):
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0)
    func = te.lower(te.create_schedule(b.op), [a, b], name="k")
    sources = [FunctionSource(f"k{n}", lambda: func) for n in range(2)]
    module = compile_sources(sources, TARGET, "k0", "test", later=True)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(workers, "request", interrupted)
    with pytest.raises(KeyboardInterrupt):
        module.object_bytes()
    monkeypatch.undo()
    assert module.object_bytes()[:4] == b"\x7fELF"


@pytest.mark.parametrize("rest", ["", "os.kill(os.getpid(), 9)", "raise SystemExit(3)"])
def test_no_process_is_left_when_the_program_ends(rest):
    """The program is read from stdin: it has no file that a process could be started from."""
    process, text = run_script(rest)
    out, problems = process.communicate(text, timeout=60)
    assert problems == ""
    pids = [int(word) for word in out.split()]
    assert pids
    deadline = time.monotonic() + 10
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_alive, pids))


def test_ctrl_c_is_for_the_program_alone():
    compile_text(GOOD)
    for pid in processes():
        assert os.getpgid(pid) != os.getpgrp()
        os.kill(pid, signal.SIGINT)
    assert compile_text(GOOD.replace("1", "5"))


def test_an_interrupt_between_request_and_answer_ends_the_process(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    compile_text(GOOD)
    monkeypatch.setattr(workers._Worker, "_read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compile_text(GOOD.replace("1", "6"))
    monkeypatch.undo()
    assert compile_text(GOOD.replace("1", "7"))


def test_many_threads_at_once():
    found = {}

    def one(n):
        found[n] = workers.request(
            "ir", GOOD.replace("1", str(n)).encode(), machine._settings(TARGET), f"k{n}"
        ).decode()

    threads = [threading.Thread(target=one, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f"ret i32 {n}" in found[n] for n in range(6))


def test_masks_of_vectors_on_a_core_with_hardware_loops():
    """LLVM asserted that a predicated instruction's block begins within its loop."""
    from slipway import relay

    x, y = relay.var("x", shape=(1, 4)), relay.var("y", shape=(2, 1, 1))
    target = "llvm -mtriple=thumbv8.1m.main-none-eabihf -mcpu=cortex-m55"
    library = relay.build(relay.Function([x, y], relay.power(x, y)), target=target).lib
    assert b"fused_power" in b"".join(library.compiled.objects)


SWITCH = """
declare void @f(i32)
define void @g(i32 %x) {
  switch i32 %x, label %end [i32 0, label %a i32 1, label %b i32 2, label %c]
a: call void @f(i32 7) br label %end
b: call void @f(i32 11) br label %end
c: call void @f(i32 3) br label %end
end: ret void
}
""".replace(") br", ")\n  br")


@pytest.mark.parametrize("triple", ["x86_64-linux-gnu", "wasm32", "riscv64-linux-gnu"])
def test_what_was_compiled_before_changes_nothing(triple):
    """WebAssembly's and RISC-V's back ends change what a switch becomes for the whole process."""

    def made(*triples):
        for one in triples:
            head = machine._settings(Target(f"llvm -mtriple={one}")) | {"want": "part"}
            result = compiler.answer(head, SWITCH.encode())
        return result

    compiler = Compiler()
    assert len({made(other, triple) for other in ("x86_64-linux-gnu", "wasm32", triple)}) == 1
