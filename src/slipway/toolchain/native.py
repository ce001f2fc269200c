"""The C runtime, compiled: for this machine as a library, for a device as one static server.

The library is looked for in the package (``crt/prebuilt/``, where a wheel may carry it), then in
the cache, and is else compiled once, with the C compiler of this machine or zig.
Files in the cache are named by a hash of all sources and options, so that they never go stale.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from slipway.errors import ToolchainError, with_words
from slipway.toolchain import musl, waiting, zig
from slipway.toolchain.link import where_it_lies
from slipway.toolchain.runtime_library import (
    CRT,
    IN_SECTIONS,
    LIBRARY_NAME,
    NOTHING_UNUSED,
    OPTIMISE,
    SMALL,
    cache_dir,
    host_name,
    host_runtimes,
    lasts,
    prebuilt_file,
    source_hash,
)
from slipway.toolchain.tempdir import name_finished, scratch

SERVER_NAME = "slipway-server"
# Host -> what its runtime is compiled for by zig: the oldest glibc with what it needs.
HOSTS = {
    "x86_64-linux-gnu": "x86_64-linux-gnu.2.17",
    "aarch64-linux-gnu": "aarch64-linux-gnu.2.17",
    "armv7-linux-gnu": "arm-linux-gnueabihf.2.17",
    "riscv64-linux-gnu": "riscv64-linux-gnu.2.27",
}
# What the child that opens drivers takes of the runtime.
_CORE = ("device", "error", "format", "object", "sha256")
_ARM_CPU = "-mcpu=cortex_a7"  # ARMv7-A with NEON and VFPv4, without later extensions
_CHILD_FILE = "device_child_file.c"


def crt_sources(*folders: str) -> list[Path]:
    """Return the C files in and below folders of the runtime (``src``, ``posix``), in order."""
    return [path for folder in folders for path in sorted((CRT / folder).rglob("*.c"))]


def include_path() -> Path:
    """Return the folder of the public headers, ``slipway/*.h`` below it."""
    return CRT / "include"


def host_runtime() -> Path:
    """Return the compiled runtime library for this machine, compiling it if that must be.

    Raises ToolchainError when there is neither a compiled library nor a compiler.
    """
    prebuilt, cached = host_runtimes()
    if prebuilt.is_file():
        return prebuilt
    return made_once(cached, build_host_runtime, "Slipway's runtime library for this machine")


def build_host_runtime(out: Path) -> None:
    """Compile the runtime library for this machine into `out`."""
    compiler = _system_compiler()
    if compiler is not None:
        command = [*compiler, *_shared_arguments(out), "-ldl", "-lm"]
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode == 0:
            return
        if zig.find_zig() is None:
            told = f"compiling the runtime with {shlex.join(compiler)} failed"
            raise ToolchainError(with_words(told, done.stderr))
    if zig.find_zig() is None:
        raise ToolchainError(
            "this needs Slipway's runtime library, which this installation does not carry for "
            f"{host_name()}, and there is no C compiler to build it. "
            f"Install one (Debian: sudo apt-get install gcc), or zig's: {zig.INSTALL_LINE}."
        )
    compile_host_runtime_with_zig(host_name(), out)


def compile_host_runtime_with_zig(host: str, out: Path) -> None:
    """Compile the runtime library for a host, which `host_name` names so, or `HOSTS`."""
    target = HOSTS.get(host, host)
    cpu = [_ARM_CPU] if target.startswith("arm-") else []
    arguments = ["cc", "-target", target, *cpu, *_shared_arguments(out)]
    zig.run_zig(arguments, purpose=f"compiling the runtime for {target}")


def _shared_arguments(out: Path) -> list[str]:
    sources = [str(path) for path in crt_sources("src", "posix", "classic")]
    include = ["-I", str(include_path())]
    return [
        *OPTIMISE,
        *NOTHING_UNUSED,
        "-shared",
        "-s",
        f"-Wl,-soname,{LIBRARY_NAME}",  # one for the process, however many libraries need it
        "-fPIC",
        "-fvisibility=hidden",
        *include,
        "-o",
        str(out),
        *sources,
    ]


def build_device_server(triple: str, out: str | os.PathLike[str] | None = None) -> Path:
    """Return the static device server for `triple` (``aarch64-linux``, ``armv7-linux-gnueabihf``…).

    The first build for a target compiles what it takes of musl, too; later ones come from the
    cache.  With `out`, the server is copied there.
    """
    target = zig.musl_target(triple)
    built = prebuilt_file(target, SERVER_NAME)
    if not os.access(built, os.X_OK):  # an installer may drop the right to execute
        prebuilt = built if built.is_file() else None
        built = cache_dir() / "server" / f"{target}-{source_hash()}" / SERVER_NAME
        made_once(
            built,
            lambda path: _make_server(target, prebuilt, path),
            f"the device server for {target}" if prebuilt is None else None,
        )
    if out is None:
        return built
    copied = Path(out)
    copied.parent.mkdir(parents=True, exist_ok=True)
    atomically(copied, lambda path: shutil.copy(built, path))
    copied.chmod(0o755)
    return copied


def _make_server(target: str, prebuilt: Path | None, out: Path) -> None:
    if prebuilt is None:
        compile_server(target, out)
    else:
        shutil.copy(prebuilt, out)
        out.chmod(0o755)


def compile_server(target: str, out: Path) -> None:
    """Compile the static server for musl's `target`, with the child that opens drivers."""
    with scratch("slipway-child-") as folder:
        child, data = Path(folder) / "child", Path(folder) / "child.o"
        extra = [str(path) for path in crt_sources("server") if path.name != _CHILD_FILE]
        if compile_device_child(target, child):
            # Alone: all other objects are what `compile_static` makes of any program, so that
            # zig's cache has them.
            named = ["-c", f'-DSLW_DEVICE_CHILD="{child.as_posix()}"', "-o", str(data)]
            command = ["cc", "-target", target, *named, str(CRT / "server" / _CHILD_FILE)]
            zig.run_zig(command, purpose=f"compiling for {target}")
            extra.append(str(data))
        compile_static(target, out, "src", "posix", extra=tuple(extra))


def compile_device_child(target: str, out: Path) -> bool:
    """Compile what a static server for musl's `target` starts to open drivers, where it can be.

    It is a dynamic program for glibc, whose loader and libraries drivers are made for.
    """
    gnu = target.replace("musl", "gnu")
    if not gnu.startswith(("x86_64-", "aarch64-", "arm-")):
        return False
    drivers = [CRT / "posix" / "devices" / "device_wire.c", *crt_sources("posix/devices/drivers")]
    core = [CRT / "src" / f"{name}.c" for name in _CORE]
    sources = [*crt_sources("child"), *drivers, *core, CRT / "posix" / "platform.c"]
    flags = [*SMALL, "-s", *NOTHING_UNUSED]
    if gnu.startswith("arm-"):
        flags.append(_ARM_CPU)
    command = ["cc", "-target", f"{gnu}.2.17", *flags, "-I", str(include_path()), "-o", str(out)]
    zig.run_zig([*command, *map(str, sources), "-ldl"], purpose=f"compiling for {gnu}")
    return True


def compile_static(target: str, out: Path, *folders: str, extra: tuple[str, ...] = ()) -> None:
    """Compile folders of the runtime, and `extra` arguments, into a small static musl program.

    No drivers of devices: no library can be opened there.
    """
    drivers = CRT / "posix" / "devices" / "drivers"
    sources = [str(path) for path in crt_sources(*folders) if drivers not in path.parents]
    cpu = [_ARM_CPU] if target.startswith("arm-") else []
    flags = [*SMALL, *IN_SECTIONS, "-DSLW_STATIC", "-I", str(include_path()), *cpu]
    with scratch("slipway-static-") as folder:
        program = Path(folder) / "program.o"
        command = ["cc", "-target", target, *flags, "-r", "-o", str(program), *sources, *extra]
        zig.run_zig(command, purpose=f"compiling for {target}")
        musl.link_static(target, out, [program], cpu)


def _system_compiler() -> list[str] | None:
    named = shlex.split(os.environ.get("CC", ""))
    for candidate in (named, ["cc"], ["gcc"], ["clang"]):
        if candidate and shutil.which(candidate[0]):
            return candidate
    return None


def made_once(out: Path, build: Callable[[Path], object], what: str | None = None) -> Path:
    """Return the file `out`, which `build(path)` writes where it is not there yet.

    Of processes that want it at the same time one builds, and the others wait for it; whoever waits
    is told `what` is compiled.
    """
    if out.is_file():
        return out
    if what is not None:
        waiting.tell(f"Compiling {what}, {_for_whom(out)} ...")
    with ExitStack() as stack:
        with suppress(OSError):  # a full disk, which building meets too, or one without locks
            out.parent.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context((out.parent / f".{out.name}.lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not out.is_file():
            atomically(out, build)
    return out


def _for_whom(out: Path) -> str:
    if lasts(out):
        return "once for all later runs"
    return "for this run alone (no cache folder can be written; SLIPWAY_CACHE names another)"


def atomically(out: Path, build: Callable[[Path], object]) -> None:
    """Let `build(path)` write a file beside `out`, then rename it; racing builders both win."""
    out = where_it_lies(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with scratch(".build-", out.parent) as folder:
            made = Path(folder) / out.name
            build(made)
            name_finished(made, out)
    except OSError as error:
        if error.filename is None or ".build-" in f"{error.filename} {error.filename2}":
            error.filename, error.filename2 = str(out), None  # the one that the caller knows
        raise
