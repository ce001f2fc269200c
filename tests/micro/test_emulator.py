"""Emulators as processes: none outlives whoever started it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = """
import os, signal, sys
from slipway.micro.emulator import SerialProcess
process = SerialProcess([sys.executable, "-c", "import time; time.sleep(60)"])
print(process._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs Linux")
def test_an_emulator_ends_with_a_killed_parent():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    pid = int(done.stdout)
    deadline = time.monotonic() + 10
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(pid)
