"""What ``make release`` writes beside the distributions, and that all of it is right."""

import hashlib
import importlib.util
import subprocess
import sys
import tarfile
import zipfile

import pytest

from slipway.version import DISTRIBUTION, VERSION


@pytest.fixture(scope="module")
def release(repository):
    spec = importlib.util.spec_from_file_location("release", repository / "tools" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_changes_are_grouped_by_area(release):
    text = release.changes_text(["b: new", "a: one", "b: old", "no area"])
    assert text.splitlines() == [
        "# Changes", "", "## a", "", "- one", "", "## b", "", "- new", "- old", "", "## other", "",
        "- no area",
    ]  # fmt: skip


def test_sums_are_those_of_the_files(release, tmp_path):
    (tmp_path / "b").write_bytes(b"2")
    (tmp_path / "a").write_bytes(b"1")
    sums = release.write_sums(tmp_path, [tmp_path / "b", tmp_path / "a"])
    wanted = [hashlib.sha256(c).hexdigest() for c in (b"1", b"2")]
    assert sums.read_text() == f"{wanted[0]}  a\n{wanted[1]}  b\n"


def test_only_tracked_files_are_copied(release, repository, tmp_path):
    tree = release.copy_of_tracked(tmp_path / "tree")
    assert (tree / "pyproject.toml").is_file()
    assert not list(tree.rglob("__pycache__"))
    assert not (tree / "src" / "slipway" / "crt" / "prebuilt").exists()


def test_a_command_that_fails_ends_the_release_with_its_words(release, tmp_path):
    with pytest.raises(SystemExit, match="no luck"):
        release.run([sys.executable, "-c", "raise SystemExit('no luck')"], tmp_path)


@pytest.mark.long
def test_the_whole_release(repository, tmp_path):
    command = [sys.executable, str(repository / "tools" / "release.py"), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "runs a model without a compiler" in done.stdout
    stem = f"{DISTRIBUTION.replace('-', '_')}-{VERSION}"
    with zipfile.ZipFile(tmp_path / f"{stem}-py3-none-any.whl") as wheel:
        assert sum(name.endswith("slipway-server") for name in wheel.namelist()) == 4
    with tarfile.open(tmp_path / f"{stem}.tar.gz") as source:
        assert f"{stem}/src/slipway/crt/src/graph.c" in source.getnames()
    for line in (tmp_path / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == digest
