"""What a schedule is searched for: a te computation, or a kernel of a model, on a target."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from slipway import te
from slipway.auto_scheduler.compute_dag import ComputeDAG
from slipway.auto_scheduler.hardware import HardwareParams
from slipway.auto_scheduler.loop_state import StateObject
from slipway.auto_scheduler.measure import LocalBuilder, LocalRunner, RPCRunner
from slipway.auto_scheduler.records import (
    RecordToFile,
    best_of,
    check_compatible,
    load_records,
    task_record,
)
from slipway.auto_scheduler.search_policy import Policy, SketchPolicy
from slipway.auto_scheduler.sketch import Sketches
from slipway.auto_scheduler.sketch_gpu import GpuSketches
from slipway.auto_scheduler.sketch_rules import PreloadCustomSketchRule, RuledSketches
from slipway.auto_scheduler.task_inputs import names_of_inputs
from slipway.auto_scheduler.workload_registry import (
    Workload,
    hash_of,
    make_workload_key,
    register_workload_tensors,
)
from slipway.autotvm.measure import MeasureOption
from slipway.autotvm.task.kernel import KernelTask
from slipway.backends.backend import compile_target
from slipway.compiler.driver import build, lower
from slipway.errors import SlipwayError, TuningError
from slipway.relay.text.printer import astext
from slipway.runtime.ndarray import NDArray, array
from slipway.target import Target
from slipway.tuning.builders import Builder
from slipway.tuning.measure import Bench
from slipway.tuning.runner import Runner
from slipway.tuning.schedules.scheduled import ScheduledTask
from slipway.tuning.space import Candidate, Choices

FIRST = 64  # candidates among which one has to be legal
TASK_INPUT_BUFFER_TABLE: dict[str, dict[str, NDArray]] = {}


class TuningOptions:
    """How long to search, how to measure, and what is told of it."""

    def __init__(
        self,
        num_measure_trials: int = 0,
        early_stopping: int | None = None,
        num_measures_per_round: int = 64,
        verbose: int = 1,
        builder: LocalBuilder | str = "local",
        runner: LocalRunner | RPCRunner | str = "local",
        measure_callbacks: Sequence[Any] | None = None,
    ) -> None:
        if runner != "local" and not isinstance(runner, LocalRunner | RPCRunner):
            raise TuningError(
                f"runner {runner!r} is not 'local', auto_scheduler.LocalRunner or "
                "auto_scheduler.RPCRunner"
            )
        if builder != "local" and not isinstance(builder, LocalBuilder):
            raise TuningError(f"builder {builder!r} is not 'local' or auto_scheduler.LocalBuilder")
        self.builder = LocalBuilder() if isinstance(builder, str) else builder
        self.num_measure_trials = num_measure_trials
        self.early_stopping = early_stopping
        self.num_measures_per_round = num_measures_per_round
        self.verbose = verbose
        self.runner = LocalRunner() if isinstance(runner, str) else runner
        self.measure_callbacks = list(measure_callbacks or ())

    @property
    def measuring(self) -> MeasureOption:
        """How candidates are measured."""
        return self.runner.option(self.builder)


class SearchTask(ScheduledTask):
    """A computation whose schedule is searched for a target.

    It is a registered function with arguments, a graph, or a workload's key.  `task_inputs` are
    values of inputs by their names, which measurements use where random ones mean nothing.  With
    `task_inputs_save_to_file` they are also kept in files, "<name>.npy" in the working folder, and
    a later task takes them by their names alone.
    """

    kernel: KernelTask | None = None
    _policy: SketchPolicy | None = None
    _rules: Sequence[PreloadCustomSketchRule] = ()

    def __init__(
        self,
        func: Workload | str | None = None,
        args: Any = None,
        compute_dag: ComputeDAG | None = None,
        workload_key: str | None = None,
        target: Target | str | None = None,
        target_host: Target | str | None = None,
        hardware_params: HardwareParams | None = None,
        layout_rewrite_option: int | None = None,
        task_inputs: Mapping[str, NDArray] | Sequence[str] | None = None,
        task_inputs_overwrite: bool = False,
        task_inputs_save_to_file: bool = False,
        desc: str = "",
    ) -> None:
        if func is not None:
            workload_key = make_workload_key(func, args if args is not None else ())
        if compute_dag is None:
            if workload_key is None:
                raise TuningError(
                    "a SearchTask needs func= and args=, compute_dag= or workload_key="
                )
            compute_dag = ComputeDAG(workload_key)
        elif workload_key is None:
            workload_key = compute_dag.workload_key()
        if func is None:
            register_workload_tensors(workload_key, compute_dag.tensors)
        self.compute_dag, self.workload_key, self.desc = compute_dag, workload_key, desc
        self.target = compile_target(target, target_host)
        self.hardware_params = hardware_params or HardwareParams(target=self.target)
        self.layout_rewrite_option = int(layout_rewrite_option or 0)
        self.key = hash_of(f"{workload_key}\n{self.target}")
        self.flop = compute_dag.flop_ct
        self.task_input_names: list[str] = []
        self._take_inputs(task_inputs, task_inputs_overwrite)
        if task_inputs_save_to_file:
            for name in self.task_input_names:
                values = TASK_INPUT_BUFFER_TABLE[workload_key][name]
                np.save(Path(f"{name}.npy"), values.numpy(), allow_pickle=False)

    def _take_inputs(self, given: Any, overwrite: bool) -> None:
        table = TASK_INPUT_BUFFER_TABLE.setdefault(self.workload_key, {})
        for name in given or ():
            if isinstance(given, Mapping):
                if name in table and not overwrite:
                    raise TuningError(
                        f"the input {name!r} of this computation is known already: "
                        "task_inputs_overwrite=True puts another value in its place"
                    )
                table[name] = given[name]
            elif name not in table:
                file = Path(f"{name}.npy")
                if not file.exists():
                    raise TuningError(
                        f"there is no value of the input {name!r}, and no file {file}: give "
                        "{name: array}"
                    )
                table[name] = array(np.load(file, allow_pickle=False))
            self.task_input_names.append(str(name))

    # As the engine sees it.

    def follow(self, policy: SketchPolicy, rules: Sequence[PreloadCustomSketchRule]) -> None:
        """Let the rules of a policy make sketches, beside and before those that there are."""
        if rules or self._rules:
            self._policy, self._rules = policy, list(rules)
            self.__dict__.pop("sketches", None)

    @cached_property
    def sketches(self) -> Sketches:
        """The schedules that are searched; the default is one that compiles."""
        kind = Sketches if self.target.kind.is_cpu else GpuSketches
        found = kind(self.compute_dag, self.target)
        if self._rules:
            found = RuledSketches(self.compute_dag, self.target, self._policy, self._rules)
        first: SlipwayError | None = None
        rng = random.Random(self.key)
        default = found.default
        for _ in range(FIRST):
            assert default is not None
            try:
                state = StateObject(self.compute_dag, found.steps_of(default))
                lower(*self.compute_dag.apply_steps_from_state(state), simple_mode=True)
            except SlipwayError as error:
                first = first or error
                default = found.sample(rng)
            else:
                found.default = default
                return found
        assert first is not None
        raise first

    @property
    def space(self) -> Choices:
        """The candidates."""
        return self.sketches

    def scheduled(self, candidate: Candidate) -> tuple[te.Schedule, list[Any]]:
        """Return (schedule, arguments) of a candidate."""
        return self.compute_dag.apply_steps_from_state(self.config_of(candidate))

    def config_of(self, candidate: Candidate) -> StateObject:
        """Return the state of a candidate."""
        state = StateObject(self.compute_dag, self.sketches.steps_of(candidate))
        state.candidate = candidate
        return state

    def candidate_of(self, config: object) -> Candidate | None:
        """Return the candidate of a logged state, None for one of other sketches."""
        candidate = getattr(config, "candidate", None)
        if candidate is None or candidate.strategy not in self.sketches.values:
            return None
        names = set(self.sketches.values[candidate.strategy])
        return candidate if names == {name for name, _ in candidate.knobs} else None

    def bench(
        self, runner: Runner, folder: Path, rounds: int, builder: Builder | None = None
    ) -> Bench:
        """Return what measures candidates, with the values of inputs that the task was given."""
        bench = super().bench(runner, folder, rounds, builder)
        table = TASK_INPUT_BUFFER_TABLE.get(self.workload_key, {})
        names = names_of_inputs(self.compute_dag.tensors, table)
        for number, tensor in enumerate(self.tensors[0]):
            value = table.get(names.get(tensor, ""))
            if value is not None:
                array = value.numpy() if isinstance(value, NDArray) else np.asarray(value)
                if array.shape != bench.inputs[number].shape:
                    raise TuningError(
                        f"the value of the input {tensor.name!r} has the shape {array.shape}, and "
                        f"the computation reads {bench.inputs[number].shape}"
                    )
                bench.inputs[number] = array.astype(tensor.dtype)
        return bench

    # As a script sees it.

    def tune(
        self, tuning_options: TuningOptions, search_policy: Policy | None = None,
        adaptive_training: bool = False,
    ) -> None:  # fmt: skip
        """Search; what is found is in the log of the options' `RecordToFile`."""
        del adaptive_training  # the model learns after every batch
        (search_policy or SketchPolicy(self)).run(tuning_options)

    def apply_best(
        self, log_file: str | Path, include_compatible: bool = False,
        layout_rewrite_option: int | None = None,
    ) -> tuple[te.Schedule, list[te.Tensor]]:  # fmt: skip
        """Return (schedule, arguments) of the best in a log.  Raises TuningError without one."""
        del layout_rewrite_option
        check_compatible(include_compatible)
        return self.compute_dag.apply_steps_from_state(self._best(log_file))

    def print_best(self, log_file: str | Path, print_mode: str = "schedule") -> str:
        """Return the best of a log as Python that makes its schedule; "cuda": a GPU's source."""
        if print_mode == "schedule":
            return self.compute_dag.print_python_code_from_state(self._best(log_file))
        if print_mode != "cuda" or self.target.kind.is_cpu:
            raise TuningError(
                f"print_mode {print_mode!r} is neither 'schedule' nor, for GPUs, 'cuda': the "
                "source of the kernels, in the target's language"
            )
        library = build(*self.apply_best(log_file), target=self.target)
        return str(library.imported_modules[0].get_source())

    def _best(self, log_file: str | Path) -> StateObject:
        found = best_of(load_records(log_file), self.workload_key, self.target)
        if found is None:
            raise TuningError(
                f"{log_file} has no schedule of {self.workload_key} for {self.target.kind.name}: "
                f"tune it with measure_callbacks=[{RecordToFile.__name__}({str(log_file)!r})]"
            )
        return StateObject(self.compute_dag, found[0].state.transform_steps)

    def __repr__(self) -> str:
        return f"SearchTask({self.desc or self.workload_key})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.compute_dag, self.workload_key, str(self.target), self.desc)


