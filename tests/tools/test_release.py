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


def test_an_area_is_a_word(release):
    text = release.changes_text(["0: what a setting of 0 left is gone", "a: one"])
    assert "## 0" not in text
    assert text.endswith("## other\n\n- 0: what a setting of 0 left is gone\n")


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


def test_what_is_checked_has_no_network_and_is_not_root(release):
    code = """if True:
        import errno, os, socket
        assert os.geteuid() != 0
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), 5).close()
        try:
            socket.create_connection(("192.0.2.1", 80), 5)
        except OSError as error:
            assert error.errno == errno.ENETUNREACH
            print("alone")
    """
    command = [sys.executable, "-c", release.ALONE, sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    if "makes no user namespaces" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout == "alone\n", done.stderr


def test_a_source_that_lacks_a_file_is_told(release, tmp_path, monkeypatch):
    (tmp_path / "p-1").mkdir()
    with tarfile.open(tmp_path / "p-1.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "p-1", "p-1")
    for name, files in (("one.whl", ["a.py"]), ("other.whl", ["a.py", "b.c", "s/crt/prebuilt/x"])):
        with zipfile.ZipFile(tmp_path / name, "w") as wheel:
            for file in files:
                wheel.writestr(file, "content")
    monkeypatch.setattr(release, "built_wheel", lambda *_: tmp_path / "one.whl")
    with pytest.raises(SystemExit, match=r"another wheel than other.whl: b.c$"):
        release.check_source(tmp_path / "p-1.tar.gz", tmp_path / "other.whl", tmp_path / "x")


@pytest.mark.long
def test_the_whole_release(repository, tmp_path):
    command = [sys.executable, str(repository / "tools" / "release.py"), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "runs a model without a compiler" in done.stdout
    assert "passes the demonstration" in done.stdout
    stem = f"{DISTRIBUTION.replace('-', '_')}-{VERSION}"
    with zipfile.ZipFile(tmp_path / f"{stem}-py3-none-any.whl") as wheel:
        carried = [name.rpartition("/")[2] for name in wheel.namelist() if "/prebuilt/" in name]
    assert sorted(carried) == ["libslipway_runtime.so"] * 4 + ["slipway-server"] * 5
    with tarfile.open(tmp_path / f"{stem}.tar.gz") as source:
        assert f"{stem}/src/slipway/crt/src/graph.c" in source.getnames()
    for line in (tmp_path / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == digest
