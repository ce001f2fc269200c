"""``make release``: wheel and sdist, checked, with checksums and what changed, into ``dist/``.

The tracked files are copied, so that neither what lies about in the tree nor an earlier build gets
in.  The wheel carries the runtime for x86-64 and aarch64 hosts and the device servers for all
architectures; it is installed into an empty environment whose PATH has no compiler, and there a
server is started, an artifact is run on it, and each device server is looked for.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECK = """
import os, shutil, sys
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


def main(argv: Sequence[str] | None = None) -> None:
    """Build, check, and write everything into `--out`."""
    parser = argparse.ArgumentParser(description=__doc__, prog="make release")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the files")
    parser.add_argument("--since", default="", help="a tag or commit: changes after it are listed")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="slipway-release-") as name:
        folder = Path(name)
        tree = copy_of_tracked(folder / "tree")
        source = built_sdist(tree, folder / "files")
        run([sys.executable, "-m", "slipway.toolchain.prebuild", "--servers"], tree)
        wheel = built_wheel(tree, folder / "files")
        check_wheel(wheel, tree, folder)
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


def check_wheel(wheel: Path, tree: Path, folder: Path) -> None:
    """Install the wheel into an empty environment and run a model there; exits when it does not.

    What it depends on (NumPy, apache-tvm-ffi) comes from this environment, without a network.
    """
    digits = folder / "digits.tar"
    model = tree / "src" / "slipway" / "models" / "digits" / "digits.onnx"
    run([sys.executable, "-m", "slipway", "compile", str(model), "-o", str(digits)], tree)
    installed = folder / "installed"
    run([sys.executable, "-m", "venv", str(installed)], tree)
    python = str(installed / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    run(install, tree, PYTHONPATH="")
    (target,) = (installed / "lib").glob("python*/site-packages")
    for name in ("numpy", "numpy.libs", "tvm_ffi", "typing_extensions.py"):
        found = next((p for p in map(Path, sys.path) if (p / name).exists()), None)
        if found is not None:
            (target / name).symlink_to(found / name)
    empty = folder / "home"
    empty.mkdir()
    environment = {"PATH": str(installed / "bin"), "HOME": str(empty), "PYTHONPATH": ""}
    environment |= {"SLIPWAY_CACHE": str(folder / "cache"), "SLIPWAY_ZIG": "", "CC": ""}
    print(run([python, "-c", CHECK, str(digits)], folder, **environment).strip())


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
        areas.setdefault(area if colon else "other", []).append(what if colon else line)
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