class KernelDAG:
    """What a kernel of a model computes, as text."""

    def __init__(self, task: KernelTask) -> None:
        self.flop_ct = task.flop
        self._task = task

    def __str__(self) -> str:
        return astext(self._task.kernel.function)


class KernelSearchTask:
    """A kernel of a model; its candidates are the strategies that apply to it, with knobs."""

    layout_rewrite_option = 0
    task_input_names: tuple[str, ...] = ()

    def __init__(self, task: KernelTask, hardware_params: HardwareParams | None = None) -> None:
        self.kernel: KernelTask | None = task
        self.target, self.key, self.flop = task.target, task.key, task.flop
        self.desc = "_".join(task.kernel.layers) or task.name
        shapes = [list(t[1]) for t in task.args]
        self.workload_key = json.dumps([task.key, *shapes])
        self.compute_dag = KernelDAG(task)
        self.hardware_params = hardware_params or HardwareParams(target=self.target)
        self._task = task

    @property
    def space(self) -> Choices:
        """The candidates."""
        return self._task.space

    def bench(
        self, runner: Runner, folder: Path, rounds: int, builder: Builder | None = None
    ) -> Bench:
        """Return what measures candidates."""
        return self._task.bench(runner, folder, rounds, builder)

    def follow(self, policy: SketchPolicy, rules: Sequence[PreloadCustomSketchRule]) -> None:
        """Leave the rules of a policy aside, with a warning: a kernel has strategies, no stages."""
        del policy
        if rules:
            names = ", ".join(repr(rule.rule_name) for rule in rules)
            warnings.warn(
                f"the sketch rules {names} are not for a kernel of a model, whose candidates are "
                "the strategies for it; they are for a SearchTask of a te computation",
                UserWarning, stacklevel=4,
            )  # fmt: skip

    def config_of(self, candidate: Candidate) -> Any:
        """Return the state of a candidate: itself."""
        return KernelState(candidate)

    def candidate_of(self, config: object) -> Candidate | None:
        """Return the candidate of a logged state."""
        return getattr(config, "candidate", None)

    def tune(
        self, tuning_options: TuningOptions, search_policy: Policy | None = None,
        adaptive_training: bool = False,
    ) -> None:  # fmt: skip
        """Search; what is found is in the log of the options' `RecordToFile`."""
        del adaptive_training
        (search_policy or SketchPolicy(self)).run(tuning_options)

    def __repr__(self) -> str:
        return f"SearchTask({self.desc})"


