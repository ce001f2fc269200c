"""``make release``: wheel and sdist, checked, with checksums and what changed, into ``dist/``.

The tracked files are copied, so that neither what lies about in the tree nor an earlier build gets
in.  The wheel carries the runtime for hosts and the device servers for all architectures of Linux.
What a user installs is tried in two new environments, the runtime alone and with the compiler, with
no compiler on PATH, no network but the machine's own address, and no rights of root: there a server
is started, an artifact is run on it, the demonstration runs, and each carried file is looked for.
The sdist must give the same wheel, but for what was compiled into that.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECK = """
import errno, os, shutil, socket, sys
assert os.geteuid() != 0, "this is root"
try:
    socket.create_connection(("192.0.2.1", 80), 1).close()
except OSError as error:
    assert error.errno == errno.ENETUNREACH, error
else:
    raise AssertionError("there is a network")
assert not any(shutil.which(name) for name in ("cc", "gcc", "clang", "zig")), "there is a compiler"
import numpy as np
import slipway
from slipway import rpc
from slipway.toolchain import native, prebuild, zig
package = os.path.dirname(slipway.__file__)
assert os.path.commonpath([package, sys.prefix]) == sys.prefix, f"{package} is not the wheel's"
assert native.host_runtime().is_relative_to(package), "the runtime was built here"
for triple in prebuild.SERVERS:
    assert native.prebuilt_file(zig.musl_target(triple), native.SERVER_NAME).is_file(), triple
for host in native.HOSTS:
    assert native.prebuilt_file(host, native.LIBRARY_NAME).is_file(), host
with rpc.Server("127.0.0.1", 0, silent=True) as server:
    with rpc.connect("127.0.0.1", server.port) as session:
        session.upload(sys.argv[1], "digits.tar")
        model = session.load_module("digits.tar")["default"](session.cpu(0))
        with np.load(os.path.join(package, "models/digits/digits_test.npz")) as stored:
            images, logits = stored["images"][:1], stored["logits"][:1]
        model["set_input"]("image", slipway.nd.array(images, session.cpu(0)))
        model["run"]()
        np.testing.assert_allclose(model["get_output"](0).numpy(), logits, rtol=1e-4, atol=1e-4)
print("the wheel runs a model without a compiler")
"""
# A new user namespace takes what root may do, a new network namespace the network: a process has
# both rights there until it becomes another program.
ALONE = """
import ctypes, fcntl, os, socket, struct, sys
NEW_USER, NEW_NET, SET_FLAGS, UP = 0x10000000, 0x40000000, 0x8914, 0x41
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(NEW_USER | NEW_NET):
    sys.exit("this system makes no user namespaces, which the check needs: "
             + os.strerror(ctypes.get_errno()) + " (sysctl kernel.unprivileged_userns_clone, "
             "kernel.apparmor_restrict_unprivileged_userns)")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sH14x", b"lo", UP))
os.execv(sys.argv[1], sys.argv[1:])
"""
EXTRAS = "compile,onnx,cli"  # what README.md tells a user of the compiler to install


def main(argv: Sequence[str] | None = None) -> None:
    """Build, check, and write everything into `--out`."""
    parser = argparse.ArgumentParser(description=__doc__, prog="make release")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the files")
    parser.add_argument("--since", default="", help="a tag or commit: changes after it are listed")
    parser.add_argument(
        "--needed", type=Path, help="folder of wheels that it depends on, instead of pip's index"
    )
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="slipway-release-") as name:
        folder = Path(name)
        tree = copy_of_tracked(folder / "tree")
        source = built_sdist(tree, folder / "files")
        run([sys.executable, "-m", "slipway.toolchain.prebuild", "--servers"], tree)
        wheel = built_wheel(tree, folder / "files")
        check_source(source, wheel, folder)
        needed = options.needed or downloaded(wheel, folder / "needed")
        check_wheel(wheel, tree, needed, folder)
        changes = folder / "files" / "CHANGES.md"
        changes.write_text(changes_text(subjects(options.since)), encoding="utf-8")
        write_sums(folder / "files", [wheel, source, changes])
        options.out.mkdir(parents=True, exist_ok=True)
        for path in sorted((folder / "files").iterdir()):
            shutil.copy2(path, options.out / path.name)
            print(f"{options.out / path.name}: {path.stat().st_size / 1e6:.2f} MB")


def run(command: Sequence[str], tree: Path, **environment: str) -> str:
    """Run a command on the sources of `tree`; return what it printed.  Ends with its words."""
    env = {**os.environ, "PYTHONPATH": str(tree / "src"), **environment}
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command[:6])} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def copy_of_tracked(tree: Path) -> Path:
    """Copy what git tracks, as it is in the working tree."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    return tree


