"""The C session by itself: mutated frames under sanitizers, and what it needs to link."""

import shutil
import subprocess
from pathlib import Path

import pytest

from slipway.toolchain import native

HERE = Path(__file__).parent
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
RPC = sorted((native.CRT / "src").glob("rpc_*.c"))
INCLUDE = ["-I", str(native.include_path())]


def compile_fuzzer(compiler, out, *flags):
    """Compile the session and its fuzzer under sanitizers; return the finished process."""
    parts = ("device", "error", "format", "object", "sha256", "status", "tensor", "timer")
    needed = [
        *RPC,
        *(native.CRT / "src" / f"{part}.c" for part in parts),
        native.CRT / "posix" / "platform.c",
        HERE / "rpc_session_fuzz.c",
    ]
    sanitize = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command = [compiler, *STRICT, *sanitize, *flags, *INCLUDE, "-D_GNU_SOURCE", "-o", out, *needed]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs gcc or clang with sanitizers")
    out = tmp_path_factory.mktemp("fuzz") / "fuzz"
    done = compile_fuzzer(compiler, out)
    assert done.returncode == 0, done.stderr
    return out


def fuzz(fuzzer, sessions, seed):
    done = subprocess.run(
        [fuzzer, str(sessions), str(seed)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"in {sessions} sessions" in done.stdout


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_frames(fuzzer, seed):
    fuzz(fuzzer, 4000, seed)


@pytest.mark.long
def test_a_million_mutated_frames(fuzzer):
    for seed in range(10, 20):
        fuzz(fuzzer, 10_000, seed)


@pytest.mark.long
def test_libfuzzer(tmp_path):
    """Streams that libFuzzer makes to reach new code, for a minute."""
    if shutil.which("clang") is None:
        pytest.skip("needs clang")
    out = tmp_path / "fuzz"
    done = compile_fuzzer("clang", out, "-fsanitize=fuzzer", "-DSLW_LIBFUZZER")
    if "clang_rt.fuzzer" in done.stderr:
        pytest.skip("this clang has no libFuzzer (Debian: libclang-rt-14-dev)")
    assert done.returncode == 0, done.stderr
    limits = ["-max_total_time=60", "-timeout=20", "-malloc_limit_mb=64", "-max_len=32768"]
    done = subprocess.run([out, *limits], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Done " in done.stderr


@pytest.mark.parametrize("compiler", ["gcc", "clang", "arm-none-eabi-gcc"])
def test_compiles_freestanding_without_warnings(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    flags = ["-ffreestanding", "-O2", "-DSLW_STATIC", "-DSLW_RPC_MESSAGE_BYTES=256"]
    flags += ["-mcpu=cortex-m4", "-mthumb"] if compiler.startswith("arm") else []
    for source in RPC:
        out = tmp_path / f"{source.stem}.o"
        subprocess.run([compiler, *STRICT, *flags, *INCLUDE, "-c", source, "-o", out], check=True)


def test_needs_only_memory_functions_and_the_runtime(tmp_path):
    """A microcontroller links the session without a C library's files, heap or threads."""
    if shutil.which("gcc") is None or shutil.which("nm") is None:
        pytest.skip("needs gcc and nm")
    needed = set()
    for source in RPC:
        out = tmp_path / f"{source.stem}.o"
        flags = ["-std=c11", "-O2", "-ffreestanding", "-fno-stack-protector"]
        subprocess.run(["gcc", *flags, *INCLUDE, "-c", source, "-o", out], check=True)
        listed = subprocess.run(["nm", "-u", out], capture_output=True, text=True, check=True)
        needed |= set(listed.stdout.split()) - {"U"}
    needed = {name for name in needed if not name.startswith("slw_")}
    assert needed <= {"memcpy", "memset", "memmove", "memcmp", "memchr", "strcmp",
                      "_GLOBAL_OFFSET_TABLE_"}  # fmt: skip
