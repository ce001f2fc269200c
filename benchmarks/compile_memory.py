"""How much memory `slipway compile` takes at its peak, beside the size of the model's file.

    python -m benchmarks compile_memory [--models NAME ...] [--folder FOLDER] [--target TARGET]

Each compilation is a fresh process with an empty kernel cache; its peak is the VmHWM of Linux,
without the processes that hold LLVM, which know nothing of weights.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.cpu import models_of

CODE = """
import sys
from slipway.cli.main import main
sys.argv = ["slipway", "compile", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    if end.code:
        raise
print(open("/proc/self/status").read())
"""


def peak_bytes(model, target, folder):
    """Return the peak of a compilation in a process of its own."""
    out = Path(folder) / "m.tar"
    command = [sys.executable, "-c", CODE, str(model), "--target", target, "-o", str(out)]
    environment = {**os.environ, "SLIPWAY_CACHE": str(Path(folder) / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = re.search(r"VmHWM:\s+(\d+) kB", done.stdout)
    if done.returncode or found is None:
        sys.exit(f"{model}: {done.stderr[-2000:]}")
    return int(found[1]) * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", help="names; all by default")
    parser.add_argument("--folder", help="folder of .onnx files")
    parser.add_argument("--target", default="llvm")
    options = parser.parse_args()
    print("| model | file, MB | peak, MB | peak / file |\n| --- | ---: | ---: | ---: |")
    for path in models_of(options):
        with tempfile.TemporaryDirectory() as folder:
            peak, size = peak_bytes(path, options.target, folder), path.stat().st_size
        row = f"| {path.stem} | {size / 1e6:.1f} | {peak / 1e6:.0f} | {peak / size:.2f} |"
        print(row, flush=True)


if __name__ == "__main__":
    main()
