"""Running what `relay.vm.compile` made, under the names of Relay's virtual machine (classic).

    vm = VirtualMachine(relay.vm.compile(mod, "llvm", params), tvm.cpu())
    result = vm.invoke("main", x)

There are no instructions to interpret: models of dataflow are compiled whole.
"""

from __future__ import annotations

from typing import Any, Protocol

from slipway.classic.names import REGIONS
from slipway.errors import ExecutionError
from slipway.placeholders import placeholder_of
from slipway.runtime.devices import Device


class Runnable(Protocol):
    """What a virtual machine runs: `slipway.compiler.vm.Executable`."""

    def run(self, *args: Any, **named: Any) -> Any:
        """Run "main" over its inputs, in order or by name."""


class VirtualMachine:
    """An executable on this machine's CPU; results are NDArrays, or lists of them for tuples."""

    def __init__(self, exe: Runnable, device: Any = None, memory_cfg: Any = None) -> None:
        del memory_cfg  # of TVM's allocators
        if not callable(getattr(exe, "run", None)):
            raise ExecutionError(
                f"VirtualMachine takes what relay.vm.compile returns, not {type(exe).__name__}"
            )
        devices = device if isinstance(device, (list, tuple)) else [device]
        for one in devices:
            if one is not None and not (isinstance(one, Device) and one.exist):
                raise ExecutionError(
                    f"a VirtualMachine runs on this process's cpu(0), not on {one}: compile for "
                    "other devices with relay.build, export the library, and use GraphModule there"
                )
        self._exe = exe
        self._given: tuple[tuple[Any, ...], dict[str, Any]] | None = None
        self._result: Any = None

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Set all inputs of `func_name`, which is "main", for the next `run` or `invoke`."""
        _check_main(func_name)
        self._given = args, kwargs

    def invoke(self, func_name: str, *args: Any, **kwargs: Any) -> Any:
        """Run "main" over these inputs, or over those of `set_input`, and return its result."""
        _check_main(func_name)
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        positional, named = self._given or ((), {})
        self._result = self._exe.run(*positional, **named)
        return self._result

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run "main"; see `invoke`."""
        return self.invoke("main", *args, **kwargs)

    def get_outputs(self) -> list[Any]:
        """Return the results of the last run as a list."""
        if self._result is None:
            raise ExecutionError("there are no outputs yet: call run first")
        return self._result if isinstance(self._result, list) else [self._result]


def _check_main(name: str) -> None:
    if name != "main":
        raise ExecutionError(f"there is no function {name!r}: a VirtualMachine runs 'main'")


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, REGIONS)
