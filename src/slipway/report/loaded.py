"""Where a model runs for its report: this machine, or a device with which a session is open."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from slipway.deploy.device import executor_there
from slipway.errors import ArtifactError
from slipway.rpc.client import RPCSession
from slipway.runtime.artifact import metadata_of, read_artifact
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.runtime.load import load_module
from slipway.runtime.model_devices import ModelDevices
from slipway.runtime.threads import num_threads
from slipway.toolchain.tempdir import tempdir

PROBE_NAME = "slipway-report-probe.tar"


class LoadedArtifact:
    """An artifact of a model, loaded where it is to run."""

    def __init__(self, artifact: Path, session: RPCSession | None, name: str) -> None:
        self.artifact = artifact
        self.session = session
        self.name = name
        self.devices = ModelDevices(metadata_of(artifact), session)
        self.threads = num_threads()

    @cached_property
    def library(self) -> Any:
        """The loaded module, whose functions can be called one by one."""
        if self.session is None:
            return load_module(str(self.artifact))
        self.session.upload(str(self.artifact), self.artifact.name)
        return self.session.load_module(self.artifact.name)

    @cached_property
    def executor(self) -> GraphModule:
        """The graph executor."""
        if self.session is not None:
            return executor_there(self.session, self.artifact, self.artifact.stem, self.devices)
        return GraphModule(self.library["default"](*self.devices.each))

    def load_built(self, library: Any) -> Any:
        """Return compiled functions, loaded here."""
        with tempdir() as folder:
            path = folder.path / PROBE_NAME
            library.export_library(str(path))
            if self.session is None:
                return load_module(str(path))
            self.session.upload(str(path), PROBE_NAME)
            return self.session.load_module(PROBE_NAME)


def why_not_here(artifact: Path) -> str:
    """Return why this machine cannot run an exported file; "" when it can."""
    try:
        contents = read_artifact(artifact.read_bytes(), artifact.name)
    except ArtifactError as error:
        return str(error)
    return _why_without(ModelDevices(contents.metadata), "this machine")


def why_not_there(artifact: Path, session: RPCSession) -> str:
    """Return which kind of device that a file is for a session's machine lacks; "" for none."""
    return _why_without(ModelDevices(metadata_of(artifact), session), "the device's machine")


def _why_without(devices: ModelDevices, machine: str) -> str:
    missing = devices.missing
    return f"its kernels are for {missing}, and {machine} has no such device" if missing else ""
