"""Where candidates run, and what is said where there is no such place."""

import threading
import time

import pytest

from slipway import rpc
from slipway.errors import RPCConnectionError
from slipway.tuning import runner as runners
from slipway.tuning.runner import TrackerRunner


def test_a_kind_that_the_tracker_does_not_know_is_told_soon(monkeypatch):
    monkeypatch.setattr(runners, "COMING_S", 0.5)
    with (
        rpc.Tracker("127.0.0.1", 0, silent=True) as tracker,
        rpc.Server("127.0.0.1", 0, tracker_addr=("127.0.0.1", tracker.port), key="rpi4"),
    ):
        TrackerRunner("127.0.0.1", tracker.port, "rpi4").open().close()
        began = time.monotonic()
        with pytest.raises(RPCConnectionError, match=r"no device of kind 'rpi5'; it has rpi4\. Did "
                           r"you mean 'rpi4'\?.*--key rpi5"):  # fmt: skip
            TrackerRunner("127.0.0.1", tracker.port, "rpi5").open()
        assert time.monotonic() - began < 30  # a request would wait for ten minutes


def test_a_device_that_comes_a_little_later_is_waited_for():
    with rpc.Tracker("127.0.0.1", 0, silent=True) as tracker:
        found = []

        def ask():
            found.append(TrackerRunner("127.0.0.1", tracker.port, "late").open())

        thread = threading.Thread(target=ask)
        thread.start()
        time.sleep(1.0)
        address = ("127.0.0.1", tracker.port)
        with rpc.Server("127.0.0.1", 0, tracker_addr=address, key="late"):
            thread.join(60)
            assert found
            found[0].close()
