"""Run the notebooks of examples/notebooks from top to bottom.

    python tools/notebooks.py [--write] [NAME ...]

The first cell that fails ends a notebook, with what it printed. `--write` keeps the outputs in the
files, which are what a reader sees who runs nothing.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"
TIMEOUT_S = 600  # of a cell


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Return a notebook with its outputs; its kernel is this interpreter, and `folder` is where."""
    book = nbformat.read(path, as_version=4)
    # `!slipway` finds the command that belongs to this interpreter.
    programs = str(Path(sys.executable).parent)
    env = {**os.environ, "PATH": programs + os.pathsep + os.environ.get("PATH", "")}
    client = NotebookClient(
        book,
        timeout=TIMEOUT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env=env)
    return book


def _without_times(book: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Take out when each cell ran, which would change the file without changing a word in it."""
    for cell in book.cells:
        cell.metadata.pop("execution", None)
    return book


def main() -> None:
    """Run those that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="without .ipynb; all if none")
    parser.add_argument("--write", action="store_true", help="keep the outputs")
    args = parser.parse_args()
    for path in sorted(FOLDER.glob("*.ipynb")):
        if args.names and path.stem not in args.names:
            continue
        start = time.perf_counter()
        book = run(path, FOLDER)
        print(f"{path.stem}: {time.perf_counter() - start:.1f} s")
        if args.write:
            nbformat.write(_without_times(book), path)


if __name__ == "__main__":
    main()
