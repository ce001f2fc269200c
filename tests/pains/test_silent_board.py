"""Pain 15: flashing and the serial line lock up or flake."""

import os
import pty
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from slipway import micro
from slipway.cli.app import app
from slipway.errors import SlipwayError, ToolchainError
from slipway.micro import board_tools
from slipway.micro.board import find_board


@pytest.fixture
def line():
    """A serial line of which the test holds the board's end."""
    board, host = pty.openpty()
    yield board, os.ttyname(host)
    os.close(board)
    os.close(host)


def session_fails(port, words):
    start = time.monotonic()
    with pytest.raises(SlipwayError, match=words) as told:
        micro.SerialSession(port, 115200, timeout=1.0)
    assert time.monotonic() - start < 30
    assert port in str(told.value)
    return told.value


def test_a_board_that_says_nothing_is_an_error_with_what_to_look_at(line):
    session_fails(line[1], r"(?i)reset|baud|cable|firmware")


def test_a_board_that_prints_its_own_log_is_no_protocol(line):
    stop = threading.Event()

    def chatter():
        while not stop.wait(0.01):
            os.write(line[0], b"[00:00:01] <inf> main: still alive\r\n")

    thread = threading.Thread(target=chatter)
    thread.start()
    try:
        session_fails(line[1], None)
    finally:
        stop.set()
        thread.join()


def test_a_tool_that_hangs_is_ended(tmp_path, monkeypatch):
    """A programmer that waits for a probe for ever is the board's lock-up of hours."""
    monkeypatch.setattr(board_tools, "FLASH_TIMEOUT_S", 2.0)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    tool = tmp_path / "pyocd"
    tool.write_text(
        f"#!/bin/sh\necho waiting for the button\nsleep 600 &\necho $! > {tmp_path}/child\nwait\n"
    )
    tool.chmod(0o755)
    start = time.monotonic()
    with pytest.raises(
        ToolchainError,
        match=r"nucleo-f446re took more than 2 s: .*pyocd(.|\n)*waiting for the button$",
    ):
        board_tools.flash_board(find_board("nucleo-f446re"), tmp_path / "x.elf")
    assert time.monotonic() - start < 60
    child = int((tmp_path / "child").read_text())
    state = Path(f"/proc/{child}/stat")
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] not in "ZX":
        assert time.monotonic() - start < 60  # what the tool started holds no probe
        time.sleep(0.02)


def test_no_port_is_told_by_the_command():
    done = CliRunner().invoke(app, ["doctor", "/dev/no-such-port"])
    assert done.exit_code == 1
    assert "/dev/no-such-port" in done.output
