"""One reading of "host:port" for commands, servers, trackers and the library."""

import pytest

from slipway.errors import RPCArgumentError
from slipway.rpc.addresses import address_of, address_text, tracker_of_environment


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("lab:9191", ("lab", 9191)),
        ("lab", ("lab", 9190)),
        ("[::1]:9191", ("::1", 9191)),
        ("[fe80::2]", ("fe80::2", 9190)),
        ("::1", ("::1", 9190)),
        ("fe80::2", ("fe80::2", 9190)),
    ],
)
def test_an_address_is_a_host_and_perhaps_a_port(text, found):
    assert address_of(text, 9190) == found


@pytest.mark.parametrize("text", ["", "lab", "::1", "lab:", "lab:0", "lab:65536", "lab:x", ":9190"])
def test_what_names_no_port_is_refused_where_there_is_no_default(text):
    with pytest.raises(RPCArgumentError, match="write host:port"):
        address_of(text)


@pytest.mark.parametrize("address", [("lab", 9190), ("::1", 9190), ("10.0.0.2", 1)])
def test_what_is_written_is_read(address):
    assert address_of(address_text(*address)) == address


def test_the_environment_says_which_tracker_where_nothing_else_does(monkeypatch):
    monkeypatch.delenv("TVM_TRACKER_PORT", raising=False)
    monkeypatch.setenv("TVM_TRACKER_HOST", "::1")
    assert tracker_of_environment() == ("::1", 9190)
    assert tracker_of_environment("lab", 9191) == ("lab", 9191)
    monkeypatch.setenv("TVM_TRACKER_PORT", "many")
    with pytest.raises(RPCArgumentError, match="'many' is no port"):
        tracker_of_environment()
