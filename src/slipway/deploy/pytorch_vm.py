"""A compiled model of the virtual machine as a module of PyTorch, and modules that can be traced.

``torch.jit.trace`` records operators of PyTorch and takes what else it sees for constants.  So a
module that shall be traced is called by an operator, ``slipway::call``, by its number in a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slipway.errors import ArgumentTypeError, ArgumentValueError, ExecutionError
from slipway.runtime.devices import cpu
from slipway.runtime.load import load_module
from slipway.runtime.ndarray import array_of_tensor, tensor_of_array
from slipway.runtime.vm import Executable, VirtualMachine

_MODULES: list[Any] = []  # what `slipway::call` calls, by number
_LIBRARY: list[Any] = []  # the operator, once it is defined


def VMModule(num_inputs: int, num_outputs: int) -> Any:
    """Return a ``torch.nn.Module`` that runs an executable's library and code (see `init`)."""
    import torch

    class Executed(torch.nn.Module):  # type: ignore[misc]
        """Takes tensors of the shapes that `init` was given, and gives new ones."""

        def __init__(self) -> None:
            super().__init__()
            self.num_inputs, self.num_outputs = num_inputs, num_outputs
            self.machine: Any = None
            self.shapes: list[tuple[int, ...]] = []

        def init(self, input_shapes: Sequence[Sequence[int]], lib_path: str | Path,
                 code_path: str | Path) -> None:  # fmt: skip
            """Load the library and the code that ``Executable.save`` gave; shapes in order."""
            code = Path(code_path).read_bytes()
            executable = Executable.load_exec(code, load_module(str(lib_path)))
            if len(input_shapes) != self.num_inputs:
                raise ArgumentValueError(
                    f"the module has {self.num_inputs} inputs, not {len(input_shapes)}"
                )
            self.shapes = [tuple(int(d) for d in shape) for shape in input_shapes]
            self.machine = VirtualMachine(executable, cpu(0))

        def forward(self, *tensors: Any) -> list[Any]:
            """Run the model on tensors, or on a list of them; return a list of tensors."""
            given = _listed(tensors)
            if self.machine is None:
                raise ArgumentValueError("init comes first: the module has no model")
            if (shapes := [tuple(t.shape) for t in given]) != self.shapes:
                raise ArgumentTypeError(f"the module takes {self.shapes}, not {shapes}")
            made = self.machine.run(*(array_of_tensor(t) for t in given))
            results = [made] if hasattr(made, "numpy") else list(made)
            if len(results) != self.num_outputs:
                raise ExecutionError(
                    f"the model has {len(results)} outputs, not {self.num_outputs}"
                )
            return [tensor_of_array(r.numpy()) for r in results]

    return Executed()


def TraceTvmModule(tvm_module: object) -> Any:
    """Return a ``torch.nn.Module`` that takes tensors one by one, and that can be traced.

    `tvm_module` takes a list of tensors and returns one.  What is traced runs in this process.
    """
    import torch

    call = _operator()
    number = len(_MODULES)
    _MODULES.append(tvm_module)

    class Traced(torch.nn.Module):  # type: ignore[misc]
        """Calls a module by its number."""

        def forward(self, *inputs: Any) -> Any:
            """Return the only output, or a tuple of all."""
            made = call(number, list(inputs))
            return made[0] if len(made) == 1 else tuple(made)

    return Traced()


def _operator() -> Any:
    """Define ``slipway::call`` when it is first used, and return it."""
    import torch

    if not _LIBRARY:
        library = torch.library.Library("slipway", "DEF")
        library.define("call(int number, Tensor[] inputs) -> Tensor[]")
        library.impl("call", _called, "CompositeExplicitAutograd")
        _LIBRARY.append(library)
    return torch.ops.slipway.call


def _called(number: int, inputs: list[Any]) -> list[Any]:
    if not 0 <= number < len(_MODULES):
        raise ExecutionError("a module that was traced in another process is not in this one")
    return list(_MODULES[number].forward(inputs))


def _listed(tensors: tuple[Any, ...]) -> list[Any]:
    listed = len(tensors) == 1 and isinstance(tensors[0], list | tuple)
    return list(tensors[0]) if listed else list(tensors)
