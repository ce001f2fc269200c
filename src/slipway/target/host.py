"""The processor of this machine in LLVM's words.

LLVM is 100 MB of a process that loads it, and a fifth of a second: it is asked in a process of its
own, and what it says is remembered beside the compiled kernels, under a hash of what the system
says of the processor.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from slipway.runtime.cpu_features import permits_tiles
from slipway.toolchain.runtime_library import cache_dir

_CPUINFO = Path("/proc/cpuinfo")
# Lines of it that say something else at another time, or of each processor.
_CHANGING = ("cpu MHz", "bogomips", "BogoMIPS", "processor", "core id", "apicid", "initial apicid",
             "physical id", "siblings", "cpu cores")  # fmt: skip
_QUESTION = """
import json, sys
sys.path.insert(0, sys.argv[1])
from llvmlite import binding
print(json.dumps([binding.get_host_cpu_name(), dict(binding.get_host_cpu_features())]))
"""
_LIMIT_S = 60.0


@lru_cache(maxsize=1)
def host_cpu() -> tuple[str, tuple[str, ...]]:
    """Return (CPU name, "+feature" words) of this machine; generic where LLVM is not installed."""
    spec = None
    with suppress(ImportError):
        spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return "", ()
    packages = Path(spec.origin).parent.parent
    found = _remembered(packages)
    if found is None:
        return "", ()
    name, features = found
    if features.get("amx-tile") and not permits_tiles():
        features = {name: on and not name.startswith("amx-") for name, on in features.items()}
    return name, tuple(f"{'+' if on else '-'}{name}" for name, on in sorted(features.items()))


def _remembered(packages: Path) -> tuple[str, dict[str, bool]] | None:
    """Return what LLVM says, from the file where it was written before; None if it cannot run."""
    with suppress(OSError):
        path = cache_dir() / "host" / f"{_key(packages)}.json"
        with suppress(OSError, ValueError):
            return _checked(json.loads(path.read_text()))
        found = _from_llvm(packages)
        if found is not None:
            with suppress(OSError):
                path.parent.mkdir(exist_ok=True)
                part = path.with_suffix(f".{os.getpid()}")
                part.write_text(json.dumps(found))
                part.replace(path)
        return found
    return _from_llvm(packages)


def _key(packages: Path) -> str:
    """Return what stands for this processor, this kernel and the installed LLVM."""
    text = _CPUINFO.read_text(errors="replace")
    lines = {line for line in text.splitlines() if not line.startswith(_CHANGING)}
    versions = sorted(path.name for path in packages.glob("llvmlite-*-info"))
    parts = [*sorted(lines), platform.release(), platform.machine(), *versions]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _from_llvm(packages: Path) -> tuple[str, dict[str, bool]] | None:
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _QUESTION, str(packages)],
            capture_output=True, timeout=_LIMIT_S, check=False,
        )  # fmt: skip
        return _checked(json.loads(done.stdout)) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def _checked(said: Any) -> tuple[str, dict[str, bool]]:
    """Return what was read as a name and features; ValueError for something else."""
    if not isinstance(said, list) or list(map(type, said)) != [str, dict]:
        raise ValueError("neither a name nor features")
    name, features = said
    return name, {str(word): bool(on) for word, on in features.items()}
