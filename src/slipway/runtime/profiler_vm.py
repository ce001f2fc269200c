"""``tvm.runtime.profiler_vm``: there is no virtual machine to profile, models are compiled whole.

What each kernel takes is measured on a graph executor: ``GraphModule.profile``.
"""

from __future__ import annotations

from typing import Any

from slipway.placeholders import placeholder_of


def enabled() -> bool:
    """Return whether a virtual machine can be profiled: it cannot."""
    return False


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, "profile a graph executor: GraphModule.profile()")
