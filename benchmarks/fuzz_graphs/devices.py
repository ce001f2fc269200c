"""Graphs on emulated processors: QEMU runs the static device server, RPC brings the code there."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_sessions: dict[tuple[int, str], tuple] = {}  # of this process: a forked child has none yet


def run(factory, inputs: dict[str, np.ndarray], target: str, threads) -> Iterator[tuple]:
    """Yield (how, outputs) on an emulated device, for each number of threads."""
    from slipway.runtime.graph import graph_executor

    session = _session(target)
    with tempfile.TemporaryDirectory(prefix="slipway-fuzz-") as folder:
        path = Path(folder) / "graph.so"
        factory.export_library(path)
        session.upload(path)
        library = session.load_module("graph.so")
    module = graph_executor.GraphModule(library["default"](session.cpu(0)))
    module.set_input(**inputs)
    for count in threads:
        session.get_function("runtime.config_threadpool")(0, count)
        module.run()
        outputs = [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
        yield f"{count} threads", outputs
    session.remove("graph.so")


def prepare(target: str) -> list[str]:
    """Return the command of a device server, which is built when it is not there.

    Building it takes minutes on a machine that has never done so: no graph's time.
    """
    from slipway.toolchain import emulators, native

    emulator = emulators.find(target)
    if emulator is None:
        raise RuntimeError(emulators.install_hint(target))
    return [*emulator, str(native.build_device_server(target)), "--port", "0"]


def _session(target: str):
    key = os.getpid(), target
    if key not in _sessions:
        from slipway import rpc

        process = subprocess.Popen(
            prepare(target), stderr=subprocess.PIPE, text=True, preexec_fn=_end_with_parent
        )
        assert process.stderr is not None
        port = int(process.stderr.readline().rsplit(":", 1)[1])
        _sessions[key] = rpc.connect("127.0.0.1", port), process
    return _sessions[key][0]


def _end_with_parent() -> None:
    """The child of a campaign is killed, or leaves without `atexit`: its emulators go with it."""
    death_signal = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)
