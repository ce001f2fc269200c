"""TLS for connections with Python at both ends: contexts, and the relays that C needs.

The C client and the C server work on plain descriptors.  Where a connection is encrypted, Python's
``ssl`` stands in front of them and passes the plain bytes on through a pair of local sockets.  That
costs two more copies and two more context switches for each message (docs/rpc-protocol.md has
figures); without TLS nothing of it runs.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slipway.errors import ArgumentTypeError, FileError, RPCConnectionError

CA_VARIABLE = "SLIPWAY_RPC_TLS_CA"
SYSTEM = "system"
_PIECE_BYTES = 1 << 18

TLSOption = ssl.SSLContext | str | os.PathLike[str] | bool | None


def server_context(cert: str | Path, key: str | Path | None = None) -> ssl.SSLContext:
    """Return the context of a server with a certificate (PEM, with its chain) and its key.

    FileError says what is wrong with the files.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        raise FileError(
            f"cannot use the TLS certificate {str(cert)!r} with the key {str(key or cert)!r}: "
            f"{error}. Both are PEM files; the key must be the certificate's, without a password."
        ) from error
    return context


def client_context(tls: TLSOption) -> ssl.SSLContext | None:
    """Return the context of a client; None for plain TCP.

    `tls`: a context of one's own; the path of a file with the certificates that are trusted (a
    self-signed one is its own); True for those that the system trusts; False for no TLS; None
    for what the environment's SLIPWAY_RPC_TLS_CA says: a path, or "system".
    The server's certificate and its name are always checked.
    """
    if tls is None:
        tls = os.environ.get(CA_VARIABLE) or False
    if isinstance(tls, ssl.SSLContext):
        return tls
    if tls is False:
        return None
    if tls is True or (isinstance(tls, str) and tls == SYSTEM):
        return ssl.create_default_context()
    if not isinstance(tls, str | os.PathLike):
        raise ArgumentTypeError(
            f"tls={tls!r:.80}: write the path of a PEM file, True for the authorities that the "
            "system trusts, or False for a connection without TLS"
        )
    try:
        return ssl.create_default_context(cafile=os.fspath(tls))
    except (OSError, ssl.SSLError) as error:
        raise FileError(
            f"cannot read the certificates in {os.fspath(tls)!r}: {error}. It is a PEM file with "
            "the certificate of the authority that signed the server's, or the server's own."
        ) from error


def wrap(link: socket.socket, context: ssl.SSLContext, host: str, peer: str) -> ssl.SSLSocket:
    """Encrypt a fresh connection to `host`; RPCConnectionError says why it cannot be trusted."""
    try:
        return context.wrap_socket(link, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        raise RPCConnectionError(
            f"{peer} is not trusted: {error.verify_message}. Its certificate must name "
            f"{host!r} and be signed by an authority that this end trusts (tls=, --tls-ca, "
            f"{CA_VARIABLE})."
        ) from error
    except (OSError, ssl.SSLError) as error:
        raise RPCConnectionError(
            f"{peer} does not speak TLS ({error}). Was its server started with --tls-cert?"
        ) from error


def plain_end(encrypted: ssl.SSLSocket) -> socket.socket:
    """Return a local socket whose bytes travel through `encrypted`, for the C client.

    One thread turns; it ends with either side.
    """
    ours, theirs = socket.socketpair()
    encrypted.settimeout(None)
    threading.Thread(
        target=_relay, args=(encrypted, theirs), name="slipway-rpc-tls", daemon=True
    ).start()
    return ours


def _relay(encrypted: ssl.SSLSocket, plain: socket.socket) -> None:
    """Pass bytes both ways in one thread, because an SSL object is not made for two."""
    encrypted.setblocking(False)
    plain.setblocking(False)
    inward, outward = memoryview(b""), memoryview(b"")  # on their way to plain, to encrypted
    poller = select.poll()
    try:
        while True:
            moved = False
            if not inward and (content := _attempt(encrypted.recv, _PIECE_BYTES)) is not None:
                inward, moved = memoryview(content), True
                if not content:
                    return
            if inward and (count := _attempt(plain.send, inward)) is not None:
                inward, moved = inward[count:], True
            if not outward and (content := _attempt(plain.recv, _PIECE_BYTES)) is not None:
                outward, moved = memoryview(content), True
                if not content:
                    return
            if outward and (count := _attempt(encrypted.send, outward)) is not None:
                outward, moved = outward[count:], True
            if not moved:
                poller.register(encrypted, _events(bool(inward), bool(outward)))
                poller.register(plain, _events(bool(outward), bool(inward)))
                poller.poll()
    except OSError:
        pass  # one of them broke: so does the other
    finally:
        encrypted.close()
        plain.close()


def _events(is_full: bool, has_more: bool) -> int:
    return (0 if is_full else select.POLLIN) | (select.POLLOUT if has_more else 0)


def _attempt(operation: Callable[[Any], Any], argument: Any) -> Any:
    """Run a read or a write; None where it would have to wait."""
    try:
        return operation(argument)
    except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return None
    except ssl.SSLEOFError:
        return b""
