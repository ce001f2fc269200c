import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from slipway.contrib import util, utils
from slipway.toolchain import link, native, tempdir


def test_relpath_is_inside_and_creates_nothing():
    temp = util.tempdir()
    path = Path(temp.relpath("mylib.o"))
    assert path.parent == temp.path
    assert not path.exists()
    path.write_bytes(b"")
    assert temp.listdir() == ["mylib.o"]


def test_removed_with_the_object_and_on_request():
    temp = utils.tempdir()
    path = temp.path
    (temp / "file").write_text("x")
    temp.remove()
    temp.remove()
    assert not path.exists()
    with utils.tempdir() as other:
        path = other.path
        assert path.is_dir()
    assert not path.exists()
    third = utils.tempdir()
    path = third.path
    del third
    assert not path.exists()


def test_custom_path_must_be_new(tmp_path):
    with utils.tempdir(tmp_path / "new") as temp:
        assert temp.temp_dir == str(tmp_path / "new")
    with pytest.raises(FileExistsError):
        utils.tempdir(tmp_path)


def test_kept_for_somebody_to_look_into(tmp_path):
    with utils.TempDirectory.set_keep_for_debug():
        kept = utils.tempdir(tmp_path / "kept")
    gone, given = (
        utils.tempdir(tmp_path / "gone"),
        utils.tempdir(tmp_path / "given", keep_for_debug=True),
    )
    for one in (kept, gone, given):
        one.remove()
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["given", "kept"]


# It is asked to end while it waits for a compiler, as most do; a forked process ends where it is.
WAITING = """
import os, subprocess, sys
from pathlib import Path
from slipway.toolchain import link, native, tempdir

def compiles(*_):
    if os.fork() == 0:
        os.kill(os.getpid(), {number})
    assert os.wait()[1] == {number}
    subprocess.run(["sh", "-c", "echo in; exec sleep 60"])

def pieces():
    yield b"x"
    compiles()

tempdir.lasting("slipway-"), (held := tempdir.tempdir())
while True:
    try:
        with tempdir.scratch(), tempdir.tempdir():
            {work}
    except SystemExit:
        pass  # somebody who catches all is ended, too
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize(
    "work",
    [
        "compiles()",
        "native.atomically(Path('out'), compiles)",
        "link.write_file(Path('out'), pieces())",
    ],
)
def test_nothing_is_left_of_a_process_that_is_asked_to_end(number, work, tmp_path):
    program = WAITING.format(number=int(signal.SIGTERM), work=work)
    started = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with started:
        assert started.stdout.readline() == "in\n"
        assert list(tmp_path.iterdir())
        started.send_signal(number)
        code = started.wait(timeout=30)
    assert code == -number
    assert not list(tmp_path.iterdir())


def test_handlers_are_those_of_the_program_again():
    before = signal.getsignal(signal.SIGTERM)
    with tempdir.scratch(), utils.tempdir():
        assert (signal.getsignal(signal.SIGTERM) is before) == (before is not signal.SIG_DFL)
    assert signal.getsignal(signal.SIGTERM) is before
    found = []

    def own(*_):
        raise AssertionError

    def elsewhere():
        with tempdir.scratch() as folder:
            found.append(folder.is_dir())

    signal.signal(signal.SIGTERM, own)
    try:
        with tempdir.scratch():
            assert signal.getsignal(signal.SIGTERM) is own
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert found == [True]


def test_a_folder_that_lasts_goes_with_the_process(tmp_path):
    program = "from slipway.toolchain.tempdir import lasting; print(lasting('slipway-'))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(done.stdout.strip()).parent == tmp_path
    assert not list(tmp_path.iterdir())


def test_many_may_write_one_file(tmp_path):
    out = tmp_path / "out"

    def write(content):
        for _ in range(20):
            link.write_file(out, content, mode=0o600)
            native.atomically(out, lambda path: path.write_bytes(content))

    threads = [threading.Thread(target=write, args=(bytes([each]) * 5000,)) for each in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(out.read_bytes())) == 1
    assert out.stat().st_size == 5000
    assert list(tmp_path.iterdir()) == [out]


MAKES = """
import pathlib, sys, time
from slipway.toolchain.tempdir import made_whole
folder = pathlib.Path(sys.argv[1])
with made_whole(folder):
    (folder / "half").write_text("of it")
    print("begun", flush=True)
    time.sleep(float(sys.argv[2]))
    (folder / "whole").write_text("all of it")
"""


@pytest.mark.parametrize("was_there", [False, True])
def test_a_folder_that_two_make_at_once_is_that_of_the_first(was_there, tmp_path):
    folder = tmp_path / "new" / "project"
    if was_there:
        folder.mkdir(parents=True)
    first = subprocess.Popen(
        [sys.executable, "-c", MAKES, folder, "60"], stdout=subprocess.PIPE, text=True
    )
    assert first.stdout.readline() == "begun\n"
    try:
        with (
            pytest.raises(FileExistsError, match="being made by another process"),
            tempdir.made_whole(folder),
        ):
            raise AssertionError("it is another's")
        assert (folder / "half").exists()
    finally:
        first.terminate()  # what it made goes with it, and with nothing of others
        first.communicate(timeout=60)
    assert folder.exists() == was_there
    assert not folder.is_dir() or not [*folder.iterdir()]


def test_a_folder_that_was_made_meanwhile_stays(tmp_path, monkeypatch):
    folder = tmp_path / "above" / "project"
    with pytest.raises(KeyError), tempdir.made_whole(folder):
        (folder / "half").touch()
        (tmp_path / "above" / "another").touch()
        raise KeyError
    assert [entry.name for entry in tmp_path.rglob("*")] == ["above", "another"]
    made = Path.mkdir

    def late(self, *arguments, **options):
        if self == folder:
            made(self)  # somebody else, a moment before
            (self / "theirs").touch()
        made(self, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", late)
    with pytest.raises(KeyError), tempdir.made_whole(folder):
        raise KeyError
    assert (folder / "theirs").exists()
