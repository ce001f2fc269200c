"""Servers under the modules where classic TVM has them."""

import importlib

import pytest

from slipway import rpc


@pytest.mark.parametrize(
    ("module", "name"), [("tracker", "Tracker"), ("proxy", "Proxy"), ("server", "Server")]
)
def test_a_server_is_in_its_module(module, name):
    place = importlib.import_module(f"slipway.rpc.{module}")
    assert getattr(place, name) is getattr(rpc, name)
    assert getattr(rpc, module) is place


def test_a_name_that_is_not_there_says_what_to_use():
    with pytest.raises(AttributeError, match=r"find_rpc_server"):
        _ = rpc.with_minrpc  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="Did you mean 'Tracker'"):
        _ = rpc.Trakcer  # type: ignore[attr-defined]
