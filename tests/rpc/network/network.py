"""Two machines in one: network namespaces, joined by a wire that delays and loses packets.

The wire is a TUN device in each namespace and a process that carries IP packets between them: the
kernels' TCP sees real loss and real round trips, on kernels without ``tc netem`` too.
"""

import contextlib
import fcntl
import heapq
import os
import random
import re
import select
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

NEAR, FAR = "10.213.7.1", "10.213.7.2"
_TUNSETIFF, _TUN_NO_INFO = 0x400454CA, 0x1001


def _run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Network:
    """Namespaces `near` and `far`; `delay_s` is one way's, `loss` the part of packets dropped."""

    def __init__(self, delay_s=0.020, loss=0.01):
        self.delay_s, self.loss, self.is_cut = delay_s, loss, False
        self.names = {end: f"slipway-{os.getpid()}-{end}" for end in ("near", "far")}
        self.carried = self.dropped = 0
        self._stop_read, self._stop_write = os.pipe()
        self._taps = []
        self._sweep()
        try:
            for end, address, peer in (("near", NEAR, FAR), ("far", FAR, NEAR)):
                _run("ip", "netns", "add", self.names[end])
                self._taps.append(self._tap(self.names[end]))
                inside = ("ip", "-n", self.names[end])
                _run(*inside, "link", "set", "lo", "up")
                _run(*inside, "address", "add", address, "peer", peer, "dev", "wire")
                _run(*inside, "link", "set", "wire", "up", "mtu", "1500", "txqueuelen", "1000")
        except (OSError, subprocess.CalledProcessError) as error:
            self._remove()
            detail = getattr(error, "stderr", "") or error
            pytest.skip(f"no network namespaces with TUN here (root, iproute2): {detail}")
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def inside(self, end, *command):
        """Return the command line that runs `command` in a namespace."""
        return ["ip", "netns", "exec", self.names[end], *command]

    def close(self):
        os.write(self._stop_write, b"x")
        self._thread.join(60)
        self._remove()

    def _remove(self):
        for tap in self._taps:
            os.close(tap)
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        os.close(self._stop_read)
        os.close(self._stop_write)

    @staticmethod
    def _sweep():
        """Remove what tests that were killed left behind."""
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            for name in _run("ip", "netns", "list").split():
                left = re.fullmatch(r"slipway-(\d+)-(near|far)", name)
                if left and not Path(f"/proc/{left.group(1)}").exists():
                    subprocess.run(["ip", "netns", "del", name], check=False)

    @staticmethod
    def _tap(name):
        """Open a TUN device inside a namespace: a child enters it and passes the descriptor on."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        code = (
            "import fcntl, os, socket, struct, sys\n"
            "tap = os.open('/dev/net/tun', os.O_RDWR)\n"
            f"fcntl.ioctl(tap, {_TUNSETIFF}, struct.pack('16sH22x', b'wire', {_TUN_NO_INFO}))\n"
            "link = socket.socket(fileno=int(sys.argv[1]))\n"
            "socket.send_fds(link, [b'x'], [tap])\n"
        )
        with ours, theirs:
            subprocess.run(
                ["ip", "netns", "exec", name, sys.executable, "-c", code, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),), capture_output=True, text=True, check=True,
            )  # fmt: skip
            _, (tap,), _, _ = socket.recv_fds(ours, 1, 1)
        fcntl.fcntl(tap, fcntl.F_SETFL, os.O_NONBLOCK)
        return tap

    def _carry(self):
        chooser = random.Random(1)
        waiting, number = [], 0
        while True:
            now = time.monotonic()
            while waiting and waiting[0][0] <= now:
                _, _, tap, packet = heapq.heappop(waiting)
                with contextlib.suppress(OSError):
                    os.write(tap, packet)
            pause = max(0.0, waiting[0][0] - now) if waiting else None
            ready, _, _ = select.select([*self._taps, self._stop_read], [], [], pause)
            if self._stop_read in ready:
                return
            for tap in ready:
                other = self._taps[1 - self._taps.index(tap)]
                with contextlib.suppress(BlockingIOError):
                    while packet := os.read(tap, 65536):
                        if self.is_cut or chooser.random() < self.loss:
                            self.dropped += 1
                            continue
                        number += 1
                        self.carried += 1
                        due = time.monotonic() + self.delay_s
                        heapq.heappush(waiting, (due, number, other, packet))
