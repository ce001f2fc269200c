"""Folders of tests and benchmarks: short enough to read, and no file taken for another."""

import ast
import importlib.util
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAX_ENTRIES = 30  # as of the package's folders (test_layering.py)
# Folders with more: how many they may have, and why they are not divided.
WIDE_FOLDERS = {
    "tests": (50, "a folder for each part of the package, under the part's name"),
    "tests/relay": (40, "a file for each part of the graph language"),
    "benchmarks": (62, "each is a command of that name: python -m benchmarks NAME"),
}


def python_files():
    """Return every Python file of the tests."""
    return [path for path in (ROOT / "tests").rglob("*.py") if "__pycache__" not in path.parts]


def is_kept(path):
    """Return whether a file or folder is no leftover of tools."""
    return path.name != "__pycache__" and not path.name.startswith(".")


def test_folders_can_be_taken_in_at_a_glance():
    folders = [p for top in ("tests", "benchmarks") for p in (ROOT / top, *(ROOT / top).rglob("*"))]
    counts = {
        folder.relative_to(ROOT).as_posix(): len(
            {p.name for p in folder.iterdir()} - {"__pycache__"}
        )
        for folder in folders
        if folder.is_dir() and not {"__pycache__", "seeds", "data"} & set(folder.parts)
    }
    too_wide = {
        folder: count
        for folder, count in counts.items()
        if count > WIDE_FOLDERS.get(folder, (MAX_ENTRIES, ""))[0]
    }
    assert not too_wide, f"divide by meaning what has more than {MAX_ENTRIES} entries: {too_wide}"
    needless = [folder for folder in WIDE_FOLDERS if counts[folder] <= MAX_ENTRIES]
    assert not needless, f"take these out of WIDE_FOLDERS: {needless}"


def test_the_root_holds_no_artifact():
    """What a command wrote beside the sources is easily committed with them."""
    if not (ROOT / ".git").exists():
        pytest.skip("no git here")
    command = ["git", "ls-files", "--", ":(glob)*"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    ours = {".gitignore", "LICENSE", "Makefile"}
    assert {n for n in listed.split() if not n.endswith((".md", ".yml", ".toml"))} == ours


def test_no_file_is_taken_for_another_of_its_name():
    """`import name` finds the first on a path that conftest files extend as folders are read.

    So a file of the tests is imported by a bare name only where no other has this name; else it is
    `from tests.folder import name`.
    """
    paths = defaultdict(list)
    for path in python_files():
        paths[path.stem].append(path)
    unclear = []
    for path in python_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            else:
                continue
            unclear += [
                f"{path.relative_to(ROOT)}:{node.lineno}: {name}"
                for name in names
                if len(paths[name]) > 1 or (paths[name] and name.startswith("test_"))
            ]
    assert not unclear, "import by the whole name, from tests.…:\n" + "\n".join(unclear)


def test_no_folder_hides_a_library():
    """tests/frontends/torch and tests/llm are no packages: `import torch` finds the library there.

    A folder without ``__init__.py`` gives way to a package of its name anywhere on the path.
    """
    packages = [path.parent for path in (ROOT / "tests").rglob("__init__.py")]
    hidden = []
    for folder in packages:
        spec = importlib.util.find_spec(folder.name)
        origin = Path(spec.origin) if spec is not None and spec.origin else folder
        if not origin.is_relative_to(ROOT / "tests"):
            hidden.append(folder.relative_to(ROOT).as_posix())
    assert not hidden, f"rename, or take the __init__.py away: {hidden}"


def test_folders_on_the_path_hide_no_package():
    """A folder there is a package, without anything in it, for whoever tries to import its name."""
    optional = {"torch", "tflite", "onnx", "keras", "tensorflow", "mxnet", "transformers", "gguf"}
    hidden = [
        str((path.parent / name).relative_to(ROOT))
        for path in (ROOT / "tests").rglob("conftest.py")
        if re.search(r"sys\.path.*str\(Path\(__file__\)\.parent\)", path.read_text())
        for name in optional
        if (path.parent / name).is_dir()
    ]
    assert not hidden
