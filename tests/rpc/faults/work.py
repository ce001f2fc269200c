"""Something that a client is in the middle of, for the tests of what breaks then."""

import contextlib
import threading
from pathlib import Path

import numpy as np
from tests.rpc.faults.waiting import wait_for

BULK = 24 << 20
MOMENTS = ("upload", "call", "copy")


class Work:
    """An upload, a call or a copy that a thread does, stopped in its middle."""

    def __init__(self, lab, moment, timeout=None, session_timeout=0, call_s=600.0):
        self.session, self.relay = lab.connect(1 << 20, session_timeout)
        self.moment = moment
        self._call_s = call_s
        self.pid = self.session.get_function("test.rpc.pid")()
        self.error = None
        self._go = threading.Event()
        if timeout is not None:
            self.session.timeout = timeout
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        if moment == "call":
            wait_for(lambda: self._calling(), 60)
        else:
            assert self.relay.stalled.wait(60)

    def _calling(self):
        return "futex" in self._wchan() or "nanosleep" in self._wchan() or "poll" in self._wchan()

    def _wchan(self):
        with contextlib.suppress(OSError):
            return Path(f"/proc/{self.pid}/wchan").read_text() or "poll"
        return ""

    def _run(self):
        try:
            if self.moment == "upload":
                self.session.upload(bytes(BULK), "big")
            elif self.moment == "copy":
                self.session.cpu(0).empty((BULK,), "uint8").copyfrom(np.zeros(BULK, "uint8"))
            else:
                self.session.get_function("test.rpc.sleep")(self._call_s)
        except Exception as error:
            self.error = error

    def finish(self, resume=True):
        """Let the network move, wait for the work's end, return its error."""
        if resume:
            self.relay.resume()
        self._thread.join(120)
        assert not self._thread.is_alive(), "the client still waits"
        self.session.close()
        self.relay.close()
        return self.error
