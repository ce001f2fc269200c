"""Transports of one's own, the log of what goes through them, and what ends a session."""

import logging

import numpy as np
import pytest

import slipway as tvm
from slipway import micro, te
from slipway.micro.transport import (
    IoTimeoutError,
    Transport,
    TransportClosedError,
    TransportLogger,
    debug_transport_timeouts,
    start_timeout_s,
)


class Canned(Transport):
    """Answers every read with the same bytes, or raises."""

    def __init__(self, answer=b"data"):
        self.answer = answer

    def timeouts(self):
        return debug_transport_timeouts()

    def open(self):
        pass

    def close(self):
        pass

    def read(self, n, timeout_sec):
        if isinstance(self.answer, bytes):
            return self.answer
        raise self.answer

    def write(self, data, timeout_sec):
        if not isinstance(self.answer, bytes):
            raise self.answer


@pytest.fixture
def logged(caplog):
    caplog.set_level(logging.INFO, "line")

    def make(answer):
        return TransportLogger("uart", Canned(answer), logging.getLogger("line"))

    make.texts = lambda: [r.getMessage() for r in caplog.records]
    return make


def test_traffic_is_logged_as_rows_of_sixteen_bytes(logged):
    with logged(bytes(range(0x41, 0x41 + 18))) as line:
        line.read(32, 1.5)
        line.write(b"\x00ok", None)
    assert logged.texts() == [
        "uart: opening transport",
        "uart: read { 1.50s}   32 B -> [ 18 B]:\n"
        "0000  41 42 43 44 45 46 47 48 49 4a 4b 4c 4d 4e 4f 50  ABCDEFGHIJKLMNOP\n"
        "0010  51 52                                            QR",
        "uart: write { None }        <- [  3 B]: 00 6f 6b" + " " * 41 + ".ok",
        "uart: closing transport",
    ]


@pytest.mark.parametrize("error", [IoTimeoutError(), TransportClosedError()])
def test_failures_are_logged_and_passed_on(logged, error):
    line = logged(error)
    for use in (lambda: line.read(8, 0.0), lambda: line.write(b"x", 0.0)):
        with pytest.raises(type(error)):
            use()
    said = "[IoTimeoutError  0.00s]" if isinstance(error, IoTimeoutError) else (
        "[err: TransportClosedError]")  # fmt: skip
    assert [text.partition("[")[2] for text in logged.texts()] == [
        said[1:],
        f"  1 B]: {said}",
    ]


def test_an_interrupt_is_not_logged(logged):
    line = logged(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        line.read(1, None)
    assert logged.texts() == []


def test_timeouts_are_read_in_both_spellings():
    assert start_timeout_s(debug_transport_timeouts()) == 0
    assert start_timeout_s({"session_start_timeout_sec": 2}) == 2.0
    assert start_timeout_s(None) == 0


class Forwarding(Transport):
    """A transport of the user's around a project's, with classic's timeouts."""

    def __init__(self, inner):
        self.inner = inner

    def timeouts(self):
        return self.inner.timeouts()

    def open(self):
        self.inner.open()

    def close(self):
        self.inner.close()

    def read(self, n, timeout_sec):
        return self.inner.read(n, timeout_sec)

    def write(self, data, timeout_sec):
        self.inner.write(data, timeout_sec)


def test_a_transport_of_ones_own_carries_a_session_until_the_device_is_reset(tmp_path):
    a = te.placeholder((2,), "int8", name="a")
    b = te.compute((2,), lambda i: a[i] + te.const(3, "int8"), name="b")
    target = tvm.target.target.micro("host")
    runtime = tvm.relay.backend.Runtime("crt", {"system-lib": True})
    built = tvm.build(te.create_schedule(b.op), [a, b], target, runtime=runtime, name="three")
    # Where releases 0.8 to 0.10 kept the template.
    template = f"{micro.get_standalone_crt_dir()}/template/host"
    project = micro.generate_project(template, built, tmp_path / "project", {"verbose": 1})
    project.build()
    project.flash()
    limits = micro.transport.TransportTimeouts(0, 20, 30)
    with micro.Session(Forwarding(project.transport()), "mine", limits) as session:
        given = tvm.nd.array(np.array([1, -2], "int8"), session.device)
        result = tvm.nd.array(np.zeros(2, "int8"), session.device)
        session.get_system_lib()["three"](given, result)
        np.testing.assert_array_equal(result.numpy(), [4, 1])
        with pytest.raises(micro.SessionTerminatedError, match="was reset"):
            session._rpc.get_function("tvm.testing.reset_server")()
    project.close()
