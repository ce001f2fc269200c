"""What docs/rpc-protocol.md says must be, asked of the Python server and of the static one."""

import socket
import struct
import time

import pytest
from tests.rpc.raw import Raw, hello

from slipway import rpc
from slipway.rpc import protocol
from slipway.rpc.protocol import HEADER, VALUE, Code, Failure, Tag, frame, hello_payload, pad

MORE, NO_REPLY = 1, 2


@pytest.fixture(scope="module", params=["static", "python"])
def device(request, tmp_path_factory):
    if request.param == "python":
        with rpc.Server("127.0.0.1", 0, token="", silent=True) as server:
            yield server
        return
    import os
    import platform
    import subprocess

    from slipway.toolchain import native

    folder = tmp_path_factory.mktemp("static")
    path = native.build_device_server(f"{platform.machine()}-linux-gnu")
    with (folder / "log").open("w") as log:
        environment = {**os.environ, "TMPDIR": str(folder), "SLIPWAY_RPC_TOKEN": ""}
        process = subprocess.Popen([path, "--port", "0"], stderr=log, env=environment)
    deadline = time.monotonic() + 20
    while "\n" not in (text := (folder / "log").read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.port = int(text.partition("\n")[0].rsplit(":", 1)[1])
    yield process
    process.terminate()
    assert process.wait(10) == 0


@pytest.fixture
def raw(device):
    connection = Raw(device)
    yield connection
    connection.close()


def is_well(raw):
    """The session goes on, and nothing else was answered before."""
    raw.send(frame(Code.PING, 99, b"12345678"))
    return raw.receive() == (Code.RETURN, 99, b"12345678")


def failure_of(raw):
    code, _, payload = raw.receive()
    assert code == Code.ERROR, (code, payload)
    return Failure(protocol.read_error(payload)[0])


def ends_with(raw, failure):
    return failure_of(raw) == failure and raw.receive()[0] == 0


# 1. Bytes and frames


@pytest.mark.parametrize("flags", [4, 8, 0x8000, 0xFFFF, 4 | NO_REPLY])
def test_other_flags_are_zero(raw, flags):
    raw.send(frame(Code.PING, 5, b"", flags))
    assert ends_with(raw, Failure.PROTOCOL)


@pytest.mark.parametrize("code", [Code.PING, Code.FILE_LIST, Code.TENSOR_WRITE, 99])
def test_id_0_is_not_used_by_a_client(raw, code):
    raw.send(frame(code, 0, bytes(24)))
    assert ends_with(raw, Failure.PROTOCOL)


def test_channel_is_0(raw):
    raw.send(HEADER.pack(0, Code.PING, 0, 5, 7))
    assert ends_with(raw, Failure.PROTOCOL)


@pytest.mark.parametrize("size", [1, 7, 9, 4095])
def test_size_is_a_multiple_of_8(raw, size):
    raw.send(HEADER.pack(size, Code.PING, 0, 5, 0) + bytes(size))
    assert ends_with(raw, Failure.PROTOCOL)


def test_payload_is_no_larger_than_told_in_welcome(device):
    connection = Raw(device, greet=False)
    connection.send(hello())
    (limit,) = struct.unpack_from("<I", connection.receive()[2], 24)
    connection.send(frame(Code.PING, 5, bytes(1024)))
    assert connection.receive()[0] == Code.RETURN
    connection.send(HEADER.pack(limit + 8, Code.PING, 0, 6, 0))
    assert ends_with(connection, Failure.PROTOCOL)
    connection.close()


@pytest.mark.parametrize("code", [Code.PING, Code.FILE_LIST, Code.GOODBYE, Code.TENSOR_READ, 99])
def test_only_transfers_have_more_than_one_frame(raw, code):
    raw.send(frame(code, 5, bytes(24), MORE))
    assert ends_with(raw, Failure.PROTOCOL)


def file_write(number, total, offset, content, flags=0, name=b"file"):
    head = struct.pack("<QQQII", total, offset, len(content), len(name), 0)
    return frame(Code.FILE_WRITE, number, head + pad(name + b"\0") + content, flags)


def named(name):
    return struct.pack("<II", len(name), 0) + name + b"\0"


def tensor(raw, size=16):
    raw.send(frame(Code.TENSOR_ALLOC, 7, struct.pack("<iiBBHIq", 1, 0, 1, 8, 1, 1, size)))
    code, _, payload = raw.receive()
    assert code == Code.RETURN
    return struct.unpack_from("<Q", payload, 16)[0]


def test_no_reply_is_answered_by_nothing_not_even_an_error(raw):
    handle = tensor(raw)
    raw.send(file_write(6, 4, 0, b"abcd"))
    assert raw.receive()[:2] == (Code.RETURN, 6)
    requests = {
        Code.PING: b"12345678",
        99: b"",
        Code.CALL: struct.pack("<QII", 12345, 0, 0),
        Code.GET_FUNCTION: struct.pack("<QII", 0, 1, 0) + b"f\0",
        Code.LOAD_MODULE: named(b"no such file"),
        Code.FREE: struct.pack("<IIQ", 1, 0, 12345),
        Code.TENSOR_ALLOC: struct.pack("<iiBBHIq", 77, 0, 1, 8, 1, 1, 4),
        Code.TENSOR_WRITE: struct.pack("<QQQ", 12345, 0, 8) + bytes(8),
        Code.TENSOR_READ: struct.pack("<QQQ", handle, 0, 16),
        Code.TENSOR_COPY: struct.pack("<QQQQQ", handle, 0, handle, 1000, 8),
        Code.FILE_READ: named(b"file"),
        Code.FILE_REMOVE: named(b"no such file"),
        Code.FILE_LIST: b"",
        Code.DEVICE_QUERY: struct.pack("<iiII", 77, 0, 0, 0),
        Code.TIME: struct.pack("<QQIIiiiiii", 12345, 0, 0, 0, 1, 1, 0, 0, 1, 0),
    }
    for code, payload in requests.items():
        raw.send(frame(code, 5, payload, NO_REPLY))
    raw.send(frame(Code.TENSOR_READ, 5, struct.pack("<QQQ", 12345, 0, 16), NO_REPLY))
    raw.send(frame(Code.FILE_READ, 5, named(b"no such file"), NO_REPLY))
    raw.send(file_write(5, 4, 0, b"abcd", NO_REPLY, b"a/b"))
    assert is_well(raw)


def test_goodbye_without_reply(raw):
    raw.send(frame(Code.GOODBYE, 5, b"", NO_REPLY))
    assert raw.receive()[0] == 0


def test_only_the_last_frame_of_a_transfer_is_answered(raw):
    raw.send(file_write(5, 16, 0, b"12345678", MORE))
    raw.send(frame(Code.PING, 6, b""))
    assert raw.receive()[:2] == (Code.RETURN, 6)
    raw.send(file_write(5, 16, 8, b"abcdefgh"))
    assert raw.receive()[:2] == (Code.RETURN, 5)
    raw.send(frame(Code.FILE_READ, 8, named(b"file")))
    assert raw.receive()[2][24:] == b"12345678abcdefgh"


# 2. Greeting


def greeting(device, content):
    connection = Raw(device, greet=False)
    connection.send(content)
    answer = connection.receive()
    connection.close()
    return answer


@pytest.mark.parametrize(
    "content",
    [
        HEADER.pack(56, Code.HELLO, 4, 1, 0) + hello_payload(0, b"", b"") + bytes(6),
        HEADER.pack(56, Code.HELLO, MORE, 1, 0) + hello_payload(0, b"", b"") + bytes(6),
        HEADER.pack(56, Code.HELLO, 0, 0, 0) + hello_payload(0, b"", b"") + bytes(6),
        HEADER.pack(56, Code.HELLO, 0, 1, 1) + hello_payload(0, b"", b"") + bytes(6),
        HEADER.pack(1032, Code.HELLO, 0, 1, 0) + hello_payload(0, b"", b"") + bytes(982),
        hello(magic=b"slipway\n"),
        frame(Code.AUTHENTICATE, 1, bytes(64)),
        frame(Code.WELCOME, 1, bytes(80)),
    ],
    ids=["flags", "more", "id 0", "channel", "size", "magic", "proof", "welcome"],
)  # fmt: skip
def test_what_is_no_hello_gets_no_answer(device, content):
    assert greeting(device, content)[0] == 0


@pytest.mark.parametrize("role", [1, 2, 3, 4, 5, 2**32 - 1])
def test_role_of_a_session_is_0(device, role):
    code, _, payload = greeting(device, hello(role=role))
    assert (code, protocol.read_error(payload)[0]) == (Code.ERROR, Failure.PROTOCOL)


def test_frames_of_a_client_are_at_least_1024_bytes(device):
    code, _, payload = greeting(device, hello(frame_bytes=1016))
    assert (code, protocol.read_error(payload)[0]) == (Code.ERROR, Failure.PROTOCOL)
    assert greeting(device, hello(frame_bytes=1024))[0] == Code.WELCOME


def test_no_frame_is_larger_than_the_client_takes(device):
    connection = Raw(device, greet=False)
    connection.send(hello(frame_bytes=1024))
    assert connection.receive()[0] == Code.WELCOME
    handle = tensor(connection, 5000)
    connection.send(frame(Code.TENSOR_READ, 8, struct.pack("<QQQ", handle, 0, 5000)))
    at = 0
    while at < 5000:
        size, code, flags, number, _ = HEADER.unpack(connection.exactly(HEADER.size))
        assert (code, number) == (Code.RETURN, 8)
        assert size <= 1024
        total, offset, count = struct.unpack_from("<QQQ", connection.exactly(size))
        assert (total, offset) == (5000, at)
        at += count
        assert bool(flags & MORE) == (at < 5000)
    assert is_well(connection)
    connection.close()


def test_welcome_says_what_the_table_says(device):
    _, number, payload = greeting(device, hello())
    fields = struct.unpack_from("<8sHHIQII32sHHI", payload)
    magic, version, reserved, role, features, frame_bytes, timeout_ms = fields[:7]
    assert (magic, version, reserved, role, number) == (b"SLIPWAY\n", 1, 0, 0, 1)
    assert features & 7 == 7
    assert not features & ~31
    assert frame_bytes >= 1024
    assert timeout_ms == 0
    assert fields[7] == bytes(32)
    key_size, name_size = fields[8:10]
    assert payload[72 + key_size] == payload[73 + key_size + name_size] == 0


# 3, 4. Values and requests


def test_handles_are_never_0_and_freed_ones_stay_invalid(raw):
    handles = []
    for _ in range(20):
        handles.append(tensor(raw))
        raw.send(frame(Code.FREE, 8, struct.pack("<IIQ", 1, 0, handles[-1])))
        assert raw.receive()[0] == Code.RETURN
    assert 0 not in handles
    assert len(set(handles)) == 20
    for handle in [*handles, 0]:
        raw.send(frame(Code.TENSOR_READ, 8, struct.pack("<QQQ", handle, 0, 1)))
        assert failure_of(raw) == Failure.HANDLE
    assert is_well(raw)


def test_tensors_are_zeroed(raw):
    handle = tensor(raw, 4096)
    raw.send(frame(Code.TENSOR_READ, 8, struct.pack("<QQQ", handle, 0, 4096)))
    assert raw.receive()[2][24:] == bytes(4096)


def test_unknown_handles_are_ignored_by_free(raw):
    raw.send(frame(Code.FREE, 8, struct.pack("<II3Q", 3, 0, 0, 1 << 40, 2**64 - 1)))
    code, number, payload = raw.receive()
    assert (code, number) == (Code.RETURN, 8)
    assert VALUE.unpack_from(payload) == (Tag.NONE, 0, 0)


def test_ping_is_answered_by_the_same(raw):
    for content in (b"", b"12345678", bytes(range(256)) * 4):
        raw.send(frame(Code.PING, 2**32 - 1, content))
        assert raw.receive() == (Code.RETURN, 2**32 - 1, content)


NAMES = [
    b"", b".", b"..", b"a/b", b"/etc/passwd", b"../x", b"a\\b", b"C:x", b"a\nb", b"a\x1b", b"\x7f",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_are_one_component(raw, name):
    raw.send(file_write(8, 1, 0, b"x", name=name))
    assert failure_of(raw) == Failure.ARGUMENT
    for code in (Code.FILE_READ, Code.FILE_REMOVE):
        raw.send(frame(code, 8, named(name)))
        assert failure_of(raw) == Failure.ARGUMENT
    raw.send(frame(Code.LOAD_MODULE, 8, named(name)))
    assert failure_of(raw) in (Failure.ARGUMENT, Failure.NOT_FOUND)
    assert is_well(raw)


def test_names_have_at_most_200_bytes(device):
    for size, is_taken in ((200, True), (201, False)):
        connection = Raw(device)
        connection.send(file_write(8, 1, 0, b"x", name=b"n" * size))
        code, _, payload = connection.receive()
        assert (code == Code.RETURN) == is_taken, payload
        connection.close()


def test_file_appears_when_it_is_complete_and_not_at_all_otherwise(raw):
    def files():
        raw.send(frame(Code.FILE_LIST, 9, b""))
        _, _, payload = raw.receive()
        _, size, at = VALUE.unpack_from(payload)
        return payload[at : at + size]

    raw.send(file_write(5, 16, 0, b"12345678", MORE))
    assert files() == b""
    raw.send(file_write(5, 16, 8, b"12345678"))
    assert raw.receive()[0] == Code.RETURN
    assert files() == b"16 file\n"
    raw.send(file_write(6, 16, 0, b"12345678", MORE, b"other"))
    raw.send(file_write(6, 24, 8, b"12345678", 0, b"other"))  # another total
    assert failure_of(raw) == Failure.ARGUMENT
    assert files() == b"16 file\n"


@pytest.mark.parametrize("skip", [0, 16])
def test_offsets_are_ascending_without_gaps(raw, skip):
    raw.send(file_write(5, 32, 0, b"12345678", MORE))
    raw.send(file_write(5, 32, skip, b"12345678", MORE))
    raw.send(file_write(5, 32, 24, b"12345678"))
    assert failure_of(raw) == Failure.ARGUMENT
    assert is_well(raw)


def test_last_frame_ends_at_the_total(raw):
    raw.send(file_write(5, 32, 0, b"12345678"))
    assert failure_of(raw) == Failure.ARGUMENT
    assert is_well(raw)


def test_no_file_is_read_in_the_middle_of_a_write(raw):
    raw.send(file_write(4, 8, 0, b"12345678"))
    assert raw.receive()[:2] == (Code.RETURN, 4)
    raw.send(file_write(5, 16, 0, b"12345678", MORE, b"other"))
    raw.send(frame(Code.FILE_READ, 8, named(b"file")))
    assert failure_of(raw) == Failure.ARGUMENT
    raw.send(file_write(5, 16, 8, b"abcdefgh", 0, b"other"))
    assert raw.receive()[:2] == (Code.RETURN, 5)
    raw.send(frame(Code.FILE_READ, 8, named(b"other")))
    assert raw.receive()[2][24:] == b"12345678abcdefgh"


def test_device_query_0_is_whether_it_exists(raw):
    for device_type, exists in ((1, 1), (77, 0)):
        raw.send(frame(Code.DEVICE_QUERY, 8, struct.pack("<iiII", device_type, 0, 0, 0)))
        code, _, payload = raw.receive()
        assert code == Code.RETURN
        assert VALUE.unpack_from(payload)[2] == exists


def test_requests_that_there_are_not_leave_the_session(raw):
    for code in (0, 1, 3, 6, 31, 33, 64, 96, 128, 129, 0xFFFF):
        raw.send(frame(code, 8, b""))
        assert failure_of(raw) == Failure.UNSUPPORTED, code
    assert is_well(raw)


def test_malformed_frame_ends_its_session_and_nothing_else(device, raw):
    other = Raw(device)
    other.send(HEADER.pack(2**32 - 8, Code.PING, 0, 5, 0))
    assert ends_with(other, Failure.PROTOCOL)
    assert is_well(raw)
    other.close()


def test_session_ends_with_its_connection(device):
    connection = Raw(device)
    connection.socket.shutdown(socket.SHUT_WR)
    assert connection.receive()[0] == 0
    connection.close()
