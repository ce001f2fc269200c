"""TLS in front of servers, trackers and proxies; who may administrate a tracker."""

import os
import platform
import socket
import subprocess
import time

import numpy as np
import pytest
import trustme
from tests.rpc.faults.waiting import wait_for

from slipway import nd, rpc
from slipway.errors import FileError, RPCConnectionError, RPCError
from slipway.exec import rpc_proxy
from slipway.toolchain import native


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Paths of a certificate with its key, of its authority, and of a stranger's."""
    folder = tmp_path_factory.mktemp("certificates")
    authority, stranger = trustme.CA(), trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "cert")
    authority.cert_pem.write_to_path(folder / "ca")
    stranger.cert_pem.write_to_path(folder / "stranger")
    return {name: str(folder / name) for name in ("cert", "ca", "stranger")}


@pytest.fixture(scope="module")
def server(files):
    options = rpc.ServerOptions(tls_cert=files["cert"], is_quiet=True)
    with rpc.Server("127.0.0.1", 0, options=options) as running:
        yield running


def test_session_over_tls(server, files):
    values = np.random.default_rng(0).random(3 << 20, "float32")
    with rpc.connect("127.0.0.1", server.port, tls=files["ca"]) as session:
        assert session.ping(b"here") == b"here"
        tensor = nd.array(values, session.cpu(0))
        np.testing.assert_array_equal(tensor.numpy(), values)
        session.upload(values.tobytes(), "f")
        assert session.download("f") == values.tobytes()


def test_certificate_is_checked(server, files):
    with pytest.raises(RPCConnectionError, match=r"not trusted: .*issuer"):
        rpc.connect("127.0.0.1", server.port, tls=files["stranger"])
    with pytest.raises(RPCConnectionError, match=r"not trusted: .*IP address mismatch"):
        rpc.connect("127.0.0.1", server.port, tls=files["ca"], tls_name="10.0.0.1")
    with pytest.raises(RPCError):
        rpc.connect("127.0.0.1", server.port, tls=False)


def test_a_crash_is_told_over_tls(server, files, kernels):
    with rpc.connect("127.0.0.1", server.port, tls=files["ca"]) as session:
        session.upload(kernels)
        with pytest.raises(RPCError, match="SIGSEGV"):
            session.load_module("kernels.so")["segfault"]()


def test_files_that_are_no_certificates(tmp_path, files):
    nothing = tmp_path / "nothing"
    nothing.write_text("")
    with pytest.raises(FileError, match="cannot use the TLS certificate"):
        rpc.Server("127.0.0.1", 0, options=rpc.ServerOptions(tls_cert=str(nothing)))
    with pytest.raises(FileError, match="cannot read the certificates in"):
        rpc.connect("127.0.0.1", 1, tls=str(nothing))


def test_tracker_proxy_and_device_over_tls(files):
    """A device behind a proxy that registers it with a tracker: every connection encrypted."""
    tls = {"tls_cert": files["cert"], "silent": True}
    device = rpc.ServerOptions(
        key="far", tls_ca=files["ca"], tls_name="127.0.0.1", token="t", is_quiet=True
    )
    with (
        rpc.Tracker("127.0.0.1", 0, token="t", admin_token="a", **tls) as tracker,
        rpc.Proxy(
            "127.0.0.1",
            0,
            tracker_addr=("127.0.0.1", tracker.port),
            token="t",
            tls_ca=files["ca"],
            **tls,
        ) as proxy,
        rpc.Server("127.0.0.1", proxy.port, is_proxy=True, key="far", options=device),
        rpc.connect_tracker("127.0.0.1", tracker.port, token="t", tls=files["ca"]) as client,
    ):
        wait_for(lambda: client.summary()["queue_info"].get("far", {}).get("free") == 1)
        with client.request("far") as session:
            assert session.ping(b"x") == b"x"


