"""Hostile and broken peers: what is not in the protocol ends its session and nothing else."""

import socket
import struct
import time

import pytest
from tests.rpc.raw import Raw, hello, own_address

from slipway import rpc
from slipway.errors import RPCConnectionError, RPCError, RPCTimeoutError
from slipway.rpc import protocol
from slipway.rpc.protocol import HEADER, VALUE, Code, Failure, Tag, frame, pad

NAME = b"test.rpc.addone"


def get_function(name=NAME):
    return struct.pack("<QII", 0, len(name), 0) + name + b"\0"


@pytest.fixture
def raw(server):
    connection = Raw(server)
    yield connection
    connection.close()


def is_well(server):
    with rpc.connect("127.0.0.1", server.port) as session:
        return session.get_function(NAME.decode())(1) == 2


def test_the_page_is_enough_to_make_a_call(raw):
    function = raw.handle(Code.GET_FUNCTION, get_function())
    call = struct.pack("<QII", function, 0, 1) + VALUE.pack(Tag.INT, 0, 41)
    code, payload = raw.request(Code.CALL, call)
    assert (code, VALUE.unpack_from(payload)) == (Code.RETURN, (Tag.INT, 0, 42))
    assert raw.request(Code.GOODBYE, b"") == (Code.RETURN, b"")
    assert raw.receive()[0] == 0


def test_stream_cut_at_every_byte(server):
    tensor = struct.pack("<iiBBHIq", 1, 0, 2, 32, 1, 1, 4)
    upload = struct.pack("<QQQII", 5, 0, 5, 1, 0) + pad(b"f\0") + b"hello"
    stream = b"".join(
        [
            hello(),
            frame(Code.GET_FUNCTION, 2, get_function()),
            frame(Code.TENSOR_ALLOC, 3, tensor),
            frame(Code.FILE_WRITE, 4, upload),
            frame(Code.PING, 5, b"12345678"),
        ]
    )
    for size in range(len(stream)):
        connection = Raw(server, greet=False)
        connection.send(stream[:size])
        connection.close()
    deadline = time.monotonic() + 60
    while True:  # while many sessions are ending, the server may be busy
        try:
            assert is_well(server)
            break
        except RPCError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ((0xFFFFFFF8, Code.PING, 0, 9, 0), "over the limit"),
        ((5 << 20, Code.TENSOR_WRITE, 0, 9, 0), "over the limit"),
        ((7, Code.PING, 0, 9, 0), "not a multiple of 8"),
        ((8, Code.PING, 0, 9, 1), "channel"),
    ],
)
def test_bad_header_ends_the_session(server, raw, head, words):
    raw.send(HEADER.pack(*head) + bytes(64))
    code, number, payload = raw.receive()
    assert (code, number) == (Code.ERROR, 9)
    failure, _, message = protocol.read_error(payload)
    assert failure == Failure.PROTOCOL
    assert words in message
    assert raw.receive()[0] == 0
    assert is_well(server)


def value(tag, size=0, payload=0):
    return VALUE.pack(tag, size, payload)


MALFORMED = {
    "call without fields": (Code.CALL, b""),
    "name longer than the frame": (Code.GET_FUNCTION, struct.pack("<QII", 0, 64, 0) + b"x"),
    "name over the limit": (Code.GET_FUNCTION, struct.pack("<QII", 0, 2**32 - 1, 0)),
    "name without its end": (Code.LOAD_MODULE, struct.pack("<II", 8, 0) + b"x" * 16),
    "name with a NUL": (Code.LOAD_MODULE, struct.pack("<II", 3, 0) + b"x\0y\0"),
    "17 dimensions": (Code.TENSOR_ALLOC, struct.pack("<iiBBHI17q", 1, 0, 2, 32, 1, 17, *[1] * 17)),
    "shape cut off": (Code.TENSOR_ALLOC, struct.pack("<iiBBHIq", 1, 0, 2, 32, 1, 4, 1)),
    "write without fields": (Code.TENSOR_WRITE, b"12345678"),
    "write of another size": (Code.TENSOR_WRITE, struct.pack("<QQQ", 1, 0, 100) + bytes(8)),
    "write of 2^64 bytes": (Code.TENSOR_WRITE, struct.pack("<QQQ", 1, 0, 2**64 - 1) + bytes(8)),
    "read without fields": (Code.TENSOR_READ, b"12345678"),
    "file beyond its total": (Code.FILE_WRITE, struct.pack("<QQQII", 4, 0, 8, 1, 0) + bytes(16)),
    "file at 2^64": (Code.FILE_WRITE, struct.pack("<QQQII", 4, 2**64 - 4, 8, 1, 0) + bytes(16)),
    "more handles than bytes": (Code.FREE, struct.pack("<II", 2**32 - 1, 0)),
    "time without fields": (Code.TIME, bytes(16)),
    "file read without a name": (Code.FILE_READ, struct.pack("<II", 9, 0)),
    "device cut off": (Code.DEVICE_QUERY, b""),
}


