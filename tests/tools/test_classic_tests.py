"""The runner of upstream's unit tests, on a checkout of one small file."""

import sys

import pytest


@pytest.fixture
def runner(repository, monkeypatch):
    monkeypatch.syspath_prepend(str(repository / "tools"))
    yield __import__("classic_tests")
    for name in ("classic_tests", "classic_internals"):
        sys.modules.pop(name, None)


TESTS = """
import os, time
import numpy as np
import tvm
from tvm import te
import tvm.testing
import pytest

def test_good():
    assert tvm.te.placeholder((2,), name="A").op.name == "A"
    assert np.float is float  # a name that NumPy had

def test_bad():
    assert te.placeholder((2,), name="A").op.name == "B"

def test_dies():
    os._exit(3)

def test_after_the_death():
    pass

def test_hangs():
    time.sleep(60)

@pytest.mark.skip(reason="not today")
def test_skipped():
    pass
"""


def test_each_end_is_counted(runner, tmp_path):
    folder = tmp_path / "tvm-v0.0" / "tests" / "python" / "unittest"
    folder.mkdir(parents=True)
    (folder / "test_te_small.py").write_text(TESTS)
    (folder / "test_te_broken.py").write_text("import tvm\ntvm.te.no_such_name\n")
    checkout = tmp_path / "tvm-v0.0"
    found = {}
    for file in runner.files_of(checkout, "te"):
        for outcome in runner.outcomes_of(checkout, "te", file, 3):
            found[outcome.test.rpartition("/")[2]] = outcome
    states = {name: outcome.state for name, outcome in found.items()}
    assert states == {
        "test_te_broken.py": "failed",
        "test_te_small.py::test_good": "passed",
        "test_te_small.py::test_bad": "failed",
        "test_te_small.py::test_dies": "failed",
        "test_te_small.py::test_after_the_death": "passed",
        "test_te_small.py::test_hangs": "failed",
        "test_te_small.py::test_skipped": "skipped",
    }
    assert "no_such_name" in found["test_te_broken.py"].cause
    assert "exit 3" in found["test_te_small.py::test_dies"].cause
    assert "| v0.0 | te | 2 | 4 | 33% | 0 | 1 |" in runner.counts(list(found.values()))


def test_a_file_belongs_to_one_area(runner, tmp_path):
    folder = tmp_path / "tests" / "python" / "unittest"
    folder.mkdir(parents=True)
    for name in ("test_runtime_rpc.py", "test_runtime_graph.py"):
        (folder / name).write_text("")
    assert [f.name for f in runner.files_of(tmp_path, "rpc")] == ["test_runtime_rpc.py"]
    assert [f.name for f in runner.files_of(tmp_path, "runtime")] == ["test_runtime_graph.py"]


def test_a_sample_is_drawn_alike_in_each_process(runner):
    from classic_internals import drawn

    tests = [f"test_{n}" for n in range(40)]
    once = drawn(tests, 2, 5, 7)
    assert once == drawn(tests, 2, 5, 7) != drawn(tests, 2, 5, 8)
    assert len(set(once)) == 5
    assert set(once) < set(tests[::2])
    assert drawn(tests, 3, 0, 7) == drawn(tests, 3, 14, 7) == tests[::3]
