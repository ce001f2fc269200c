"""The quick starts, run literally: every block with a language, in order, in a new folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "quick_starts.md"


def blocks():
    return re.findall(r"^```(sh|python)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_there_is_something_to_run():
    kinds = [kind for kind, _ in blocks()]
    assert kinds.count("sh") >= 5
    assert kinds.count("python") >= 2


@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_block_runs(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    command = tools / "slipway"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m slipway "$@"\n')
    command.chmod(0o755)
    python = os.pathsep.join(p for p in (str(ROOT / "src"), os.environ.get("PYTHONPATH")) if p)
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": python}
    work = tmp_path / "work"
    work.mkdir()
    for kind, text in blocks():
        program = ["sh", "-e"] if kind == "sh" else [sys.executable, "-"]
        done = subprocess.run(
            program, input=text, cwd=work, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    header = (work / "for-cmake/model/codegen/host/include/tvmgen_digits.h").read_text()
    assert "tvmgen_digits_run" in header
    assert (work / "digits.wasm").stat().st_size > 1000
