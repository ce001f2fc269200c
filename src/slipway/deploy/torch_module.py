"""Compiled models and functions as modules of PyTorch: classic ``contrib.torch``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from slipway.compiler.driver import build
from slipway.compiler.relay_build import build as relay_build
from slipway.errors import ArgumentTypeError
from slipway.frontends.torch.importer import from_pytorch
from slipway.ir.function import IRModule, PrimFunc
from slipway.runtime.devices import cpu
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.runtime.ndarray import array, array_of_tensor, tensor_of_array

if TYPE_CHECKING:
    from slipway.target.target import TargetLike


def optimize_torch(
    func: Any,
    example_inputs: Any,
    tuning_config: Any = None,
    target: TargetLike = None,
    work_dir: Any = None,
) -> Any:
    """Return a compiled ``torch.nn.Module`` that computes what `func` does on tensors like these.

    Parameters
    ----------
    func
        an nn.Module, a function of tensors, or a traced or scripted module.
    example_inputs
        a tensor or a sequence of them: shapes and dtypes that it is compiled for.
    target
        as `relay.build` takes it; this machine by default.
    tuning_config, work_dir
        classic parameters: schedules are chosen from the description of the target.

    The module takes CPU tensors of those shapes and gives new ones; it has no gradients.

    """
    import torch

    del work_dir
    if tuning_config is not None:
        warnings.warn(
            "optimize_torch does not search: schedules are chosen from the target's description. "
            "slipway.meta_schedule tunes a model that relay.frontend.from_pytorch gives.",
            UserWarning,
            stacklevel=2,
        )
    given = (example_inputs,) if isinstance(example_inputs, torch.Tensor) else tuple(example_inputs)
    model = func
    if not isinstance(func, torch.nn.Module):
        if not callable(func):
            raise ArgumentTypeError(
                f"optimize_torch takes a module or a function, not {type(func).__name__}."
            )
        model = _module_of(func)
    infos = [
        (f"inp_{i}", (tuple(t.shape), str(t.dtype).removeprefix("torch.")))
        for i, t in enumerate(given)
    ]
    mod, params = from_pytorch(model.eval(), infos)
    library = relay_build(mod, target or "llvm", params=params)
    executor = GraphModule(library["default"](cpu(0)))
    names = [name for name, _ in infos]

    def run(*tensors: Any) -> Any:
        _check_count(len(tensors), len(names))
        executor.run(**{n: _values(t) for n, t in zip(names, tensors, strict=True)})
        outputs = [
            tensor_of_array(executor.get_output(i).numpy())
            for i in range(executor.get_num_outputs())
        ]
        return outputs[0] if len(outputs) == 1 else outputs

    return _module_of(run)


def as_torch(func: IRModule | PrimFunc | Callable[..., Any]) -> Any:
    """Return a ``torch.nn.Module`` that calls a function of loops: the last tensors are written.

    `func` is a PrimFunc or a module of one, as ``@T.prim_func`` and ``@tvm.script.ir_module`` make
    them.
    """
    if not isinstance(func, IRModule | PrimFunc):
        raise ArgumentTypeError(
            f"as_torch takes a PrimFunc or an IRModule, not {type(func).__name__}."
        )
    built = build(func, target="llvm")

    def run(*tensors: Any) -> None:
        held = [array(_values(t)) for t in tensors]
        built(*held)
        for tensor, values in zip(tensors, held, strict=True):
            tensor.copy_(tensor_of_array(values.numpy()))

    module = _module_of(run)
    module.script = func.script

    def tune(config: Any = None, target: Any = "cpu") -> None:
        """Take a target, as classic TVM's wrapper does; the loops stay as they are written."""
        nonlocal built
        del config
        warnings.warn(
            "as_torch does not search: loops run as they are written. slipway.tir.Schedule "
            "changes them.",
            UserWarning,
            stacklevel=2,
        )
        built = build(func, target="llvm" if str(target) == "cpu" else target)

    module.tune = tune
    return module


def _module_of(function: Callable[..., Any]) -> Any:
    """Return an nn.Module whose forward is a function."""
    import torch

    class Compiled(torch.nn.Module):  # type: ignore[misc]
        """Calls what was compiled."""

        def forward(self, *tensors: Any) -> Any:
            return function(*tensors)

    return Compiled()


def _values(tensor: Any) -> Any:
    return array_of_tensor(tensor) if hasattr(tensor, "detach") else tensor


def _check_count(given: int, wanted: int) -> None:
    if given != wanted:
        raise ArgumentTypeError(f"the compiled module takes {wanted} tensors, not {given}.")


__all__: Sequence[str] = ["as_torch", "optimize_torch"]