class KernelState(NamedTuple):
    """A choice for a kernel of a model: it has no steps."""

    candidate: Candidate
    transform_steps: tuple[()] = ()


def create_task(
    func: Workload | str,
    args: Sequence[object],
    target: Target | str,
    target_host: Target | str | None = None,
    hardware_params: HardwareParams | None = None,
) -> SearchTask:
    """Return the task of a registered function with arguments (classic)."""
    return SearchTask(func=func, args=args, target=target, target_host=target_host,
                      hardware_params=hardware_params)  # fmt: skip


def auto_schedule(
    task: SearchTask, search_policy: Policy | None = None,
    tuning_options: TuningOptions | None = None,
) -> Any:  # fmt: skip
    """Search and return (schedule, arguments) of the best; needs a `RecordToFile` (classic)."""
    options = tuning_options or TuningOptions()
    files = [c.filename for c in options.measure_callbacks if isinstance(c, RecordToFile)]
    if not files:
        raise TuningError("auto_schedule keeps what it finds in a log: give a RecordToFile")
    task.tune(options, search_policy)
    return task.apply_best(files[0])


def _rebuilt(dag: ComputeDAG, key: str, target: str, desc: str) -> SearchTask:
    return SearchTask(compute_dag=dag, workload_key=key, target=target, desc=desc)


__all__ = [
    "TASK_INPUT_BUFFER_TABLE",
    "HardwareParams",
    "KernelSearchTask",
    "SearchTask",
    "TuningOptions",
    "auto_schedule",
    "create_task",
    "task_record",
]  # fmt: skip
