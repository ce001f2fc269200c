"""Two builds of one model give the same bytes, whatever machine and process they run in."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import slipway as tvm
from slipway import relay
from slipway.target import Target

MAKER = Path(__file__).parent / "artifact_maker.py"


def start(folder, processors, cache, order="backwards", **environment):
    """Start a build in a home, a folder of work and a folder for temporary files of its own."""
    elsewhere = folder.parent / f"{folder.name}-home"
    elsewhere.mkdir()
    source = Path(tvm.__file__).parent.parent
    return subprocess.Popen(
        [sys.executable, str(MAKER), str(folder), str(processors), order],
        cwd=elsewhere,
        env={
            **os.environ, "PYTHONPATH": str(source), "SLIPWAY_CACHE": str(cache),
            "HOME": str(elsewhere), "TMPDIR": str(elsewhere), **environment,
        },
    )  # fmt: skip


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_processors_hash_seed_and_folders_leave_no_trace(tmp_path):
    """A small machine, a large one, and one that finds all kernels in its cache.

    The latter two build the models in another order.
    """
    small = start(
        tmp_path / "small", 2, tmp_path / "cache", "forwards", PYTHONHASHSEED="1", TZ="UTC"
    )
    large = start(
        tmp_path / "large", 16, tmp_path / "other", PYTHONHASHSEED="4711", TZ="Asia/Tokyo"
    )
    assert (small.wait(), large.wait()) == (0, 0)
    warm = start(tmp_path / "warm", 16, tmp_path / "cache", PYTHONHASHSEED="8")
    assert warm.wait() == 0
    first = contents(tmp_path / "small")
    assert len(first) >= 20
    for other in ("large", "warm"):
        found = contents(tmp_path / other)
        assert found.keys() == first.keys()
        assert not [name for name in first if found[name] != first[name]]
    traces = [str(tmp_path).encode(), str(Path(tvm.__file__).parent).encode()]
    assert not [name for name, data in first.items() for trace in traces if trace in data]
    for name in first:
        if name.endswith(".tar"):
            with tarfile.open(tmp_path / "small" / name) as archive:
                assert {(m.mtime, m.uid, m.gid) for m in archive} == {(0, 0, 0)}, name


@pytest.mark.parametrize("text", ["llvm", "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"])
def test_processors_are_planned_for_as_the_target_says(monkeypatch, text):
    seen = set()
    for processors in (1, 2, 64):
        monkeypatch.setattr(os, "cpu_count", lambda n=processors: n)
        target = Target(text)
        seen.add((str(target), target.num_cores, target.core_counts))
    assert len(seen) == 1
    assert Target(f"{text} -num-cores=3").core_counts == (3,)


def test_a_given_number_of_cores_decides_how_work_is_cut():
    """The key has an effect: with one core, what only serves others is not done."""
    x = relay.var("x", shape=(1, 1 << 20), dtype="float32")
    module = tvm.IRModule.from_expr(relay.sum(x))
    sources = [
        relay.build(module, target=f"llvm -num-cores={cores}").lib.get_source("ll")
        for cores in (1, 8)
    ]
    assert sources[0] != sources[1]
