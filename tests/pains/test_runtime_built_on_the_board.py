"""Pain 7: the runtime has to be built on the board, from source."""

import struct
import subprocess

import pytest

from slipway import rpc
from slipway.toolchain import native

MACHINES = {"aarch64": 183, "armv7": 40}
PROGRAM_INTERPRETER = 3  # a program header: the dynamic loader that the file asks for


def program_headers(content):
    wide = content[4] == 2
    (at,) = struct.unpack_from("<Q" if wide else "<I", content, 32 if wide else 28)
    size, count = struct.unpack_from("<HH", content, 54 if wide else 42)
    return [struct.unpack_from("<I", content, at + i * size)[0] for i in range(count)]


@pytest.mark.parametrize("kind", MACHINES)
def test_what_is_carried_to_the_board_is_one_file_that_needs_nothing_there(kind):
    server = native.build_device_server(f"{kind}-linux")
    content = server.read_bytes()
    assert struct.unpack_from("<H", content, 18)[0] == MACHINES[kind]
    assert PROGRAM_INTERPRETER not in program_headers(content)  # no C library of some version
    assert len(content) < 1 << 20


def test_it_serves_from_an_empty_file_system(qemu, tmp_path):
    """No shell, no C library, no Python, no /proc: the emulated board has this file only."""
    emulator = qemu("aarch64")
    server = native.build_device_server("aarch64-linux")
    version = subprocess.run(
        [emulator, "-L", str(tmp_path), str(server), "--version"],
        env={}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "slipway" in version.stdout.lower()
    with rpc.PopenSession([emulator, "-L", str(tmp_path), str(server), "--stdio"]) as board:
        assert board.ping(b"x") == b"x"
        board.upload(b"12345", "file")
        assert board.download("file") == b"12345"
