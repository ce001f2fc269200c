"""Damaged model files: each is read, compiled, or refused with one SlipwayError."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def fuzz(kind, *options):
    command = [sys.executable, "-m", "benchmarks", "fuzz_importers", kind, "--json", *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3000)
    assert run.returncode in (0, 1), run.stderr
    return json.loads(run.stdout)


KINDS = ("onnx", "tflite", "artifacts", "relay", "records", "language", "programs")


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_damaged_files_are_read_or_refused(kind):
    result = fuzz(kind, "--cases", "150" if kind in ("records", "language") else "300")
    assert result["found"] == []
    assert result["counts"]["refused"] > 50  # the files are damaged
    assert result["counts"]["read"] > 20  # but not all beyond the first check


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_many_damaged_files_are_read_or_refused(kind):
    cases = "1000" if kind == "programs" else "10000"
    assert fuzz(kind, "--cases", cases, "--seed", "1")["found"] == []
