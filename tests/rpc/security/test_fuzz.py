"""Mutated frames against tracker, proxy and client; the C session's are in tests/crt."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
SCRIPTS = pytest.mark.parametrize("script", ["fuzz_rpc.py", "fuzz_rpc_client.py"])


def fuzz(script, frames, seed):
    done = subprocess.run(
        [sys.executable, BENCHMARKS / script, "--frames", str(frames), "--seed", str(seed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]


@SCRIPTS
def test_mutated_frames(script):
    fuzz(script, 4000, 1)


@pytest.mark.long
@pytest.mark.timeout(3600)
@SCRIPTS
def test_a_million_mutated_frames(script):
    fuzz(script, 1_000_000, 2)
