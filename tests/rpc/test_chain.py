"""Sessions that reach a device through another one: ``session_constructor_args``."""

import platform

import numpy as np
import pytest

from slipway import nd, rpc
from slipway.errors import RemoteError, RPCConnectionError, RPCError
from slipway.toolchain import native


@pytest.fixture(scope="module")
def second():
    with rpc.Server("127.0.0.1", 0, key="second", silent=True) as running:
        yield running


def through(server, *step, **options):
    return rpc.connect("127.0.0.1", server.port, session_constructor_args=step, **options)


def check(session):
    values = np.arange(1 << 18, dtype="float32")
    tensor = nd.array(values, session.cpu(0))
    np.testing.assert_array_equal(tensor.numpy(), values)
    session.upload(b"content", "f")
    assert session.download("f") == b"content"


def test_second_server_serves(server, second):
    with through(server, "rpc.Connect", "127.0.0.1", second.port, "second", False) as session:
        assert session.key == "second"
        assert f"(through 127.0.0.1:{server.port})" in repr(session)
        with pytest.raises(AttributeError, match="no global function"):
            session.get_function("test.rpc.addone")  # that is the first one's
        check(session)


def test_three_servers_and_their_ends(server, second):
    """Each step's arguments stand behind those of the one before."""
    step = ("rpc.Connect", "127.0.0.1", server.port, "", False)
    last = ("rpc.Connect", "127.0.0.1", second.port, "second", False)
    session = through(server, *step, *last)
    check(session)
    session.close()
    with through(server, *step) as again:  # the servers on the way are free again
        assert again.get_function("test.rpc.addone")(1) == 2


def test_static_server_on_the_way_and_as_a_program(server, second):
    path = native.build_device_server(f"{platform.machine()}-linux-gnu")
    with through(server, "rpc.PopenSession", path.read_bytes()) as session:
        assert session.description.startswith("slipway-server")
        check(session)
    steps = ("rpc.PopenSession", path)
    with through(second, *steps) as session:
        check(session)


def test_what_cannot_be_reached_is_said(server, second):
    with pytest.raises(RPCError, match=r"'rpc.NoSuchThing', and there is no such step"):
        through(server, "rpc.NoSuchThing")
    with pytest.raises(RPCError, match=r"these go on with \['127.0.0.1'\]"):
        through(server, "rpc.Connect", "127.0.0.1")
    with pytest.raises(RPCError, match="which is no text"):
        through(server, "rpc.Connect", "127.0.0.1", second.port, 3)
    with pytest.raises(RPCError, match="'second'"):
        through(server, "rpc.Connect", "127.0.0.1", second.port, "third")
    with pytest.raises(RemoteError, match=r"cannot connect to 127.0.0.1:1: "):
        through(server, "rpc.Connect", "127.0.0.1", 1)
    with pytest.raises(RemoteError, match=r"cannot find 'no.such.host.invalid'"):
        through(server, "rpc.Connect", "no.such.host.invalid", 9090)
    with pytest.raises(RPCConnectionError, match="the program"):
        through(server, "rpc.PopenSession", b"no program")


def test_through_a_device_of_a_tracker(second):
    with rpc.Tracker("127.0.0.1", 0, silent=True) as tracker:
        address = ("127.0.0.1", tracker.port)
        with rpc.Server("127.0.0.1", 0, key="first", tracker_addr=address, silent=True):
            session = rpc.connect_tracker(*address).request(
                "first",
                session_constructor_args=["rpc.Connect", "127.0.0.1", second.port, "second", False],
            )
            with session:
                check(session)


def test_output_of_the_last_one(server):
    printed = []
    step = ("rpc.Connect", "127.0.0.1", server.port)
    with through(server, *step, output=lambda stream, text: printed.append(text)) as session:
        session.get_function("test.rpc.print")("hello", "")
        session.ping()
    assert "hello" in "".join(printed)