@pytest.mark.parametrize("case", list(MALFORMED))
def test_malformed_payload_ends_the_session(server, raw, case):
    failure, message = raw.request(*MALFORMED[case])
    assert failure == Failure.PROTOCOL, message
    assert raw.receive()[0] == 0
    assert is_well(server)


BAD_VALUES = {
    "text beyond the frame": value(Tag.STR, 8, 1 << 20),
    "text at 2^64": value(Tag.STR, 8, -4),
    "text without end": value(Tag.STR, 8, 24),
    "bytes beyond the frame": value(Tag.BYTES, 2**32 - 1, 0),
    "tensor beyond the frame": value(Tag.TENSOR_DATA, 0, 1 << 40),
    "tensor at the end": value(Tag.TENSOR_DATA, 0, 31),
}


@pytest.mark.parametrize("case", list(BAD_VALUES))
def test_bad_value_ends_the_session(server, raw, case):
    function = raw.handle(Code.GET_FUNCTION, get_function())
    call = struct.pack("<QII", function, 0, 1) + BAD_VALUES[case]
    failure, message = raw.request(Code.CALL, call)
    assert failure == Failure.PROTOCOL, message
    assert is_well(server)


def test_tensor_by_value_with_a_wrong_size(server, raw):
    function = raw.handle(Code.GET_FUNCTION, get_function())
    for ndim, nbytes, extents in ((1, 8, (4,)), (2, 16, (2**32, 2**32)), (1, 0, (-1,))):
        descriptor = struct.pack("<QiiBBHIQ", 0, 1, 0, 2, 32, 1, ndim, nbytes)
        descriptor += struct.pack(f"<{ndim}q", *extents) + bytes(64)
        call = struct.pack("<QII", function, 0, 1) + value(Tag.TENSOR_DATA, 0, 32) + descriptor
        connection = Raw(server)
        assert connection.handle(Code.GET_FUNCTION, get_function()) == function
        failure, _ = connection.request(Code.CALL, call)
        assert failure == Failure.PROTOCOL
        connection.close()


def test_wrong_handles_are_refused_and_the_session_goes_on(raw):
    function = raw.handle(Code.GET_FUNCTION, get_function())
    for handle in (0, 1, function + 1, function + (1 << 32), 2**64 - 1):
        call = struct.pack("<QII", handle, 0, 0)
        assert raw.request(Code.CALL, call)[0] == Failure.HANDLE
        assert raw.request(Code.TENSOR_READ, struct.pack("<QQQ", handle, 0, 0))[0] == Failure.HANDLE
        lookup = struct.pack("<QII", handle or 5, 1, 0) + b"f\0"
        assert raw.request(Code.GET_FUNCTION, lookup)[0] == Failure.HANDLE
    tensor = struct.pack("<QII", function, 0, 1) + value(Tag.TENSOR, 0, function)
    assert raw.request(Code.CALL, tensor)[0] == Failure.HANDLE
    raw.request(Code.FREE, struct.pack("<IIQ", 1, 0, function))
    assert raw.request(Code.CALL, struct.pack("<QII", function, 0, 0))[0] == Failure.HANDLE


