"""Where something runs: in this process, on a device by its address, or on one of a tracker's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway.cli import console
from slipway.cli.exit_codes import OptionError
from slipway.errors import ExecutionError
from slipway.rpc.addresses import address_of
from slipway.toolchain.tempdir import tempdir

if TYPE_CHECKING:
    from slipway.target import Target


def tracker_address(host: str | None, key: str, tracker: str | None) -> tuple[str, int] | None:
    """Return the address that --tracker names, None where another device is meant or none.

    Raises OptionError for options that do not go together, RPCArgumentError for no address.
    """
    if tracker is None:
        return None
    if host is not None:
        raise OptionError(
            "--tracker hands out a device, and --rpc-host names one: give one of them"
        )
    if not key:
        raise OptionError("--tracker needs --rpc-key: the kind of device to ask for")
    return address_of(tracker)


def check_device_named(
    host: str | None, key: str, tracker: str | None, timeout: float | None
) -> None:
    """Raise OptionError for options of a device where none is named: this machine would be it."""
    if host is not None or tracker is not None:
        return
    for name, is_given in (("--rpc-key", bool(key)), ("--timeout", timeout is not None)):
        if is_given:
            raise OptionError(
                f"{name} needs --tracker HOST:PORT or --rpc-host: without one, this machine is it"
            )


def check_can_run(target: Target, host: str | None, tracker: str | None) -> None:
    """Raise OptionError for a microcontroller's target where no device is named."""
    if host is None and tracker is None and target.parsed_triple.is_bare:
        raise OptionError(
            f"{target} is for a microcontroller, which this machine is not: name one with "
            "--tracker HOST:PORT and --rpc-key. `slipway farm up --kinds cortex-m4` makes emulated "
            "ones"
        )


class Connection:
    """A device to load artifacts on; without a host and tracker, this process.

    `timeout`: seconds to wait for a free device of a tracker, or for each step of connecting.
    Raises OptionError for a tracker's address that cannot be read, RPCError when the device
    cannot be reached.
    """

    def __init__(
        self,
        host: str | None = None,
        port: int = 9090,
        key: str = "",
        tracker: str | None = None,
        timeout: float | None = None,
    ) -> None:
        from slipway import rpc, runtime
        from slipway.deploy.device import request_device
        from slipway.rpc.client import CONNECT_TIMEOUT_S

        check_device_named(host, key, tracker, timeout)
        self.remote: Any = None
        self.where = "this machine"
        address = tracker_address(host, key, tracker)
        if address is not None:
            with console.step(f"Waiting for a device {key!r} of {tracker}"):
                self.remote = request_device(address, key, timeout=timeout)
            self.where = f"{key} of {tracker}"
        elif host is not None:
            limit_s = CONNECT_TIMEOUT_S if timeout is None else timeout
            self.remote = rpc.connect(host, port, key=key, timeout=limit_s)
            self.where = f"{host}:{port}"
        self.device = self.remote.cpu(0) if self.remote is not None else runtime.cpu(0)

    def use_threads(self, count: int) -> None:
        """Let kernels there run on `count` threads; the setting ends with this process or session.

        Raises ExecutionError for a device whose server has no such function.
        """
        from slipway.runtime.threads import config_threadpool

        if self.remote is None:
            config_threadpool(0, count)
            return
        try:
            configure = self.remote.get_function("runtime.config_threadpool")
        except AttributeError:
            raise ExecutionError(
                f"--threads: the server of {self.where} is too old to be told how many threads to "
                "use; start it anew, or with SLIPWAY_NUM_THREADS set"
            ) from None
        configure(0, count)

    def load(self, artifact: Path) -> Any:
        """Return the module of an exported file, loaded where it is to run."""
        from slipway import runtime

        if self.remote is None:
            return runtime.load_module(str(artifact))
        artifact.stat()
        with console.step(f"Uploading {artifact.name} to {self.where}"):
            self.remote.upload(str(artifact))
            return self.remote.load_module(artifact.name)

    def load_built(self, library: Any, name: str = "probe.tar") -> Any:
        """Return compiled functions, exported and loaded where they are to run."""
        with tempdir() as folder:
            path = folder.path / name
            library.export_library(str(path))
            return self.load(path)

    def graph_module(self, artifact: Path) -> Any:
        """Return the graph executor of a model, on the kinds of device that it is for."""
        from slipway.contrib import graph_executor
        from slipway.runtime.artifact import metadata_of
        from slipway.runtime.model_devices import ModelDevices

        devices = ModelDevices(metadata_of(artifact), self.remote)
        self.device = devices.main
        loaded = self.load(artifact)
        return graph_executor.GraphModule(loaded["default"](*devices.each))