def built_sdist(tree: Path, out: Path) -> Path:
    """Return the source distribution, by the hook of the build backend."""
    out.mkdir(parents=True, exist_ok=True)
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(out)!r})"
    run([sys.executable, "-c", code], tree)
    (found,) = out.glob("*.tar.gz")
    return found


def built_wheel(tree: Path, out: Path) -> Path:
    """Return the wheel."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    run([*command, "--no-build-isolation", "--wheel-dir", str(out), "."], tree)
    (found,) = out.glob("*.whl")
    return found


def check_source(source: Path, wheel: Path, folder: Path) -> None:
    """Build the sdist as pip does; exits where its wheel holds other files than `wheel`."""
    unpacked = folder / "source"
    with tarfile.open(source) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(unpacked, filter="data")
        else:  # Debian's 3.11.2
            archive.extractall(unpacked)
    (tree,) = unpacked.iterdir()
    again = built_wheel(tree, folder / "from-source")
    with zipfile.ZipFile(again) as one, zipfile.ZipFile(wheel) as other:
        apart = {(i.filename, i.CRC) for i in one.infolist()}
        apart ^= {(i.filename, i.CRC) for i in other.infolist()}
    names = {name for name, _ in apart if "/crt/prebuilt/" not in name and "/RECORD" not in name}
    if names:
        sys.exit(f"{source.name} gives another wheel than {wheel.name}: {', '.join(sorted(names))}")


def downloaded(wheel: Path, out: Path) -> Path:
    """Return a folder with everything that the wheel says it depends on, the compiler included."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(out)]
    run([*command, "--only-binary", ":all:", f"{wheel}[{EXTRAS}]"], out.parent)
    return out


def check_wheel(wheel: Path, tree: Path, needed: Path, folder: Path) -> None:
    """Install the wheel into new environments, from `needed` only, and run models there."""
    digits = folder / "digits.tar"
    model = tree / "src" / "slipway" / "models" / "digits" / "digits.onnx"
    run([sys.executable, "-m", "slipway", "compile", str(model), "-o", str(digits)], tree)
    alone(installed(wheel, "", needed, folder / "runtime"), ["-c", CHECK, str(digits)])
    compiler = installed(wheel, EXTRAS, needed, folder / "compiler")
    for words in (f"check {model}", "demo --device x86_64", f"compile {model} -o m.tar"):
        alone(compiler, ["-m", "slipway", *words.split()])
    alone(compiler, ["-m", "slipway", "run", "m.tar"])
    print("the compiler's environment passes the demonstration")


def installed(wheel: Path, extras: str, needed: Path, venv: Path) -> Path:
    """Return a new environment with the wheel, and what it depends on out of `needed`."""
    run([sys.executable, "-m", "venv", str(venv)], venv.parent)
    install = [str(venv / "bin/python"), "-m", "pip", "install", "--quiet", "--no-index"]
    what = f"{wheel}[{extras}]" if extras else str(wheel)
    run([*install, "--find-links", str(needed), what], venv.parent, PYTHONPATH="")
    (venv / "home").mkdir()
    return venv


def alone(venv: Path, words: Sequence[str]) -> None:
    """Run Python in an environment with nothing else: no compiler, no network, not as root."""
    python = str(venv / "bin/python")
    environment = {"PATH": str(venv / "bin"), "HOME": str(venv / "home"), "PYTHONPATH": ""}
    environment |= {"XDG_CACHE_HOME": "", "SLIPWAY_CACHE": "", "SLIPWAY_ZIG": "", "CC": ""}
    print(run([python, "-c", ALONE, python, *words], venv / "home", **environment).strip())


def subjects(since: str) -> list[str]:
    """Return the subjects of the commits after `since`, all of them without it; merges left out."""
    span = [f"{since}..HEAD"] if since else ["HEAD"]
    command = ["git", "log", "--no-merges", "--format=%s", *span]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def changes_text(lines: Sequence[str]) -> str:
    """Return commits ("area: what it does") as a page, by area, the newest first in each."""
    areas: dict[str, list[str]] = {}
    for line in lines:
        area, colon, what = line.partition(": ")
        has_area = bool(colon) and area[:1].isalpha()
        areas.setdefault(area if has_area else "other", []).append(what if has_area else line)
    parts = ["# Changes"]
    for area in sorted(areas):
        parts += [f"\n## {area}\n", *(f"- {what}" for what in areas[area])]
    return "\n".join(parts) + "\n"


def write_sums(folder: Path, paths: Sequence[Path]) -> Path:
    """Write ``SHA256SUMS`` as ``sha256sum -c`` reads it."""
    sums = folder / "SHA256SUMS"
    lines = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n" for p in sorted(paths)]
    sums.write_text("".join(lines), encoding="ascii")
    return sums


if __name__ == "__main__":
    main()
