"""A peer that sends what it is told, for tests of what is, and what is not, in the protocol."""

import socket
import struct

from slipway.rpc import protocol
from slipway.rpc.protocol import HEADER, VALUE, Code, Failure, frame


def hello(version=(1, 1), key=b"", frame_bytes=1 << 20, magic=protocol.MAGIC, role=0):
    name = b"a test"
    head = struct.pack(
        "<8sHHIQIIHHI", magic, *version, role, 0, frame_bytes, 0, len(key), len(name), 0
    )
    return frame(Code.HELLO, 1, head + key + b"\0" + name + b"\0")


def own_address():
    """An address of this machine that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address


class Raw:
    """A connection that sends what it is told."""

    def __init__(self, server, greet=True):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        if greet:
            self.send(hello())
            code, _, _ = self.receive()
            assert code == Code.WELCOME

    def send(self, content):
        self.socket.sendall(content)

    def receive(self):
        """Return (code, id, payload), or (0, 0, b"") at the end."""
        head = self.exactly(HEADER.size)
        if not head:
            return 0, 0, b""
        size, code, _, number, _ = HEADER.unpack(head)
        return code, number, self.exactly(size)

    def exactly(self, size):
        content = b""
        while len(content) < size:
            try:
                part = self.socket.recv(size - len(content))
            except ConnectionResetError:
                return b""
            if not part:
                return b""
            content += part
        return content

    def request(self, code, payload, number=7):
        self.send(frame(code, number, payload))
        code, _, payload = self.receive()
        if code == Code.ERROR:
            failure, _, message = protocol.read_error(payload)
            return Failure(failure), message
        return code, payload

    def handle(self, code, payload):
        code, payload = self.request(code, payload)
        assert code == Code.RETURN
        return VALUE.unpack_from(payload)[2]

    def close(self):
        self.socket.close()
