"""A client of Slipway's RPC protocol in nothing but Python's standard library.

Written from docs/rpc-protocol.md: it uploads a library, calls a function of it on two tensors, and
times that.  Run it with a server and a library at hand:

    python -m slipway.exec.rpc_server --port 9090
    python examples/rpc_minimal_client.py 127.0.0.1 9090 mylib.so myadd
"""

import array
import hashlib
import hmac
import os
import socket
import struct
import sys
from pathlib import Path

HEADER = struct.Struct("<IHHII")  # size, code, flags, id, channel
VALUE = struct.Struct("<iIQ")  # tag, size, payload
HELLO, CHALLENGE, AUTHENTICATE, WELCOME = 1, 2, 3, 4
CALL, GET_FUNCTION, LOAD_MODULE = 17, 18, 19
TENSOR_ALLOC, TENSOR_WRITE, TENSOR_READ, FILE_WRITE, TIME = 21, 22, 23, 25, 30
RETURN, ERROR = 128, 129
MORE, PROOF = 1, 32
TENSOR, CPU, FLOAT = 70, 1, 2


def pad(content):
    return content + bytes(-len(content) % 8)


def name_of(text):
    raw = text.encode()
    return struct.pack("<II", len(raw), 0) + raw + b"\0"


class Device:
    def __init__(self, host, port, token=""):
        self.link = socket.create_connection((host, port), timeout=30)
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.next_id = 1
        self.frame_bytes = 1024
        self.greet(token)

    def send(self, code, payload, flags=0):
        payload = pad(payload)
        self.link.sendall(HEADER.pack(len(payload), code, flags, self.next_id, 0) + payload)

    def receive(self):
        size, code, flags, _, _ = HEADER.unpack(self.exactly(HEADER.size))
        payload = self.exactly(size)
        if code == ERROR:
            _, kind_size, size, _ = struct.unpack_from("<IIII", payload)
            message = payload[17 + kind_size : 17 + kind_size + size].decode()
            raise RuntimeError(f"{payload[16 : 16 + kind_size].decode()}: {message}")
        return code, flags, payload

    def exactly(self, size):
        content = bytearray()
        while len(content) < size:
            part = self.link.recv(size - len(content))
            if not part:
                raise ConnectionError("the device closed the connection")
            content += part
        return bytes(content)

    def greet(self, token):
        name = b"minimal client"
        head = b"SLIPWAY\n", 1, 1, 0, PROOF if token else 0, 1 << 20
        hello = struct.pack("<8sHHIQIIHHI", *head, 0, 0, len(name), 0)
        self.send(HELLO, hello + b"\0" + name + b"\0")
        (code, _, payload), proof = self.receive(), None
        if code == CHALLENGE:
            nonce, challenge = os.urandom(32), payload[:32]
            message = b"slipway rpc 1 client\0" + challenge + nonce
            self.send(AUTHENTICATE, nonce + hmac.digest(token.encode(), message, hashlib.sha256))
            message = b"slipway rpc 1 server\0" + nonce + challenge
            proof = hmac.digest(token.encode(), message, hashlib.sha256)
            code, _, payload = self.receive()
        if token and payload[32:64] != proof:
            raise RuntimeError("the device does not know the token itself")
        assert code == WELCOME
        (self.frame_bytes,) = struct.unpack_from("<I", payload, 24)
        key_size, name_size = struct.unpack_from("<HH", payload, 64)
        self.name = payload[73 + key_size :][:name_size].decode()

    def request(self, code, payload):
        self.next_id += 1
        self.send(code, payload)
        _, _, payload = self.receive()
        return payload

    def object(self, code, payload):
        tag, _, handle = VALUE.unpack_from(self.request(code, payload))
        if tag == 0:
            raise LookupError("there is no such function")
        return handle

    def send_data(self, code, prefix, suffix, content):
        """Send prefix, offset, size, suffix, piece of content, for all pieces."""
        self.next_id += 1
        room = self.frame_bytes - len(prefix) - 16 - len(suffix)
        for at in range(0, max(len(content), 1), room):
            piece = content[at : at + room]
            more = MORE if at + room < len(content) else 0
            self.send(code, prefix + struct.pack("<QQ", at, len(piece)) + suffix + piece, more)
        self.receive()

    def upload(self, name, content):
        self.send_data(FILE_WRITE, struct.pack("<Q", len(content)), pad(name_of(name)), content)

    def tensor(self, values):
        """Make a float32 tensor of one dimension."""
        alloc = struct.pack("<iiBBHIq", CPU, 0, FLOAT, 32, 1, 1, len(values))
        (handle,) = struct.unpack_from("<Q", self.request(TENSOR_ALLOC, alloc), 16)
        content = array.array("f", values).tobytes()
        self.send_data(TENSOR_WRITE, struct.pack("<Q", handle), b"", content)
        return handle

    def values(self, handle, count):
        self.next_id += 1
        self.send(TENSOR_READ, struct.pack("<QQQ", handle, 0, 4 * count))
        content, flags = b"", MORE
        while flags & MORE:
            _, flags, payload = self.receive()
            (size,) = struct.unpack_from("<Q", payload, 16)
            content += payload[24 : 24 + size]
        return array.array("f", content)


def main(host, port, library, function):
    device = Device(host, int(port), os.environ.get("SLIPWAY_RPC_TOKEN", ""))
    print("connected to", device.name)
    device.upload("library", Path(library).read_bytes())
    module = device.object(LOAD_MODULE, name_of("library"))
    call = device.object(GET_FUNCTION, struct.pack("<Q", module) + name_of(function))
    a, b = device.tensor([float(i) for i in range(1024)]), device.tensor([0.0] * 1024)
    args = VALUE.pack(TENSOR, 0, a) + VALUE.pack(TENSOR, 0, b)
    device.request(CALL, struct.pack("<QII", call, 0, 2) + args)
    print(f"{function}: {device.values(a, 1024)[:4]} -> {device.values(b, 1024)[:4]}")
    timing = device.request(
        TIME, struct.pack("<QQIIiiiiii", call, 0, 0, 2, 10, 3, 0, 0, 1, 100) + args
    )
    print("seconds per run:", *struct.unpack_from("<3d", timing, 16))


if __name__ == "__main__":
    main(*sys.argv[1:])
