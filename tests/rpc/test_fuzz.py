"""Mutated frames against the tracker and the proxy; the C session's are in tests/crt."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fuzz_rpc.py"


def fuzz(frames, seed):
    done = subprocess.run(
        [sys.executable, SCRIPT, "--frames", str(frames), "--seed", str(seed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]


def test_mutated_frames():
    fuzz(4000, 1)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_million_mutated_frames():
    fuzz(1_000_000, 2)
