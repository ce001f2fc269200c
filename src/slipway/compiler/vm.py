"""``relay.vm``: a model for `slipway.runtime.vm.VirtualMachine`, and what makes one in steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from slipway.backends.backend import compile_target
from slipway.compiler.classic_build import optimize as optimize_graph
from slipway.compiler.create_executor import RelayExecutor
from slipway.errors import ArtifactError, ExecutionError, SlipwayError
from slipway.ir.function import IRModule
from slipway.ir.text.serialize import load_json
from slipway.relay.expr import Expr
from slipway.runtime.vm import Executable, VirtualMachine

if TYPE_CHECKING:
    from slipway.runtime.devices import AnyDevice
    from slipway.target.target import TargetLike


def compile(
    mod: IRModule | Expr,
    target: TargetLike = None,
    target_host: TargetLike = None,
    params: Mapping[str, Any] | None = None,
) -> Executable:
    """Compile `mod` for a target, with `params` bound by name.

    Raises what `relay.build` raises.
    """
    del target_host  # part of the target
    chosen = "llvm" if target is None else target
    return VMExecutor(mod, None, chosen, params).executable


def executable_of(model: str, target: str, lib: Any) -> Executable:
    """Return the executable of a model that `Executable.save` wrote.

    Raises ArtifactError for text that is no such model.
    """
    try:
        mod = load_json(model)
    except SlipwayError as error:
        raise ArtifactError(f"load_exec: the code is damaged: {error}") from error
    if not isinstance(mod, IRModule):
        raise ArtifactError(f"load_exec: the code is damaged: a {type(mod).__name__} is no model")
    return VMExecutor(mod, None, target).as_executable(lib)


class VMExecutor(RelayExecutor):
    """What ``relay.create_executor("vm")`` makes; `executable` is its main, compiled."""

    def __init__(
        self,
        mod: IRModule | Expr,
        device: AnyDevice | None = None,
        target: TargetLike = "llvm",
        params: Mapping[str, Any] | None = None,
    ) -> None:
        mod = mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)
        super().__init__("vm", mod, device, target, params)
        self._executable: Executable | None = None

    @property
    def executable(self) -> Executable:
        """The module's main as `VirtualMachine` runs it, and as it is saved."""
        if self._executable is None:
            self._executable = self.as_executable()
        return self._executable

    @property
    def vm(self) -> VirtualMachine:
        """A machine that runs the executable on the device."""
        return VirtualMachine(self.executable, self.device)


class VMCompiler:
    """`compile` in steps, as classic scripts write them."""

    def __init__(self) -> None:
        self._params: dict[str, Any] = {}
        self._executable: Executable | None = None

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Bind parameters by name, before `lower`."""
        self._params = dict(params)

    def lower(
        self, mod: IRModule | Expr, target: TargetLike = None, target_host: TargetLike = None
    ) -> None:
        """Compile a module."""
        self._executable = compile(mod, target, target_host, self._params)

    def optimize(
        self,
        mod: IRModule | Expr,
        target: TargetLike = None,
        target_host: TargetLike = None,
        params: Mapping[str, Any] | None = None,
    ) -> tuple[IRModule, dict[str, Any]]:
        """Return the module after the graph passes, and its parameters: constants of it, so {}."""
        return optimize_graph(mod, compile_target(target, target_host), params or self._params)

    def codegen(self) -> None:
        """Do nothing more: `lower` has made the code."""

    def get_params(self) -> dict[str, Any]:
        """Return the parameters that were set."""
        return dict(self._params)

    def get_exec(self) -> Executable:
        """Return the executable.  Raises ExecutionError before `lower`."""
        if self._executable is None:
            raise ExecutionError("there is no executable yet: call lower(mod, target) first")
        return self._executable
