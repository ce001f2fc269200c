"""Addresses of devices and trackers as users write them: "host:port", "[::1]:port", "host"."""

from __future__ import annotations

import os
import re

from slipway.errors import RPCArgumentError

DEVICE_PORT = 9090
TRACKER_PORT = 9190
_IPV6 = re.compile(r"[0-9A-Fa-f.]*:[0-9A-Fa-f.:]*:[0-9A-Fa-f.:]*")


def address_of(text: str, default_port: int | None = None) -> tuple[str, int]:
    """Return (host, port).  Raises RPCArgumentError; for a missing port too, without a default."""
    if not isinstance(text, str) or not text.strip():
        shown = repr(text) if isinstance(text, str) else type(text).__name__
        raise RPCArgumentError(
            f"{shown} is no address; write host:port, raspberrypi.local:9090 say"
        )
    if text.startswith("["):
        host, _, tail = text[1:].partition("]")
        port = tail.removeprefix(":")
    elif _IPV6.fullmatch(text):
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise RPCArgumentError(f"{text!r}: {port!r} is no port; write host:port, host:9090 say")
    if not host:
        raise RPCArgumentError(f"{text!r} has no host; write host:port, localhost{text} say")
    if not port and default_port is None:
        raise RPCArgumentError(f"{text!r} has no port; write host:port, {text}:9190 say")
    return host, int(port or default_port or 0)


def address_text(host: str, port: int) -> str:
    """Return an address as `address_of` reads it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def tracker_of_environment(host: str | None = None, port: int | None = None) -> tuple[str, int]:
    """Return the tracker's address; TVM_TRACKER_HOST and TVM_TRACKER_PORT say what is left out."""
    host = host or os.environ.get("TVM_TRACKER_HOST", "127.0.0.1")
    return address_of(f"[{host}]:{port or os.environ.get('TVM_TRACKER_PORT', TRACKER_PORT)}")
