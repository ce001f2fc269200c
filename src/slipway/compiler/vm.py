"""``relay.vm.compile``: a model for `slipway.runtime.vm.VirtualMachine`, in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from slipway.compiler.create_executor import create_executor
from slipway.ir.function import IRModule
from slipway.relay.expr import Expr


class Executable:
    """A compiled model; `run` takes the inputs of its main, in order or by name.

    Models with open dimensions (`relay.Any()`) are compiled for each size that they meet; functions
    that call themselves are run by the NumPy references.
    """

    def __init__(self, run: Callable[..., Any]) -> None:
        self.run = run


def compile(
    mod: IRModule | Expr,
    target: Any = None,
    target_host: Any = None,
    params: Mapping[str, Any] | None = None,
) -> Executable:
    """Compile `mod` for this machine, with `params` bound by name.

    Raises what `relay.build` raises.
    """
    del target_host  # the target is a CPU, and its own host
    chosen = "llvm" if target is None else target
    return Executable(create_executor("vm", mod, target=chosen, params=params).evaluate())