def test_static_server_behind_a_proxy_with_tls(files, tmp_path):
    """A device that has no TLS itself: its clients have it, as far as the proxy."""
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        plain = reserved.getsockname()[1]
    server = native.build_device_server(f"{platform.machine()}-linux-gnu")
    dial = ["--through-proxy", "--host", "127.0.0.1", "--port", str(plain), "--key", "static"]
    with (
        rpc.Proxy(
            "127.0.0.1", 0, tls_cert=files["cert"], plain_devices=("127.0.0.1", plain), silent=True
        ) as proxy,
        subprocess.Popen(
            [server, *dial], env={**os.environ, "TMPDIR": str(tmp_path)}, stderr=subprocess.DEVNULL
        ) as device,
    ):
        with rpc.connect_tracker("127.0.0.1", proxy.port, tls=files["ca"]) as client:
            wait_for(lambda: client.summary()["queue_info"].get("static", {}).get("free") == 1)
        with rpc.connect("127.0.0.1", proxy.port, key="static", tls=files["ca"]) as session:
            assert session.description.startswith("slipway-server")
            session.upload(bytes(1 << 20), "f")
            assert session.download("f") == bytes(1 << 20)
        for connect in (rpc.connect, rpc.connect_tracker):
            with pytest.raises(RPCError, match="for devices; clients connect to its other one"):
                connect("127.0.0.1", plain)
        with pytest.raises(RPCError):  # and nobody gets around TLS at the other port
            rpc.connect("127.0.0.1", proxy.port, key="static", tls=False)
        device.terminate()


def test_a_plain_port_needs_one_with_tls(capsys):
    assert rpc_proxy.main(["--plain-devices", "127.0.0.1:0"]) == 2
    assert "beside the one with --tls-cert" in capsys.readouterr().err


def only(client):
    (device,) = client.summary()["farm"]["devices"]
    return device


def test_administrator_kicks_and_drains():
    with (
        rpc.Tracker("127.0.0.1", 0, admin_token="secret", silent=True) as tracker,
        rpc.Server(
            "127.0.0.1", 0, key="board", tracker_addr=("127.0.0.1", tracker.port), silent=True
        ),
        rpc.connect_tracker("127.0.0.1", tracker.port) as client,
    ):
        wait_for(lambda: client.summary()["queue_info"].get("board", {}).get("free") == 1)
        with pytest.raises(RPCError, match="token is not the administrator's of this tracker"):
            rpc.connect_tracker("127.0.0.1", tracker.port, admin_token="guess")
        with pytest.raises(RPCError, match="only an administrator may do that"):
            client.drain(1)
        with rpc.connect_tracker("127.0.0.1", tracker.port, admin_token="secret") as admin:
            session = client.request("board")
            entry = only(client)
            admin.drain(entry["id"])
            admin.kick(entry["id"], entry["session"])
            with pytest.raises(RPCError, match="administrator of the tracker ended the session"):
                while True:
                    session.ping(b"x")
            wait_for(lambda: only(client)["state"] == "drained")
            with pytest.raises(RPCError, match="has no session"):
                admin.kick(entry["id"], entry["session"])
            with pytest.raises(RPCError, match="there is no device 77"):
                admin.drain(77)
            admin.drain(entry["id"], on=False)
        with client.request("board") as again:
            assert again.ping(b"x") == b"x"


def test_a_tracker_without_administrator():
    with (
        rpc.Tracker("127.0.0.1", 0, silent=True) as tracker,
        pytest.raises(RPCError, match="this tracker has no administrator"),
    ):
        rpc.connect_tracker("127.0.0.1", tracker.port, admin_token="x")
    assert "SLIPWAY_RPC_TLS_CA" not in os.environ


@pytest.mark.parametrize("begin", [b"", b"\x16\x03\x01\x02\x00\x01"], ids=["silent", "half"])
def test_half_open_handshakes_keep_nobody_out(files, begin):
    """Of a server, a tracker and a proxy: those who encrypt are guests before they greet."""
    options = rpc.ServerOptions(tls_cert=files["cert"], is_quiet=True)
    with (
        rpc.Server("127.0.0.1", 0, options=options) as server,
        rpc.Tracker("127.0.0.1", 0, tls_cert=files["cert"], silent=True) as tracker,
    ):
        strangers = []
        for port in (server.port, tracker.port):
            for _ in range(200):
                strangers.append(socket.create_connection(("127.0.0.1", port), timeout=10))
                strangers[-1].sendall(begin)
        start = time.monotonic()
        with rpc.connect("127.0.0.1", server.port, tls=files["ca"]) as session:
            assert session.ping(b"x") == b"x"
        with rpc.connect_tracker("127.0.0.1", tracker.port, tls=files["ca"]) as client:
            client.summary()
        assert time.monotonic() - start < 10
        for stranger in strangers:
            stranger.close()
