"""Models one after the other, each in a thread of its own: classic ``contrib.pipeline_executor``.

While the second model works on the first picture, the first one works on the next.
"""

from __future__ import annotations

import json
import queue
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from slipway.errors import ArgumentValueError, ArtifactError, ExecutionError, did_you_mean
from slipway.runtime.devices import Device
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.runtime.load import load_module
from slipway.runtime.ndarray import NDArray, array

CONFIG_NAME = "config"


@dataclass(frozen=True)
class Wiring:
    """Where values go.  Models are numbers, in an order in which each reads those before it.

    `inputs`: name of the pipeline -> (model, its input).  `links`: (model, output, model, input).
    `outputs`: (model, output) for each output of the pipeline.  `groups`: parameters -> model.
    """

    inputs: dict[str, tuple[int, str]]
    links: tuple[tuple[int, int, int, str], ...]
    outputs: tuple[tuple[int, int], ...]
    groups: dict[str, int] = field(default_factory=dict)


@dataclass
class _Frame:
    """One run on its way: what each model gets, what the pipeline gives, what went wrong."""

    given: dict[int, dict[str, Any]]
    results: list[NDArray | None]
    error: Exception | None = None


class PipelineExecutorFactoryModule:
    """Built models and how they are connected; `PipelineModule` runs them."""

    def __init__(self, libs: Sequence[Any], devices: Sequence[Device], wiring: Wiring) -> None:
        self.libs, self.devices, self.wiring = list(libs), list(devices), wiring

    def export_library(self, directory_path: str | Path) -> str:
        """Write models and wiring to a folder; return the file that `load_library` takes."""
        folder = Path(directory_path)
        if not folder.is_dir():
            raise ArtifactError(f"there is no folder {folder} to export the pipeline to.")
        names = []
        for number, lib in enumerate(self.libs):
            names.append(f"lib{number}.tar")
            lib.export_library(str(folder / names[-1]))
        whole = {
            "libraries": names,
            "devices": [(int(d.device_type), int(d.device_id)) for d in self.devices],
            "wiring": asdict(self.wiring),
        }
        path = folder / CONFIG_NAME
        path.write_text(json.dumps(whole, indent=1), encoding="utf-8")
        return str(path)


