"""Waiting for what other processes and threads do."""

import contextlib
import time
from pathlib import Path


def wait_for(condition, seconds=60.0):
    """Return what `condition` gives as soon as that is true; fail after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"nothing in {seconds:g} s"
        time.sleep(0.02)
    return found


def is_alive(pid):
    """Return whether a process is there, and not only its entry in the table."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
