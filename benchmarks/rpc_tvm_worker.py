"""apache-tvm's RPC, measured by ``benchmarks/rpc.py --tvm`` in an environment of its own.

Reads the name of a row from each line, measures it once, and answers with a line of JSON; the
units are those of ``rpc.py``.
"""

import json
import sys
import time

import numpy as np
import tvm
from tvm import rpc

CALLS = 100
BULK_BYTES = 16 << 20


def per_call(function, count=CALLS):
    start = time.perf_counter()
    for _ in range(count):
        function()
    return (time.perf_counter() - start) / count * 1e6


def megabytes(function):
    start = time.perf_counter()
    function()
    return BULK_BYTES / (time.perf_counter() - start) / 1e6


def milliseconds(function):
    start = time.perf_counter()
    kept = function()  # what closing takes is not in the row
    taken = time.perf_counter() - start
    del kept
    return taken * 1e3


def start_tracker():
    """Return a tracker, or None where its packages are missing."""
    try:
        from tvm.rpc.tracker import Tracker

        return Tracker("127.0.0.1", 9500, 9600, silent=True)
    except ImportError:
        return None


def tensor(array, device):
    """Copy an array to a device, under the name of this release or of the one before."""
    make = getattr(tvm.runtime, "tensor", None) or tvm.nd.array
    return make(array, device)


def main():
    tracker = start_tracker()
    address = ("127.0.0.1", tracker.port) if tracker else None
    server = rpc.Server("127.0.0.1", 9600, 9700, key="k", silent=True)
    # One server serves one session at a time.
    second = rpc.Server("127.0.0.1", 9400, 9500, key="k", silent=True)
    other = None
    if address:
        other = rpc.Server("127.0.0.1", 9700, 9800, key="t", tracker_addr=address, silent=True)
    session = rpc.connect("127.0.0.1", server.port, key="k")
    # Of three integers: does cpu(0) exist?
    function = session.get_function("runtime.GetDeviceAttr")
    small = np.zeros(1, "float32")
    remote_small = tensor(small, session.cpu(0))
    large = np.ones(BULK_BYTES // 4, "float32")
    remote_large = tensor(large, session.cpu(0))
    content = bytearray(large.tobytes())
    client = rpc.connect_tracker(*address) if address else None
    rows = {
        "call": lambda: per_call(lambda: function(1, 0, 0)),
        "4-byte copy there": lambda: per_call(lambda: remote_small.copyfrom(small)),
        "4-byte copy back": lambda: per_call(remote_small.numpy),
        "copy there": lambda: megabytes(lambda: remote_large.copyfrom(large)),
        "copy back": lambda: megabytes(remote_large.numpy),
        "upload": lambda: megabytes(lambda: session.upload(content, "f")),
        "download": lambda: megabytes(lambda: session.download("f")),
        "connect": lambda: milliseconds(lambda: rpc.connect("127.0.0.1", second.port, key="k")),
    }
    if client is not None:
        rows["tracker request"] = lambda: milliseconds(
            lambda: client.request("t", session_timeout=60)
        )
        rows["tracker summary"] = lambda: milliseconds(client.summary)
    print("ready", json.dumps(list(rows)), flush=True)
    for line in sys.stdin:
        print(json.dumps(rows[line.strip()]()), flush=True)
    server.terminate()
    second.terminate()
    if other is not None:
        other.terminate()
        tracker.terminate()


if __name__ == "__main__":
    main()