class PipelineModule:
    """Runs a pipeline: `set_input`, `run`, `run`, ..., and `get_output` for each run, in order."""

    def __init__(self, module: PipelineExecutorFactoryModule) -> None:
        self.wiring = module.wiring
        self._models = [
            GraphModule(lib["default"](dev))
            for lib, dev in zip(module.libs, module.devices, strict=True)
        ]
        self._threads = [ThreadPoolExecutor(1, f"slipway-pipeline-{i}") for i in range(len(self))]
        self._waiting: dict[str, NDArray] = {}
        self._done: queue.SimpleQueue[_Frame] = queue.SimpleQueue()
        self._started = 0
        self._taken = 0

    def __len__(self) -> int:
        return len(self._models)

    @staticmethod
    def load_library(config_file_name: str | Path) -> PipelineModule:
        """Load what `export_library` wrote."""
        path = Path(config_file_name)
        try:
            whole = json.loads(path.read_text(encoding="utf-8"))
            kept = whole["wiring"]
            wiring = Wiring(
                {name: (int(m), str(key)) for name, (m, key) in kept["inputs"].items()},
                tuple((int(a), int(b), int(c), str(d)) for a, b, c, d in kept["links"]),
                tuple((int(m), int(i)) for m, i in kept["outputs"]),
                {name: int(m) for name, m in kept["groups"].items()},
            )
            libraries = [path.parent / name for name in whole["libraries"]]
            devices = [Device(int(kind), int(number)) for kind, number in whole["devices"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ArtifactError(f"{path} describes no pipeline: {error}.") from error
        libs = [load_module(library) for library in libraries]
        return PipelineModule(PipelineExecutorFactoryModule(libs, devices, wiring))

    # Values

    def set_input(self, key: str, value: Any) -> None:
        """Give an input of the pipeline, for the runs from now on; the value is copied."""
        self._known(key, self.wiring.inputs, "input")
        given = value.numpy() if hasattr(value, "numpy") else value
        self._waiting[key] = array(given)

    def get_input(self, key: str) -> NDArray:
        """Return what an input was given."""
        self._known(key, self.wiring.inputs, "input")
        if key not in self._waiting:
            raise ExecutionError(f"the input {key!r} was not given yet.")
        return self._waiting[key]

    def set_params(self, params_group_name: str, params_data: Mapping[str, Any]) -> None:
        """Give a model its parameters; they hold for the runs from now on."""
        number = self._known(params_group_name, self.wiring.groups, "group of parameters")
        if not params_data:
            raise ExecutionError(f"the group {params_group_name!r} is given no parameters.")
        values = dict(params_data)
        self._threads[number].submit(self._models[number].set_input, **values).result()

    @staticmethod
    def _known(key: str, table: Mapping[str, Any], what: str) -> Any:
        if key not in table:
            raise ArgumentValueError(
                f"the pipeline has no {what} {key!r}; there are {', '.join(table) or 'none'}."
                f"{did_you_mean(key, list(table))}"
            )
        return table[key]

    # Runs

    def run(self) -> None:
        """Start one run with the inputs as they are, and return at once."""
        lacking = [name for name in self.wiring.inputs if name not in self._waiting]
        if lacking:
            raise ExecutionError(f"the inputs {', '.join(lacking)} were not given: set_input.")
        frame = _Frame({i: {} for i in range(len(self))}, [None] * len(self.wiring.outputs))
        for name, (model, key) in self.wiring.inputs.items():
            frame.given[model][key] = self._waiting[name]
        self._started += 1
        self._threads[0].submit(self._stage, 0, frame)

    def _stage(self, number: int, frame: _Frame) -> None:
        """Run one model of a frame, on its thread, and hand the frame on."""
        if frame.error is None:
            try:
                self._compute(number, frame)
            except Exception as error:  # told by `get_output` to whoever waits for this run
                frame.error = error
        if number + 1 < len(self):
            self._threads[number + 1].submit(self._stage, number + 1, frame)
        else:
            self._done.put(frame)

    def _compute(self, number: int, frame: _Frame) -> None:
        model = self._models[number]
        model.run(**frame.given.pop(number))
        made: dict[int, NDArray] = {}

        def output(index: int) -> NDArray:
            if index not in made:  # a copy: the next run writes over the model's own
                made[index] = array(model.get_output(index).numpy())
            return made[index]

        for source, index, target, key in self.wiring.links:
            if source == number:
                frame.given[target][key] = output(index)
        for position, (source, index) in enumerate(self.wiring.outputs):
            if source == number:
                frame.results[position] = output(index)

    def get_output(self, synchronize: bool = True, sleep_interval: float = 0.001) -> list[Any]:
        """Return the outputs of the oldest run that was not asked for yet.

        Waits for it; without `synchronize` an empty list means that it is not done.  Raises what
        went wrong in that run.
        """
        del sleep_interval
        if self._taken == self._started and synchronize:
            raise ExecutionError("every run that was started has been asked for: run() first.")
        try:
            frame = self._done.get(block=synchronize)
        except queue.Empty:
            return []
        self._taken += 1
        if frame.error is not None:
            raise frame.error
        return frame.results

    @property
    def num_executing_pipeline(self) -> int:
        """How many runs were started."""
        return self._started

    @property
    def num_outputs(self) -> int:
        """How many outputs the pipeline has."""
        return len(self.wiring.outputs)

    @property
    def num_inputs(self) -> int:
        """How many inputs the pipeline has."""
        return len(self.wiring.inputs)

    def get_input_pipeline_map(self, name: str) -> list[str]:
        """Return the number of the model that an input goes to, and its name there."""
        number, key = self._known(name, self.wiring.inputs, "input")
        return [str(number), key]

    def get_params_group_pipeline_map(self, name: str) -> str:
        """Return the number of the model that a group of parameters belongs to."""
        return str(self._known(name, self.wiring.groups, "group of parameters"))
