"""A network between two ends that the test holds in its hand: it can stall, resume and cut it."""

import contextlib
import socket
import struct
import threading


class Relay:
    """Passes TCP connections on to a port of this machine.

    `stall_after` bytes towards the target, or on `stall()`, nothing moves any more in either
    direction, as when a cable is pulled: the ends hear nothing of it.  `resume()` puts it back.
    """

    def __init__(self, port, stall_after=None):
        self._target = port
        self._left = stall_after
        self._moves = threading.Event()
        self._moves.set()
        self.stalled = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._links = []
        self._threads = []
        self._start(self._accept)

    def stall(self):
        self._moves.clear()
        self.stalled.set()

    def resume(self):
        self._left = None
        self._moves.set()

    def close(self):
        self._moves.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for link in self._links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(60)
        for link in self._links:
            link.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _start(self, function, *args):
        thread = threading.Thread(target=function, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            for link in (client, far):
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._links += [client, far]
            self._start(self._pass, client, far, True)
            self._start(self._pass, far, client, False)

    def _pass(self, source, drain, counts):
        try:
            while part := source.recv(65536):
                if counts and self._left is not None:
                    self._left -= len(part)
                    if self._left < 0:
                        self._left = None
                        self.stall()
                self._moves.wait()
                drain.sendall(part)
            self._moves.wait()
            drain.shutdown(socket.SHUT_WR)  # the end of one direction
        except OSError:
            self._moves.wait()
            for link in (source, drain):  # a broken connection, told as the kernel does
                with contextlib.suppress(OSError):
                    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    link.shutdown(socket.SHUT_RD)
                link.close()
