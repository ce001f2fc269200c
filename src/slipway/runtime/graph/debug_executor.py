"""A graph executor that measures a model kernel by kernel (classic ``debugger.debug_executor``)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.errors import ExecutionError
from slipway.runtime.graph import graph_executor
from slipway.runtime.graph.debug_result import DebugResult
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.runtime.params import save_param_dict
from slipway.runtime.profiling import Report
from slipway.runtime.timing import BenchmarkResult
from slipway.toolchain.tempdir import tempdir

if TYPE_CHECKING:
    from slipway.runtime.devices import AnyDevice


class GraphModuleDebug(GraphModule):
    """A `GraphModule` whose `run` prints the time of every kernel.

    `dump_root` names a folder for the graph and for what each kernel computed; a temporary one
    stands in for None, which `exit` removes, or the end of this object.
    """

    def __init__(
        self,
        module: Any,
        device: AnyDevice | None,
        graph_json_str: str,
        dump_root: str | None = None,
    ) -> None:
        super().__init__(module)
        self._device = device
        self._own_folder = tempdir() if dump_root is None else None
        self.dump_path = self._own_folder.path if self._own_folder else Path(dump_root or ".")
        self.dump_path.mkdir(parents=True, exist_ok=True)
        self._graph = graph_json_str
        (self.dump_path / "_tvmdbg_graph_dump.json").write_text(graph_json_str)
        self.debug_datum = DebugResult(graph_json_str, self.dump_path)

    @property
    def _dump_path(self) -> str:
        """The folder, under the name that scripts of TVM know."""
        return str(self.dump_path)

    def run(self, number: int = 10, repeat: int = 1, *_: object, **inputs: Any) -> None:
        """Run the model, print what each kernel takes, and write what each computes.

        Times are means of `number` runs, the least of `repeat` such.  Of the classic arguments
        behind these two only the inputs, by name, have an effect.
        """
        inputs = {name: value for name, value in inputs.items() if name not in _UNUSED}
        self.set_input(**inputs)
        times = self._times(number, repeat)
        self.debug_datum.take(times.T.tolist())
        measured = [
            (layer, function, float(seconds))
            for (layer, function), seconds in zip(self.node_names(), times.min(axis=0), strict=True)
            if function
        ]
        self._dump()
        total = sum(seconds for _, _, seconds in measured) or 1.0
        print(f"{'node':<40} {'us':>10} {'share':>7}")
        for layer, function, seconds in sorted(measured, key=lambda row: -row[2]):
            print(f"{(layer or function)[:40]:<40} {seconds * 1e6:>10.2f} {seconds / total:>7.1%}")
        print(f"{'all':<40} {total * 1e6:>10.2f}")

    def _dump(self) -> None:
        """Run the model, and write what each kernel computes before its memory is used again."""
        kernels = [index for index, (_, function) in enumerate(self.node_names()) if function]
        values = {
            f"{self._name(index)}____0": np.array(value.numpy())
            for index, (_, _, value) in zip(kernels, self.layer_values(), strict=True)
        }
        (self.dump_path / "output_tensors.params").write_bytes(save_param_dict(values))

    def _name(self, index: int) -> str:
        return str(json.loads(self._graph)["nodes"][index]["name"])

    def profile(  # type: ignore[override]  # `collectors` stands where the base has `number`
        self, collectors: object = None, number: int = 10, repeat: int = 3, **inputs: Any
    ) -> Report:
        """Measure every kernel, as `GraphModule.profile` does; return the times and their table.

        `collectors` read counters of processors in classic, and must be None.
        """
        if isinstance(collectors, int):  # what GraphModule.profile has in this place
            number, collectors = collectors, None
        if collectors:
            raise ExecutionError("profile: there are no collectors of counters here")
        rows = super().profile(number, repeat, **inputs)
        return Report.of_rows(rows, str(self._device), "Graph")

    def run_individual(self, number: int = 10, repeat: int = 1, *_: object) -> list[list[float]]:
        """Return, for each kernel in order, its seconds a run: `repeat` means of `number` runs."""
        kernels = [bool(function) for _, function in self.node_names()]
        times = self._times(number, repeat)
        return [
            list(map(float, row)) for row, is_one in zip(times.T, kernels, strict=True) if is_one
        ]

    def run_individual_node(
        self,
        index: int,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        **_: object,
    ) -> BenchmarkResult:
        """Return the seconds a run of node `index` takes: none for an input.

        A mean of `number` runs each of `repeat` times, of more where those are done before
        `min_repeat_ms`; so many times in a row, the next waits `cooldown_interval_ms`.  Raises
        ExecutionError for a number that no node has.
        """
        del limit_zero_time_iterations  # no kernel takes no time
        names = self.node_names()
        if not 0 <= index < len(names):
            raise ExecutionError(f"there is no node {index}: the model has {len(names)} nodes")
        if not names[index][1]:
            return BenchmarkResult([0.0] * repeat)
        found: list[float] = []
        for round_ in range(repeat):
            if cooldown_interval_ms and round_ and round_ % repeats_to_cooldown == 0:
                time.sleep(cooldown_interval_ms / 1000)
            runs, spent = number, float(self._times(number, 1)[0, index])
            while spent * runs * 1000 < min_repeat_ms:
                runs = max(runs * 2, int(min_repeat_ms / 1000 / max(spent, 1e-9)) + 1)
                spent = float(self._times(runs, 1)[0, index])
            found.append(spent)
        return BenchmarkResult(found)

    def _times(self, number: int, repeat: int) -> Any:
        blob = self.module["profile"](number, repeat)
        return np.frombuffer(blob, dtype="<f8").reshape(repeat, len(self.node_names()))

    def exit(self) -> None:
        """Remove the folder, where it is a temporary one."""
        if self._own_folder:
            self._own_folder.remove()


_UNUSED = ("min_repeat_ms", "limit_zero_time_iterations", "cooldown_interval_ms",
           "repeats_to_cooldown", "sort_by_time")  # fmt: skip


def create(
    graph_json_str: str, libmod: Any, device: AnyDevice | None = None,
    dump_root: str | None = None, *, ctx: AnyDevice | None = None,
) -> GraphModuleDebug:  # fmt: skip
    """Make such an executor from a graph's JSON and the library with its functions."""
    device = ctx if device is None else device  # `ctx` is its name in TVM 0.6
    made = graph_executor.create(graph_json_str, libmod, device)
    return GraphModuleDebug(made.module, device, graph_json_str, dump_root)
