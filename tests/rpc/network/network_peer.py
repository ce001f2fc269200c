"""What runs at the ends of the network of test_network.py.

``network_peer.py server HOST [CERTIFICATE] | forward HOST PORT``
"""

import importlib.util
import socket
import sys
import threading
from pathlib import Path

from slipway import rpc
from slipway.rpc.server import listen, serve


def run_server(host, certificate=""):
    """Serve the test functions on a port of `host`, which is printed."""
    path = Path(__file__).parents[1] / "functions.py"
    spec = importlib.util.spec_from_file_location("slipway_test_rpc_functions", path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    listener = listen(host, 0, 1)
    print(listener.getsockname()[1], flush=True)
    serve(listener, rpc.ServerOptions(token="over the wire", tls_cert=certificate, is_quiet=True))


def run_forward(host, port):
    """Lead connections to a port of this machine, which is printed, on to another machine."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)

    def carry(source, drain):
        try:
            while part := source.recv(65536):
                drain.sendall(part)
            drain.shutdown(socket.SHUT_WR)
        except OSError:
            for link in (source, drain):
                link.close()

    while True:
        client, _ = listener.accept()
        far = socket.create_connection((host, port))
        for link in (client, far):
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=carry, args=(client, far), daemon=True).start()
        threading.Thread(target=carry, args=(far, client), daemon=True).start()


if __name__ == "__main__":
    if sys.argv[1] == "server":
        run_server(*sys.argv[2:])
    else:
        run_forward(sys.argv[2], int(sys.argv[3]))
