"""What Slipway needs on this machine, and what it may use."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from slipway.doctor.finding import Finding, Findings, absent, ok, wrong
from slipway.doctor.kernel import examine_kernel
from slipway.errors import SlipwayError
from slipway.runtime.devices import cpu, opencl
from slipway.runtime.load import load_module
from slipway.target import Target
from slipway.toolchain import emulators, native, runtime_library, zig
from slipway.version import VERSION, install_line

OLDEST = (3, 11)
LITTLE_DISK_BYTES = 1 << 30
TRY_TIMEOUT_S = 20.0

# Package -> what it is for, and what installs it.
OPTIONAL = {
    "onnx": ("reads .onnx models", install_line("onnx")),
    "onnxruntime": ("what .onnx models are checked against", "pip install onnxruntime"),
    "ml_dtypes": ("bfloat16 and float8 in NumPy", install_line("tflite")),
    "ai-edge-litert": ("what .tflite models are checked against", "pip install ai-edge-litert"),
    "torch": ("compiles PyTorch modules and reads .pt2 files", install_line("torch")),
    "starlette": ("the tracker's page", install_line("web")),
}
BOARD_EMULATORS = {
    "qemu-system-arm": ("emulates Cortex-M boards", "apt-get install qemu-system-arm"),
    "qemu-system-riscv32": ("emulates RISC-V boards", "apt-get install qemu-system-misc"),
    "arm-none-eabi-gcc": (
        "builds firmware for Cortex-M",
        "apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi",
    ),
}


def examine_machine() -> Findings:
    """Yield what there is to say of this machine, one thing after the other."""
    yield _python()
    yield ok("slipway", VERSION)
    yield ok("processor", _processor())
    yield ok("cores", _cores())
    yield from _compilers()
    yield _runtime()
    yield examine_kernel("llvm", lambda path: (load_module(str(path)), cpu(0)), "this machine")
    yield _cache()
    yield _disk("temporary files", Path(tempfile.gettempdir()), "TMPDIR")
    for name in ("aarch64", "armv7", "riscv64"):
        yield _emulator(name)
    for program, (purpose, advice) in BOARD_EMULATORS.items():
        found = shutil.which(program)
        yield (
            ok(program, purpose)
            if found
            else absent(
                program, f"not installed; it {purpose}", f"on Debian or Ubuntu: sudo {advice}"
            )
        )
    for package, (purpose, advice) in OPTIONAL.items():
        yield _package(package, purpose, advice)
    yield _opencl()
    yield _token()


def _python() -> Finding:
    text = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    if sys.version_info >= OLDEST:
        return ok("python", text)
    wanted = ".".join(map(str, OLDEST))
    return wrong("python", text, f"Slipway needs Python {wanted} or newer")


def _processor() -> str:
    """Return what code is generated for, and what /proc/cpuinfo calls it."""
    cpu_name = Target("llvm").cpu or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return f"{cpu_name} ({line.partition(':')[2].strip()})"
    return cpu_name


def _cores() -> str:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    total = os.cpu_count()
    return f"{total}" if usable == total else f"{usable} of {total} for this process"


def _compilers() -> Findings:
    try:
        yield ok("llvm", f"{_llvm_version()} (llvmlite {metadata.version('llvmlite')})")
    except (ImportError, metadata.PackageNotFoundError):
        yield absent(
            "llvm", "llvmlite is not installed: nothing can be compiled", install_line("compile")
        )
    except (OSError, RuntimeError) as error:
        yield wrong("llvm", f"llvmlite does not load: {error}", "pip install --force-reinstall "
                    "llvmlite")  # fmt: skip
    yield _zig()
    c = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), "")
    yield (
        ok("c compiler", _first_line([c, "--version"]))
        if c
        else absent(
            "c compiler", "none installed; zig does its work", "on Debian: sudo apt-get install gcc"
        )
    )


def _llvm_version() -> str:
    # In a process of its own: a damaged library may end the one that loads it.
    code = "from llvmlite import binding; print(*binding.llvm_version_info, sep='.')"
    if find_spec("llvmlite") is None:
        raise ImportError("llvmlite")
    done = _try([sys.executable, "-c", code])
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        raise RuntimeError(lines[-1])
    return f"LLVM {done.stdout.strip()}"


def _zig() -> Finding:
    path = zig.find_zig()
    if path is None:
        return absent(
            "zig", "not installed: no device servers, and no C for other machines",
            zig.INSTALL_LINE,
        )  # fmt: skip
    try:
        return ok("zig", f"{_first_line([str(path), 'version'])}: C compiler for every device")
    except OSError as error:
        return wrong("zig", f"{path} does not run: {error}", zig.INSTALL_LINE)


def _runtime() -> Finding:
    try:
        path = native.host_runtime()
    except SlipwayError as error:
        return wrong("runtime", str(error), "on Debian: sudo apt-get install gcc")
    return ok("runtime", f"{path.stat().st_size / 1000:.0f} KB for {runtime_library.host_name()}")


def _cache() -> Finding:
    folder = runtime_library.cache_dir()
    if folder.name.startswith("slipway-cache-"):
        return wrong(
            "cache",
            "its folder cannot be written, so what is compiled is kept for this run only",
            "set SLIPWAY_CACHE to a folder that can be written",
        )
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    found = _disk("cache", folder, "SLIPWAY_CACHE")
    return Finding("cache", found.state, f"{folder}: {_giga(size)} used; {found.text}",
                   found.advice)  # fmt: skip


def _disk(name: str, folder: Path, variable: str) -> Finding:
    free = shutil.disk_usage(folder).free
    text = f"{_giga(free)} free"
    if free < LITTLE_DISK_BYTES:
        return wrong(name, text, f"make room, or set {variable} to a folder on a larger disk")
    return ok(name, text if name == "cache" else f"{folder}: {text}")


def _giga(size: float) -> str:
    return f"{size / 1e9:.1f} GB"


def _emulator(architecture: str) -> Finding:
    name = f"emulated {architecture}"
    found = emulators.find(architecture)
    if found is None:
        return absent(name, "no emulator", emulators.install_hint(architecture))
    if not found:
        return ok(name, "this machine is one")
    try:
        return ok(name, _first_line([*found, "--version"]))
    except OSError as error:
        return wrong(name, f"{found[0]} does not run: {error}", "install it again")


def _package(name: str, purpose: str, advice: str) -> Finding:
    try:
        return ok(name, f"{metadata.version(name)}: {purpose}")
    except metadata.PackageNotFoundError:
        return absent(name, f"not installed; {purpose}", advice)


def _opencl() -> Finding:
    try:
        device = opencl(0)
        if device.exist:
            return ok("opencl", str(device.device_name))
    except SlipwayError as error:
        return absent("opencl", str(error), "models for processors need none")
    return absent(
        "opencl", "no driver", "models for processors need none; for one without a GPU, on "
        "Debian: sudo apt-get install pocl-opencl-icd"
    )  # fmt: skip


def _token() -> Finding:
    if os.environ.get("SLIPWAY_RPC_TOKEN"):
        return ok("token", "SLIPWAY_RPC_TOKEN is set")
    return absent(
        "token", "SLIPWAY_RPC_TOKEN is not set: devices on other machines will refuse",
        "export SLIPWAY_RPC_TOKEN=... with the token that they were started with",
    )  # fmt: skip


def _first_line(command: list[str]) -> str:
    done = _try(command)
    lines = (done.stdout or done.stderr).strip().splitlines()
    if done.returncode or not lines:
        raise OSError(f"it ended with {done.returncode}")
    return lines[0]


def _try(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=TRY_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"no answer in {TRY_TIMEOUT_S:g} s") from None
