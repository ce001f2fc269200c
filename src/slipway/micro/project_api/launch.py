"""Run a template's `microtvm_api_server.py` so that its ``import tvm`` finds Slipway.

``python -m slipway.micro.project_api.launch SERVER.py --read-fd N --write-fd N``.  Where a package
called tvm is installed it stays what it is.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class TvmNames(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``tvm.x.y`` as ``slipway.x.y``: the same module object under a second name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer for tvm and what is below it."""
        if fullname.partition(".")[0] != "tvm":
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module behind the name."""
        return importlib.import_module("slipway" + spec.name.removeprefix("tvm"))

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do: the module is loaded."""


def main() -> None:
    """Run the script named first with the rest of the command line."""
    script = sys.argv[1]
    if importlib.util.find_spec("tvm") is None:
        sys.meta_path.append(TvmNames())
    sys.argv = sys.argv[1:]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
