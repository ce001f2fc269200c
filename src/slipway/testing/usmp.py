"""``tvm.testing.usmp``: whether code asks TVM for memory while it runs."""

from __future__ import annotations

from slipway.runtime.module import Module


def is_tvm_backendallocworkspace_calls(mod: Module) -> bool:
    """Return whether the code of a module, or of one that it imports, calls that C function."""
    texts = [mod.get_source(), *(one.get_source() for one in mod.imported_modules)]
    return any("TVMBackendAllocWorkspace" in text for text in texts)
