"""``tvm.runtime.profiler_vm``: what each kernel of an executable takes.

vm = VirtualMachineProfiler(relay.vm.compile(mod, "llvm"), tvm.cpu())
print(vm.profile(x))
"""

from __future__ import annotations

import time
from typing import Any

from slipway.errors import ArgumentValueError, ExecutionError
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.runtime.profiling import Report
from slipway.runtime.vm import VirtualMachine, inputs_by_name

NUMBER, REPEAT = 1, 3  # runs of a kernel that are measured at once, and how often


def enabled() -> bool:
    """Return whether a virtual machine can be profiled: it can."""
    return True


class VirtualMachineProfiler(VirtualMachine):
    """A `VirtualMachine` that also says how long each kernel takes."""

    _graph: GraphModule | None = None

    def profile(
        self, *args: object, func_name: str = "main", collectors: object = None, **kwargs: object
    ) -> Report:
        """Return the times of each kernel over these inputs, or over those of `set_input`.

        A model of which each size is compiled when it is met is one kernel here, "main".
        """
        if collectors is not None:
            raise ArgumentValueError(
                "VirtualMachineProfiler.profile measures times: leave out collectors, which count "
                "events of the processor"
            )
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        if self._given is None and self._inputs:
            raise ExecutionError(
                f"profile needs the inputs {', '.join(self._inputs)}: give them, or call set_input"
            )
        positional, named = self._given or ((), {})
        where = str(self.devices[0])
        if self.exe.is_open:
            return Report.of_rows(
                [("main", "main", self._whole_run(positional, named))], where, "vm"
            )
        if self._graph is None:
            self._graph = self.exe.graph_on(self.devices)
        inputs = inputs_by_name(self._inputs, positional, named)
        return Report.of_rows(self._graph.profile(NUMBER, REPEAT, **inputs), where, "vm")

    def _whole_run(self, args: tuple[Any, ...], named: dict[str, Any]) -> float:
        self._run(*args, **named)  # compiles it for these sizes
        times = []
        for _ in range(REPEAT):
            before = time.perf_counter()
            self._run(*args, **named)
            times.append(time.perf_counter() - before)
        return min(times)

    def get_stat(self, sort_by_time: bool = True) -> str:
        """Return a table of the kernels over the inputs of the last `invoke`, as TVM 0.6 did."""
        return self.profile().table(sort=sort_by_time)

    def reset(self) -> None:
        """Do nothing: each profile is measured anew."""
