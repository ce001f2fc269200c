"""One script of classic_scripts.py: `tvm` becomes Slipway, the network is shut, the end reported.

python tools/classic_child.py SCRIPT REPORT.json
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import json
import runpy
import socket
import sys
import traceback
import types
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import classic_downloads

# Top-level packages of classic TVM -> where Slipway has them.
ALIASES = {"tvm": "slipway", "topi": "slipway.topi"}
NEEDS_GPU = ("cuda", "opencl", "rocm", "metal", "vulkan", "mali", "nvptx")


class NoNetwork(OSError):
    """A connection to another machine, which the runner does not allow."""


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``tvm.x.y`` as ``slipway.x.y``: the very same module under two names."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return how to load a module of classic TVM."""
        top, _, rest = name.partition(".")
        if top not in ALIASES:
            return None
        real = f"{ALIASES[top]}.{rest}" if rest else ALIASES[top]
        try:
            module = importlib.import_module(real)
        except ModuleNotFoundError as error:
            if error.name is None or not real.startswith(error.name):
                raise  # a package that the module needs
            return None
        spec = importlib.machinery.ModuleSpec(name, self, is_package=hasattr(module, "__path__"))
        spec.loader_state = (module, module.__spec__)
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Return Slipway's module."""
        return spec.loader_state[0]  # type: ignore[no-any-return]

    def exec_module(self, module: types.ModuleType) -> None:
        """Give the module its own specification back."""
        module.__spec__ = self._own(module)

    @staticmethod
    def _own(module: types.ModuleType) -> Any:
        return module.__spec__.loader_state[1]  # type: ignore[union-attr]


def shut_network() -> None:
    """Refuse connections to other machines."""
    connect = socket.socket.connect

    def checked(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and str(address[0]) not in ("127.0.0.1", "localhost", "::1",
                                                                  "0.0.0.0"):  # fmt: skip
            raise NoNetwork(f"no connection to {address[0]} under this runner")
        connect(self, address)

    socket.socket.connect = checked  # type: ignore[method-assign]


def state_of(error: BaseException) -> str:
    """Return what an exception says that a script needs, or "failed"."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, classic_downloads.NotStored | NoNetwork):
            return "needs a download"
        if isinstance(seen, ModuleNotFoundError) and (seen.name or "").partition(".")[0] not in (
            *ALIASES, "slipway"
        ):  # fmt: skip
            return f"needs {(seen.name or '').partition('.')[0]}"
        text = str(seen)
        if type(seen).__name__ == "NotAvailableError":
            return "needs tuning" if "tuner" in text else "not there"
        if type(seen).__name__ == "TuningError" and "cannot be read: [Errno 2]" in text:
            return "needs tuning"  # the file that the search writes
        if "contrib.cutlass" in text:  # kernels of NVIDIA's
            return "needs a GPU"
        if type(seen).__name__ == "DeviceError" and "CUDA does not work" in text:
            return "needs a GPU"
        if type(seen).__name__ in ("TargetError", "ExecutionError", "TuningError") and any(
            f"'{kind}'" in text or f"{kind}(" in text or f"{kind} " in text for kind in NEEDS_GPU
        ):
            return "needs a GPU"
        seen = seen.__cause__ or seen.__context__
    return "failed"


def main() -> None:
    """Run the script; the report says how it ended."""
    script, report = Path(sys.argv[1]), Path(sys.argv[2])
    sys.meta_path.insert(0, Alias())
    shut_network()
    fetched: list[str] = []
    opener = classic_downloads.opener(fetched)
    urllib.request.urlopen = opener
    sys.argv = [str(script)]
    sys.path[0] = str(script.parent)
    found: dict[str, Any] = {"state": "ran"}
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as error:
        if error.code not in (None, 0):
            found = {"state": "failed", "error": f"exit {error.code}"}
    except BaseException as error:
        traceback.print_exc()
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(script)]
        text = str(error).strip().splitlines() or [""]
        found = {
            "state": state_of(error),
            "line": frames[-1].lineno if frames else getattr(error, "lineno", 0) or 0,
            "error": f"{type(error).__name__}: {text[0][:220]}",
        }
    found["stand_ins"] = sorted(set(fetched))
    report.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
