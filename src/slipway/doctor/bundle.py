"""One file with what a report of a fault needs, which may be given away: a bundle.

It is a .zip of texts: versions, this machine, the variables that matter, the command that failed
and all that it printed, descriptions of the files that the command names (no weights, no data), a
device where one is named, and how to repeat it. Every text goes through one `Redactor`.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any

from slipway.doctor.finding import Finding
from slipway.doctor.redact import Redactor
from slipway.doctor.structure import without_weights
from slipway.errors import SlipwayError
from slipway.runtime.arrays.numpy_file import read_numpy_file
from slipway.runtime.artifact import read_artifact
from slipway.toolchain.link import write_file
from slipway.toolchain.tempdir import unwound
from slipway.version import VERSION

# Of the variables of a process, those that Slipway, its tools or what they load go by.
_VARIABLES = (
    "SLIPWAY_", "TVM_", "ZIG_", "PYTHON", "LC_", "OMP_", "CUDA_", "QEMU_", "OCL_", "POCL_", "VK_",
    "LLVM_", "MESA_", "HSA_", "ONEAPI_",
)  # fmt: skip
_MORE_VARIABLES = {
    "PATH", "LANG", "TMPDIR", "TEMP", "TMP", "HOME", "XDG_CACHE_HOME", "LD_LIBRARY_PATH",
    "LD_PRELOAD", "CC", "TERM", "COLUMNS", "CI", "VIRTUAL_ENV", "CONDA_PREFIX", "SHELL", "PWD",
    "SOURCE_DATE_EPOCH", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
}  # fmt: skip
_OUTPUT_BYTES = 1 << 20  # of what a command prints, and of a log: the first and the last half
_HASHED_BYTES = 1 << 34
_ARTIFACT_BYTES = 1 << 32


@dataclass(frozen=True)
class CommandRun:
    """A command that was run again: its words, how it ended, and all that it printed."""

    words: tuple[str, ...]
    exit_code: int
    seconds: float
    output: str

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        if self.exit_code >= 0:
            return f"exit code {self.exit_code}"
        try:
            return f"killed by {signal.Signals(-self.exit_code).name}"
        except ValueError:
            return f"killed by signal {-self.exit_code}"


@dataclass
class Bundle:
    """What will be in the file: the text of each member by its name, and a few files of bytes."""

    redactor: Redactor
    texts: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)

    def add_text(self, name: str, text: str) -> None:
        """Add a member, without what nobody should read."""
        self.texts[name] = self.redactor.text(text)

    def add_json(self, name: str, value: Any) -> None:
        """Add a member of plain values."""
        self.add_text(name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    def add_findings(self, name: str, findings: Iterable[Finding]) -> None:
        """Add what an examination found."""
        self.add_json(name, [finding.to_dict() for finding in findings])

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        buffer = BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in self.texts.items():
                archive.writestr(name, text.encode("utf-8", "backslashreplace"))
            for name, content in self.files.items():
                archive.writestr(name, content)
        write_file(path, buffer.getvalue())


def collect_bundle(
    environment: Mapping[str, str],
    *,
    machine: Iterable[Finding],
    run: CommandRun | None = None,
    named: Sequence[Path] = (),
    logs: Sequence[Path] = (),
    device: tuple[str, Iterable[Finding]] | None = None,
    structure: bool = True,
) -> Bundle:
    """Return a bundle of what is known: `named` are files that are described, `logs` are held.

    With `structure` a copy of each model is held whose weights are made up.
    """
    bundle = Bundle(Redactor(environment))
    bundle.add_json("versions.json", versions())
    bundle.add_findings("machine.json", machine)
    wanted = {name: value for name, value in environment.items() if _matters(name)}
    variables = bundle.redactor.variables(wanted)
    bundle.texts["environment.txt"] = "".join(f"{n}={v}\n" for n, v in variables.items())
    if run is not None:
        bundle.add_text("command.txt", f"{shlex.join(run.words)}\n{run.ending}, "
                        f"{run.seconds:.1f} s\n")  # fmt: skip
        bundle.add_text("output.txt", run.output)
    for number, path in enumerate(named):
        described = describe_file(path)
        if structure:
            described.update(_add_structure(bundle, path, number))
        bundle.add_json(f"files/{number}.json", described)
    for number, path in enumerate(logs):
        bundle.add_text(f"logs/{number}-{path.name}", _both_ends(path.read_bytes()))
    if device is not None:
        bundle.add_json("device.json", {"device": device[0],
                        "findings": [f.to_dict() for f in device[1]]})  # fmt: skip
    bundle.texts = {"README.txt": _readme(bundle, run), **bundle.texts}
    return bundle


def _matters(name: str) -> bool:
    upper = name.upper()
    return upper in _MORE_VARIABLES or upper.startswith(_VARIABLES)


def versions() -> dict[str, Any]:
    """Return the versions of Slipway, Python, the system, and every package that is installed."""
    packages = {}
    for found in metadata.distributions():
        name = found.metadata["Name"]
        if name:
            packages[name] = found.version
    return {
        "slipway": VERSION,
        "python": sys.version,
        "system": platform.platform(),
        "libc": " ".join(platform.libc_ver()),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "packages": dict(sorted(packages.items(), key=lambda item: item[0].lower())),
    }


def run_command(
    words: Sequence[str], timeout_s: float | None, show: Callable[[str], None]
) -> CommandRun:
    """Run a command with what it knows to say of a fault, show its output, and return it all.

    What runs longer than `timeout_s` is ended, with a line that says so.
    """
    own = list(words) if words[0] != "slipway" else [sys.executable, "-m", *words]
    environment = {**os.environ, "SLIPWAY_DEBUG": "1", "PYTHONFAULTHANDLER": "1"}
    start = time.monotonic()
    process = subprocess.Popen(
        own, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=environment,
    )  # fmt: skip
    parts: list[bytes] = []
    reader = threading.Thread(target=_read, args=(process.stdout, parts, show), daemon=True)
    reader.start()
    end = ""
    with unwound():  # a command that hangs is not left behind by whoever ends this process
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            end = f"\n[ended after {timeout_s:g} s]\n"
            _end(process)
        except BaseException:
            _end(process)
            raise
    reader.join(5)
    seconds = time.monotonic() - start
    return CommandRun(tuple(words), process.returncode, seconds, _both_ends(b"".join(parts)) + end)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _read(pipe: BufferedReader, parts: list[bytes], show: Callable[[str], None]) -> None:
    with pipe:
        while part := pipe.read1(1 << 16):
            parts.append(part)
            show(part.decode(errors="replace"))


def _both_ends(content: bytes) -> str:
    if len(content) > _OUTPUT_BYTES:
        half = _OUTPUT_BYTES // 2
        left_out = f"\n[{len(content) - _OUTPUT_BYTES} bytes are left out]\n".encode()
        content = content[:half] + left_out + content[-half:]
    return content.decode(errors="replace")


def describe_file(path: Path) -> dict[str, Any]:
    """Return name, size and sum of a file, and what it says of itself, but nothing it holds."""
    described: dict[str, Any] = {"path": str(path), "bytes": path.stat().st_size}
    with path.open("rb") as file:
        if described["bytes"] <= _HASHED_BYTES:
            described["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
    try:
        described.update(_said_of_itself(path))
    except (SlipwayError, OSError, ValueError) as error:
        described["cannot be read"] = str(error)
    return described


def _said_of_itself(path: Path) -> dict[str, Any]:
    if path.suffix in (".npz", ".npy"):
        stored = read_numpy_file(path)
        arrays = stored if isinstance(stored, dict) else {"": stored}
        return {"arrays": {n: f"{a.dtype} {list(a.shape)}" for n, a in arrays.items()}}
    if path.suffix in (".tar", ".so") and path.stat().st_size <= _ARTIFACT_BYTES:
        artifact = read_artifact(path.read_bytes(), path.name, here=False)
        sizes = {name: len(content) for name, content in artifact.members.items()}
        return {"metadata": artifact.metadata, "members": sizes}
    return {}


def _add_structure(bundle: Bundle, path: Path, number: int) -> dict[str, str]:
    """Add a model without its weights; return what to say of it."""
    try:
        content = without_weights(path)
    except (SlipwayError, ImportError, OSError, ValueError) as error:
        return {"no copy without weights": str(error)}
    if content is None:
        return {}
    name = f"files/{number}{path.suffix}"
    bundle.files[name] = content
    return {"copy without weights": name}


def _readme(bundle: Bundle, run: CommandRun | None) -> str:
    lines = [f"A bundle for a report of a fault, by `slipway bundle` of Slipway {VERSION}.", ""]
    if run is not None:
        again = bundle.redactor.text(shlex.join(run.words))
        lines += ["To repeat it:", "", f"    SLIPWAY_DEBUG=1 {again}", "",
                  f"It ended with {run.ending} after {run.seconds:.1f} s.", ""]  # fmt: skip
    if bundle.files:
        lines += [
            "Models in files/ have the graph of the one that was used; of a constant that has more "
            "than eight values, they are made up.", "",
        ]  # fmt: skip
    lines.append("Removed, and how often (read the rest before you give it away):")
    removed = sorted(bundle.redactor.removed.items())
    lines += [f"    {kind}: {count}" for kind, count in removed] or ["    nothing"]
    return "\n".join(lines) + "\n"
