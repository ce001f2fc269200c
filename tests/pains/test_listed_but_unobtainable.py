"""Pain 6: a device is listed but cannot be obtained: NAT, firewall, a wrong address."""

import socket
import time

import pytest
from typer.testing import CliRunner

from slipway import rpc
from slipway.cli.app import app
from slipway.errors import RPCConnectionError, RPCError


@pytest.fixture
def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def tracker():
    with rpc.Tracker("127.0.0.1", 0, silent=True) as running:
        yield running


def listed(tracker, key):
    with rpc.connect_tracker("127.0.0.1", tracker.port) as client:
        deadline = time.monotonic() + 60
        while not client.summary()["queue_info"].get(key, {}).get("free"):
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_doctor_says_which_hop_fails(tracker):
    """The device registers over its own connection, and gives out an address that is not its."""
    at = ("127.0.0.1", tracker.port)
    with rpc.Server(
        "127.0.0.1", 0, key="camera", tracker_addr=at, custom_addr="192.0.2.7", silent=True
    ):
        listed(tracker, "camera")
        done = CliRunner().invoke(
            app, ["doctor", "camera", "--tracker", f"127.0.0.1:{tracker.port}"]
        )
    assert done.exit_code == 1
    assert "192.0.2.7" in done.output  # the address that was tried
    assert "✓ tracker" in done.output  # and what is in order
    assert "✓ devices" in done.output
    assert "--custom-addr" in done.output or "proxy" in done.output


def test_a_client_hears_the_address_and_does_not_wait_for_ever(tracker):
    at = ("127.0.0.1", tracker.port)
    with (
        rpc.Server(
            "127.0.0.1", 0, key="camera", tracker_addr=at, custom_addr="192.0.2.7", silent=True
        ),
        rpc.connect_tracker(*at) as client,
    ):
        listed(tracker, "camera")
        start = time.monotonic()
        with pytest.raises(RPCError) as told:
            client.request("camera", timeout=2, max_retry=1)
        assert time.monotonic() - start < 40
    assert "192.0.2.7" in str(told.value)


def test_why_a_device_was_not_reached_outlives_the_wait_for_another(tracker):
    """The tracker keeps such a device for a while, and it was said to be in use by somebody."""
    at = ("127.0.0.1", tracker.port)
    with (
        rpc.Server(
            "127.0.0.1", 0, key="camera", tracker_addr=at, custom_addr="127.0.0.9", silent=True
        ),
        rpc.connect_tracker(*at) as client,
    ):
        listed(tracker, "camera")
        with pytest.raises(RPCConnectionError, match=r"could not be reached: .*127\.0\.0\.9"):
            client.request("camera", timeout=1)


def test_a_device_that_only_calls_out_is_reached_through_a_proxy():
    with (
        rpc.Proxy("127.0.0.1", 0) as proxy,
        rpc.Server("127.0.0.1", proxy.port, key="inner", is_proxy=True, silent=True),
    ):
        deadline = time.monotonic() + 60
        while True:
            try:
                session = rpc.connect("127.0.0.1", proxy.port, key="inner")
                break
            except RPCError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        with session:
            assert session.ping(b"from outside") == b"from outside"