def test_reads_and_writes_beyond_a_tensor_are_refused(raw):
    allocation = struct.pack("<iiBBHIq", 1, 0, 2, 32, 1, 1, 4)
    code, payload = raw.request(Code.TENSOR_ALLOC, allocation)
    assert code == Code.RETURN
    (handle,) = struct.unpack_from("<Q", payload, 16)
    for offset, size in ((16, 8), (8, 16), (2**64 - 8, 8), (0, 24)):
        read = struct.pack("<QQQ", handle, offset, size)
        assert raw.request(Code.TENSOR_READ, read)[0] == Failure.ARGUMENT
        assert raw.request(Code.TENSOR_WRITE, read + bytes(size))[0] == Failure.ARGUMENT
    copy = struct.pack("<QQQQQ", handle, 8, handle, 0, 16)
    assert raw.request(Code.TENSOR_COPY, copy)[0] == Failure.ARGUMENT


def test_unknown_request_and_too_many_arguments(raw):
    assert raw.request(99, b"")[0] == Failure.UNSUPPORTED
    function = raw.handle(Code.GET_FUNCTION, get_function())
    call = struct.pack("<QII", function, 0, 5000) + bytes(16 * 5000)
    assert raw.request(Code.CALL, call)[0] == Failure.LIMIT


def test_requests_sent_together_are_answered_in_order(raw):
    raw.send(b"".join(frame(Code.PING, n, b"%08d" % n) for n in range(1, 2001)))
    assert [raw.receive()[1] for _ in range(2000)] == list(range(1, 2001))


def test_failed_transfer_is_told_once_at_its_end(raw):
    def chunk(offset, flags, name=b"a/b"):
        head = struct.pack("<QQQII", 24, offset, 8, len(name), 0) + pad(name + b"\0")
        return frame(Code.FILE_WRITE, 5, head + b"x" * 8, flags)

    raw.send(chunk(0, 1) + chunk(8, 1) + chunk(16, 0) + frame(Code.PING, 6, b""))
    code, number, payload = raw.receive()
    assert (code, number) == (Code.ERROR, 5)
    assert "not a name" in protocol.read_error(payload)[2]
    assert raw.receive()[:2] == (Code.RETURN, 6)
    raw.send(chunk(8, 0, b"middle"))
    assert "without its beginning" in protocol.read_error(raw.receive()[2])[2]


@pytest.mark.parametrize(
    "opening",
    [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0" * 64, hello(magic=b"TVMTVMTV"),
     frame(Code.CALL, 1, bytes(64)), HEADER.pack(2048, Code.HELLO, 0, 1, 0)],
)  # fmt: skip
def test_strangers_get_no_answer(server, opening):
    connection = Raw(server, greet=False)
    connection.send(opening)
    assert connection.receive()[0] == 0
    connection.close()
    assert is_well(server)


def test_other_version_is_refused_with_both_named(server):
    connection = Raw(server, greet=False)
    connection.send(hello(version=(7, 9)))
    code, _, payload = connection.receive()
    failure, _, message = protocol.read_error(payload)
    assert (code, failure) == (Code.ERROR, Failure.VERSION)
    assert "a test" in message
    assert "protocol 9" in message
    assert "speaks 1" in message
    assert "slipway 0" in message
    connection.close()


def test_newer_client_that_still_speaks_ours_is_served(server):
    connection = Raw(server, greet=False)
    connection.send(hello(version=(1, 5)))
    code, _, payload = connection.receive()
    assert code == Code.WELCOME
    assert struct.unpack_from("<8sH", payload) == (protocol.MAGIC, 1)
    connection.close()


def test_other_key_is_refused(server):
    with pytest.raises(RPCError, match="asked for a device of kind 'rpi4', this one is ''"):
        rpc.connect("127.0.0.1", server.port, key="rpi4")


def serve(**options):
    options = rpc.ServerOptions(is_quiet=True, **options)
    return rpc.Server("127.0.0.1", 0, use_popen=False, options=options)


