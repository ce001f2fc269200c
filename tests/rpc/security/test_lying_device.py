"""A device that lies about what it sends: the client says so, and takes no harm."""

import socket
import struct

import numpy as np
import pytest

from slipway.errors import RPCConnectionError, RPCError
from slipway.rpc.array import RemoteNDArray
from slipway.rpc.client import RPCSession
from slipway.rpc.link import Link
from slipway.rpc.module import RemoteFunction
from slipway.rpc.protocol import TENSOR_HEAD, VALUE, Code, Tag, Welcome, frame


class Liar:
    """A session whose next reply is what the test says."""

    def __init__(self):
        ours, self.end = socket.socketpair()
        welcome = Welcome(1, 31, 1 << 16, 0, "", "a liar")
        self.session = RPCSession(Link(ours, welcome, "the liar"), "", "a liar", 0)
        self.function = RemoteFunction(self.session, 3)

    def says(self, payload, code=Code.RETURN):
        self.end.sendall(frame(code, 1, payload))
        self.end.shutdown(socket.SHUT_WR)


@pytest.fixture
def liar():
    made = Liar()
    yield made
    made.session.close()
    made.end.close()


def descriptor(shape, nbytes, bits=32):
    head = TENSOR_HEAD.pack(7, 1, 0, 2, bits, 1, len(shape), nbytes)
    return head + struct.pack(f"<{len(shape)}q", *shape)


@pytest.mark.parametrize(
    "content",
    [
        descriptor((2,), 1 << 30),  # reading it would write a GiB into eight bytes
        descriptor((2,), 4),
        descriptor((-1,), 4),
        descriptor((1 << 62, 4), 0),
        descriptor((1,) * 17, 4),
        descriptor((2,), 8, bits=7),
        descriptor((2,), 8)[:32],
    ],
    ids=["larger", "smaller", "negative", "overflow", "dimensions", "dtype", "cut"],
)
def test_impossible_tensor(liar, content):
    liar.says(VALUE.pack(Tag.TENSOR_DESC, 0, 16) + content)
    with pytest.raises(RPCError, match="the liar"):
        liar.function("x")
    with pytest.raises(RPCConnectionError, match="broke the protocol"):
        liar.function("x")


def test_data_of_another_size_than_asked_for(liar):
    tensor = RemoteNDArray(liar.session, 6, (4,), "float32", 1 << 20, liar.session.cpu(0))
    liar.says(struct.pack("<QQQ", 1 << 20, 0, 1 << 15) + bytes(1 << 15))
    with pytest.raises(RPCError, match="breaks the RPC protocol"):
        tensor.copyto(np.zeros(4, "float32"))


@pytest.mark.parametrize(
    "payload",
    [
        VALUE.pack(Tag.STR, 1 << 20, 16) + b"text\0\0\0\0",
        VALUE.pack(Tag.BYTES, 8, -8),
        VALUE.pack(Tag.LIST, 1 << 30, 0),
        VALUE.pack(Tag.LIST, 1, 16) + VALUE.pack(Tag.LIST, 1, 16),  # of itself, without end
        VALUE.pack(99, 0, 0),
        b"",
    ],
    ids=["text", "bytes", "list", "list in a list", "type", "nothing"],
)
@pytest.mark.parametrize("arguments", [(1,), ("x",)], ids=["number", "text"])
def test_value_that_is_none(liar, payload, arguments):
    liar.says(payload)
    with pytest.raises(RPCError, match="the liar"):
        liar.function(*arguments)


def test_download_that_announces_what_no_memory_holds(liar):
    liar.says(struct.pack("<QQQ", 1 << 60, 0, 0))
    with pytest.raises(RPCError, match=r"sends 1152921504606846976 bytes.*no memory"):
        liar.session.download("f")


def test_download_that_announces_much_and_ends(liar):
    """What is announced takes no memory before it comes."""
    liar.says(struct.pack("<QQQ", 1 << 33, 0, 8) + bytes(8))
    with pytest.raises(RPCError, match="breaks the RPC protocol"):
        liar.session.download("f")


def test_other_things_than_asked_for(liar):
    liar.says(VALUE.pack(Tag.INT, 0, 5))
    with pytest.raises(RPCError, match="something else than a list of files"):
        liar.session.listdir()


def test_error_without_its_fields(liar):
    liar.says(bytes(8), Code.ERROR)
    with pytest.raises(RPCError, match="an error without its fields"):
        liar.function(1)
