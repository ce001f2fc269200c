"""A tracker or a proxy in a process of its own: ``tracker = rpc.Tracker("127.0.0.1", 9190)``."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import Self

from slipway.rpc.addresses import address_text
from slipway.rpc.child import child_environment
from slipway.rpc.server import listen


class _Program:
    """``python -m slipway.exec.NAME``, ended by `terminate` or with this process."""

    _module: str

    def __init__(
        self, host: str, port: int, port_end: int, arguments: list[str], secrets: dict[str, str]
    ) -> None:
        self.host = host
        self._process: subprocess.Popen[bytes] | None = None
        watch_read, self._watch_write = os.pipe()
        with listen(host, port, port_end) as listener:
            self.port: int = listener.getsockname()[1]
            command = [sys.executable, "-m", self._module, *arguments]
            command += ["--listen-fd", str(listener.fileno()), "--watch-fd", str(watch_read)]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                pass_fds=(listener.fileno(), watch_read),
                env=child_environment(**secrets),
                start_new_session=True,
            )
        os.close(watch_read)

    def terminate(self) -> None:
        """End the program; its devices try to reach it again until they end."""
        if self._process is None:
            return
        process, self._process = self._process, None
        os.close(self._watch_write)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.terminate()

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None:
            with contextlib.suppress(Exception):
                self.terminate()


class Tracker(_Program):
    """A tracker, ended by `terminate` or with this process; `port` is where it listens.

    Parameters are classic TVM's; `token` is what peers from other machines must have, by default
    the environment's SLIPWAY_RPC_TOKEN, `admin_token` the administrator's, by default its
    SLIPWAY_RPC_ADMIN_TOKEN, `tls_cert` and `tls_key` files for TLS.
    """

    _module = "slipway.exec.rpc_tracker"

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9190,
        port_end: int = 9290,
        silent: bool = False,
        reuse_addr: bool = True,
        timeout: float | None = None,
        *,
        token: str | None = None,
        admin_token: str | None = None,
        tls_cert: str = "",
        tls_key: str = "",
    ) -> None:
        del reuse_addr, timeout
        arguments = _tls_arguments(silent, tls_cert, tls_key)
        super().__init__(host, port, port_end, arguments, _secrets(token, admin_token))


class Proxy(_Program):
    """A proxy, ended by `terminate` or with this process; `port` is where it listens.

    `tracker_addr` is the tracker to register its devices with, `custom_addr` what that tells
    clients to connect to; without one the proxy hands the devices out itself.  `plain_devices` is
    where devices without TLS connect, when clients come with it.  At `web_port` of `web_host` there
    is a page that makes the browser that opens it a device; 0: none.
    """

    _module = "slipway.exec.rpc_proxy"

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9091,
        port_end: int = 9199,
        tracker_addr: tuple[str, int] | None = None,
        custom_addr: str = "",
        silent: bool = False,
        *,
        token: str | None = None,
        tls_cert: str = "",
        tls_key: str = "",
        tls_ca: str = "",
        plain_devices: tuple[str, int] | None = None,
        web_port: int = 0,
        web_host: str = "127.0.0.1",
    ) -> None:
        arguments = _tls_arguments(silent, tls_cert, tls_key)
        if plain_devices is not None:
            arguments += ["--plain-devices", address_text(*plain_devices)]
        if tracker_addr is not None:
            arguments += ["--tracker", address_text(*tracker_addr)]
        if custom_addr:
            arguments += ["--custom-addr", custom_addr]
        if tls_ca:
            arguments += ["--tls-ca", tls_ca]
        if web_port:
            arguments += ["--web-port", str(web_port), "--web-host", web_host]
        super().__init__(host, port, port_end, arguments, _secrets(token, None))


def _tls_arguments(silent: bool, cert: str, key: str) -> list[str]:
    arguments = ["--silent"] if silent else []
    for name, value in (("--tls-cert", cert), ("--tls-key", key)):
        if value:
            arguments += [name, value]
    return arguments


def _secrets(token: str | None, admin_token: str | None) -> dict[str, str]:
    secrets = {"SLIPWAY_RPC_TOKEN": token, "SLIPWAY_RPC_ADMIN_TOKEN": admin_token}
    return {name: value for name, value in secrets.items() if value is not None}
