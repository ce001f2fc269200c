from pathlib import Path

import pytest

from slipway.contrib import util, utils


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
