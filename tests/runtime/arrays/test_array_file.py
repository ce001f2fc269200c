"""Arrays in files: the same values, less memory, and nothing left behind."""

import gc
import gzip
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from slipway.runtime.arrays import array_file
from slipway.runtime.arrays.array_file import MIN_BYTES, in_file, range_of, release

RNG = np.random.default_rng(0)


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16", "bool", ml_dtypes.bfloat16])
def test_values_shape_and_type_stay(dtype):
    array = (RNG.random((3, 700, 1001)) * 9).astype(dtype)
    filed = in_file(array)
    assert filed is not array
    assert (filed.dtype, filed.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(filed, array)
    release(filed)
    np.testing.assert_array_equal(filed, array)


def test_views_of_other_orders_are_as_they_look():
    array = RNG.random((700, 1001)).T[::-1, ::2]
    np.testing.assert_array_equal(in_file(array), array)


def test_small_arrays_objects_and_filed_ones_stay_themselves():
    small = np.zeros(MIN_BYTES - 1, "uint8")
    objects = np.array([None] * MIN_BYTES)
    filed = in_file(np.zeros(MIN_BYTES, "uint8"))
    view = filed.reshape(2, -1)[:, 1:]
    for array in (small, objects, filed, view):
        assert in_file(array) is array


def test_they_cannot_be_written_to():
    filed = in_file(np.zeros(MIN_BYTES, "uint8"))
    with pytest.raises(ValueError, match="read-only"):
        filed[0] = 1


def test_release_lets_go_of_memory_and_of_parts_too():
    filed = in_file(RNG.random(8 << 20))
    total = filed.sum()
    before = resident_bytes()
    release(filed.reshape(2, -1).data)
    assert before - resident_bytes() > 60 << 20
    assert filed.sum() == total
    release(np.zeros(3))
    release(b"bytes")


def test_no_file_is_left_open_or_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files = Path("/proc/self/fd")
    before, mapped = len(list(files.iterdir())), Path("/proc/self/maps")
    arrays = [in_file(np.full(MIN_BYTES, n, "uint8")) for n in range(20)]
    assert len(list(files.iterdir())) == before
    assert mapped.read_text().count(str(tmp_path)) == 20
    assert list(tmp_path.iterdir()) == []
    assert [int(a[-1]) for a in arrays] == list(range(20))
    del arrays
    gc.collect()
    assert str(tmp_path) not in mapped.read_text()


def test_without_room_an_array_stays_where_it_is(monkeypatch):
    def full(**what):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(array_file.tempfile, "TemporaryFile", full)
    array = np.zeros(MIN_BYTES, "uint8")
    assert in_file(array) is array


def test_ranges_of_files(tmp_path):
    data = RNG.bytes(3 << 20)
    (tmp_path / "f").write_bytes(data)
    with (tmp_path / "f").open("rb") as file:
        assert range_of(file, 5, 2 << 20).tobytes() == data[5 : 5 + (2 << 20)]
        assert range_of(file, 5, 3 << 20) is None


@pytest.mark.parametrize("broken", [OSError(22, "Invalid argument"), AttributeError("sendfile")])
def test_ranges_where_the_system_does_not_copy_between_files(tmp_path, monkeypatch, broken):
    data = RNG.bytes(2 << 20)
    (tmp_path / "f").write_bytes(data)
    send, calls = os.sendfile, []

    def half(into, source, offset, count):
        calls.append(count)
        if len(calls) > 1:
            raise broken
        return send(into, source, offset, count // 2)

    monkeypatch.setattr(array_file.os, "sendfile", half)
    with (tmp_path / "f").open("rb") as file:
        assert range_of(file, 7, MIN_BYTES).tobytes() == data[7 : 7 + MIN_BYTES]
    assert len(calls) == 2


def test_ranges_of_what_is_no_file_itself(tmp_path):
    data = bytes(3 << 20)
    with gzip.open(tmp_path / "f.gz", "wb") as file:
        file.write(data)
    with gzip.open(tmp_path / "f.gz") as file:  # its descriptor is that of the packed bytes
        assert range_of(file, 5, 2 << 20).tobytes() == data[: 2 << 20]
    assert range_of(io.BytesIO(data), 5, 2 << 20).tobytes() == data[: 2 << 20]


def test_they_can_be_read_until_python_has_ended():
    code = """
import atexit
def last():
    assert held.sum() == 2 << 20
    print("read")
atexit.register(last)  # functions registered later run before it
import numpy as np
from slipway.runtime.arrays.array_file import in_file
held = in_file(np.ones(2 << 20, "uint8"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "read\n")


def test_the_bytes_of_a_large_file_are_read_where_they_lie(tmp_path):
    path = tmp_path / "file"
    content = np.random.default_rng(0).bytes(array_file.MIN_BYTES + 5)
    for size in (0, 9, len(content)):
        path.write_bytes(content[:size])
        read = array_file.contents_of(path)
        assert bytes(read) == content[:size]
        array_file.release(read)
        assert read == content[:size]
        assert isinstance(read, memoryview) == (size >= array_file.MIN_BYTES)