def test_silent_client_is_put_out_and_blocks_nobody():
    with serve(greeting_timeout_s=0.3, max_sessions=2) as server:
        connection = Raw(server, greet=False)
        assert is_well(server)
        start = time.monotonic()
        code, _, payload = connection.receive()
        assert code == Code.ERROR
        assert "greeting in time" in protocol.read_error(payload)[2]
        assert time.monotonic() - start < 2
        connection.close()


def test_too_many_sessions_are_refused():
    with serve(max_sessions=1) as server:
        first = rpc.connect("127.0.0.1", server.port)
        with pytest.raises(RPCError, match="as many sessions as it may"):
            rpc.connect("127.0.0.1", server.port)
        first.close()
        deadline = time.monotonic() + 30
        while True:
            try:
                rpc.connect("127.0.0.1", server.port).close()
                break
            except RPCError:
                assert time.monotonic() < deadline
                time.sleep(0.02)


def test_upload_limit():
    with serve(max_upload_bytes=1000) as server, rpc.connect("127.0.0.1", server.port) as session:
        session.upload(bytes(1000), "fits")
        with pytest.raises(
            ValueError, match=r"takes uploads up to 1000 bytes \(its --max-upload\)"
        ):
            session.upload(bytes(1001), "large")
        assert session.listdir() == ["fits"]


def test_token():
    with serve(token="secret", require_token=True) as server:
        with rpc.connect("127.0.0.1", server.port, token="secret") as session:
            assert session.ping(b"x") == b"x"
        with pytest.raises(RPCError, match="asks for its token"):
            rpc.connect("127.0.0.1", server.port, token="")
        with pytest.raises(RPCError, match="token is not the one"):
            rpc.connect("127.0.0.1", server.port, token="wrong")


def test_proof_of_the_token_cannot_be_replayed():
    with serve(token="secret", require_token=True) as server:
        answers = []
        for _ in range(2):
            connection = Raw(server, greet=False)
            connection.send(hello())
            code, _, challenge = connection.receive()
            assert code == Code.CHALLENGE
            if not answers:
                answers.append(b"c" * 32 + protocol.client_proof("secret", challenge, b"c" * 32))
                expected = Code.WELCOME
            else:
                expected = Code.ERROR
            connection.send(frame(Code.AUTHENTICATE, 1, answers[0]))
            assert connection.receive()[0] == expected
            connection.close()


def test_client_finds_out_a_server_that_lacks_the_token():
    """A server that lets everybody in cannot prove that it knows the token."""
    import threading

    listener = socket.create_server(("127.0.0.1", 0))

    def impostor():
        connection, _ = listener.accept()
        connection.recv(4096)
        connection.sendall(frame(Code.CHALLENGE, 1, bytes(32)))
        connection.recv(4096)
        welcome = struct.pack(
            "<8sHHIQII32sHHI", protocol.MAGIC, 1, 0, 0, 0, 4096, 0, bytes(32), 0, 0, 0
        )
        connection.sendall(frame(Code.WELCOME, 1, welcome + b"\0\0"))
        connection.recv(1)
        connection.close()

    thread = threading.Thread(target=impostor)
    thread.start()
    with pytest.raises(RPCError, match="could not prove that it has the token"):
        rpc.connect("127.0.0.1", listener.getsockname()[1], token="secret")
    thread.join()
    listener.close()


def test_peer_from_beyond_needs_the_token():
    address = own_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    for token, words in (("", "serves its own machine only"), ("secret", "token is not the one")):
        options = rpc.ServerOptions(is_quiet=True, token=token)
        with rpc.Server("0.0.0.0", 0, use_popen=False, options=options) as server:
            with rpc.connect("127.0.0.1", server.port) as session:
                assert session.ping(b"x") == b"x"
            with pytest.raises(RPCError, match=words):
                rpc.connect(address, server.port, token="wrong")
            if token:
                with rpc.connect(address, server.port, token=token) as session:
                    assert session.ping(b"x") == b"x"


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(RPCConnectionError, match="Is the server running there"):
        rpc.connect("127.0.0.1", port)


def test_server_that_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(RPCTimeoutError, match=r"did not answer the greeting within 0\.2 s"):
            rpc.connect("127.0.0.1", port, timeout=0.2)
