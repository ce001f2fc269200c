"""Relay's virtual machine (classic): an executable, saved and loaded, and what runs it.

    exe = relay.vm.compile(mod, "llvm", params)
    code, lib = exe.save()
    lib.export_library("model.so")
    ...
    exe = Executable.load_exec(code, tvm.runtime.load_module("model.so"))
    result = VirtualMachine(exe, tvm.cpu()).invoke("main", x)

There are no instructions to interpret: branches and loops are kernels of the library, and `code`
says how "main" takes its inputs and nests its results.  A library of a device's session runs there.

A model of which each size is compiled when it is met (`relay.Any()`) is the code, constants and
all: the process that loads it compiles it, and its library is there for scripts alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from slipway.classic.names import REGIONS
from slipway.classic.placeholders import placeholder_of
from slipway.errors import ArtifactError, ExecutionError, did_you_mean
from slipway.lazy import Late
from slipway.runtime.container import tuple_object
from slipway.runtime.devices import AnyDevice, Device, cpu
from slipway.runtime.function_table import FunctionTable
from slipway.runtime.graph.graph_executor import GraphModule, timed_calls
from slipway.runtime.ndarray import array
from slipway.runtime.timing import BenchmarkResult

FORMAT = 1  # of the bytes that `Executable.save` gives
FORMAT_OF_MODELS = 2  # of those that hold a model
Nested = Any  # the number of an output, or a list or tuple of such


def inputs_by_name(
    names: Sequence[str], args: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all inputs by name.  Raises ExecutionError for a missing one.

    Names beyond the inputs are let pass where none is missing: scripts give the parameters that an
    importer returned, and the model has them as constants.
    """
    if len(args) > len(names):
        raise ExecutionError(f"got {len(args)} inputs, but there are {len(names)}")
    given = {**dict(zip(names, args, strict=False)), **named}
    for name in given:
        if name not in names and not given.keys() >= set(names):
            raise ExecutionError(
                f"there is no input {name!r}; the inputs are {', '.join(names)}."
                f"{did_you_mean(name, names)}"
            )
    for name in names:
        if name not in given:
            raise ExecutionError(f"the input {name!r} is missing")
    return {name: given[name] for name in names}


class Compiling(Late, package="slipway.runtime"):
    """What compiles a model that was saved."""

    executable_of: Callable[[str, str, Any], Executable]


COMPILING = Compiling()


class OpenModel(Protocol):
    """A model that is compiled where it runs."""

    target: str

    def text(self) -> str:
        """Return the model, constants and all."""
        ...

    def library(self) -> Any:
        """Return a library of the target's with nothing in it."""
        ...


class Executable:
    """A compiled model: `lib`, the inputs of its "main" in order, and how its results are nested.

    Models of which each size is compiled when it is met (`relay.Any()`), and functions that call
    themselves, have nothing in their library: they give `run` in its place, and `model`, of
    which `save` writes the text.
    """

    def __init__(
        self,
        lib: Any,
        inputs: Sequence[str],
        result: Nested,
        run: Callable[..., Any] | None = None,
        model: OpenModel | None = None,
    ) -> None:
        self._lib, self._inputs, self._result, self._run = lib, tuple(inputs), result, run
        self._model = model

    def on(self, devices: Sequence[Any]) -> Callable[..., Any]:
        """Return what runs "main" on these devices, over its inputs in order or by name."""
        if self._run is not None:
            if any(one.device_type != 1 for one in devices):
                raise ExecutionError(
                    f"{self._whole()}, which happens on this process's cpu(0), not on {devices[0]}"
                )
            return self._run
        module = self.graph_on(devices)

        def run(*args: Any, **named: Any) -> Any:
            for name, value in inputs_by_name(self._inputs, args, named).items():
                module.set_input(name, value)
            module.run()
            return _nested(self._result, lambda number: array(module.get_output(number).numpy()))

        return run

    def graph_on(self, devices: Sequence[Any]) -> GraphModule:
        """Return a graph executor of the model on these devices."""
        return GraphModule(self._lib["default"](*devices))

    @property
    def is_open(self) -> bool:
        """Whether there are no kernels before it is called."""
        return self._run is not None

    def _whole(self) -> str:
        return (
            "this model has sizes that are not known before it runs, relay.Any(), or a function "
            "that calls itself: it is compiled or run where it is called"
        )

    @property
    def lib(self) -> Any:
        """The library, for `export_library`."""
        if self._lib is None and self._model is not None:
            self._lib = self._model.library()
        return self._lib

    mod = module = lib

    def save(self) -> tuple[bytearray, Any]:
        """Return the code, as bytes to write to a file, and the library, for `export_library`."""
        described = {"slipway_vm": FORMAT, "inputs": list(self._inputs), "result": self._result}
        if self._model is not None:
            model = {"model": self._model.text(), "target": self._model.target}
            described |= {"slipway_vm": FORMAT_OF_MODELS, **model}
        return bytearray(json.dumps(described).encode()), self.lib

    @staticmethod
    def load_exec(bytecode: bytes | bytearray | str, lib: Any) -> Executable:
        """Return the executable of what `save` gave, `lib` being what `load_module` returns.

        Raises ArtifactError for bytes that are none, or belong to another library, and for a
        model where there is no compiler.
        """
        try:
            found = json.loads(bytes(bytecode) if isinstance(bytecode, bytearray) else bytecode)
            version, inputs, result = found["slipway_vm"], found["inputs"], found["result"]
            numbers = _numbers(result)
            is_one = all(isinstance(name, str) for name in inputs) and numbers == [
                *range(len(numbers))
            ]
        except (ValueError, TypeError, KeyError, RecursionError):
            is_one, version = False, None
        if not is_one:
            raise ArtifactError(
                "load_exec: the code is not what Executable.save gave; read it as bytes, and give "
                "it with the library that was exported beside it"
            )
        if version not in (FORMAT, FORMAT_OF_MODELS):
            raise ArtifactError(
                f"load_exec: the code has format {version}, this version reads {FORMAT} and "
                f"{FORMAT_OF_MODELS}: save the executable again"
            )
        if version == FORMAT:
            return Executable(lib, inputs, result)
        model, target = found.get("model"), found.get("target")
        if not isinstance(model, str) or not isinstance(target, str):
            raise ArtifactError("load_exec: the code is damaged: it holds no model for a target")
        try:
            return COMPILING.executable_of(model, target, lib)
        except ImportError as error:
            raise ArtifactError(
                "load_exec: the code is a model that is compiled where it runs, and there is no "
                f"compiler here ({error}). Give its open dimensions names and ranges, as "
                'relay.Dim("n", 1, 8), and save it again'
            ) from error

    @property
    def globals(self) -> list[str]:
        """The functions that can be invoked."""
        return ["main"]

    @property
    def primitive_ops(self) -> list[str]:
        """The kernels, in the order in which the graph has them."""
        names = [n["attrs"]["func_name"] for n in self._nodes() if n["op"] == "tvm_op"]
        return list(dict.fromkeys(names))

    def _nodes(self) -> list[Any]:
        """Return the nodes of the graph; none where it is of sizes that are not known."""
        if self._run is not None:
            return []
        nodes: list[Any] = json.loads(self.lib.get_graph_json())["nodes"]
        return nodes

    @property
    def bytecode(self) -> str:
        """What is run, one kernel a line."""
        nodes = self._nodes()
        called = [n for n in nodes if n["op"] == "tvm_op"]
        return "\n".join(
            f"{n['attrs']['func_name']}({', '.join(nodes[i[0]]['name'] for i in n['inputs'])})"
            for n in called
        )

    def as_text(self) -> str:
        """Return what `bytecode` and `stats` say."""
        return f"{self.stats}\n{self.bytecode}"

    @property
    def stats(self) -> str:
        """How many inputs, kernels and outputs there are."""
        if self._run is not None:
            return f"main: {len(self._inputs)} inputs, compiled when it is called"
        counts = len(self._inputs), len(self.primitive_ops), len(_numbers(self._result))
        return "main: {} inputs, {} kernels, {} outputs".format(*counts)

    def get_function_params(self, func_name: str) -> list[str]:
        """Return the names of the inputs of "main", in order."""
        _check_main(func_name)
        return list(self._inputs)


def _nested(result: Nested, take: Callable[[int], Any]) -> Any:
    if isinstance(result, list | tuple):
        return tuple_object(_nested(r, take) for r in result)
    return take(result)


def _numbers(result: Nested) -> list[int]:
    """Return the numbers of the outputs in the order in which results nest them."""
    if isinstance(result, list | tuple):
        return [number for part in result for number in _numbers(part)]
    if type(result) is not int:
        raise TypeError("no number of an output")
    return [result]


def _of_library(lib: Any, devices: Sequence[Any]) -> Executable:
    """Return the executable of a library that holds a model, as `export_library` wrote it."""
    if not isinstance(lib, FunctionTable) or not lib.implements_function("default"):
        raise ExecutionError(
            "VirtualMachine takes what relay.vm.compile or Executable.load_exec returns, or a "
            f"library of a model, not {type(lib).__name__}"
        )
    found: Any = lib  # with functions by name, as all libraries
    graph = GraphModule(found["default"](*devices))
    count = graph.get_num_outputs()
    return Executable(lib, list(graph.get_input_info()[0]), 0 if count == 1 else [*range(count)])


class VirtualMachine:
    """An executable on devices; results are NDArrays, or ADTs (tuples) of them for tuples.

    Given a library of a model, here or on a device of its session, results are not nested.
    """

    NAIVE_ALLOCATOR, POOLED_ALLOCATOR = 1, 2  # of TVM; memory is planned when the model is compiled

    def __init__(
        self, exe: Executable | FunctionTable, device: AnyDevice | None = None,
        memory_cfg: Any = None, *, ctx: AnyDevice | None = None,
    ) -> None:  # fmt: skip
        del memory_cfg  # of TVM's allocators
        device = ctx if device is None else device  # `ctx` is its name in TVM 0.7
        devices = list(device) if isinstance(device, list | tuple) else [device]
        devices = [cpu(0) if one is None else one for one in devices]
        for one in devices:
            if not hasattr(one, "device_type"):
                raise ExecutionError(f"VirtualMachine takes a device, as cpu(0), not {one!r}")
            if isinstance(one, Device) and not one.exist:
                raise ExecutionError(
                    f"there is no {one} here: a VirtualMachine runs on devices of this process, or "
                    "of the session that has loaded the library"
                )
        if not isinstance(exe, Executable):
            exe = _of_library(exe, devices)
        self.exe, self.devices = exe, devices
        self._run = exe.on(devices)
        self._inputs = exe.get_function_params("main")
        self._given: tuple[tuple[Any, ...], dict[str, Any]] | None = None
        self._result: Any = None

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Set all inputs of `func_name`, which is "main", for the next `run` or `invoke`."""
        _check_main(func_name)
        self._given = args, kwargs

    def set_one_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Set one input, by its name or as its number or name and its value."""
        _check_main(func_name)
        given = dict(kwargs)
        if len(args) == 2:
            key = args[0]
            given[self._inputs[key] if isinstance(key, int) else key] = args[1]
        if len(given) != 1 or len(args) not in (0, 2):
            raise ExecutionError("set_one_input takes one input: a name or number and a value")
        args, known = self._given or ((), {})
        inputs = dict(zip(self._inputs, args, strict=False))
        self._given = (), {**inputs, **known, **given}

    def get_input_index(self, input_name: str, func_name: str = "main") -> int:
        """Return the place of an input, or -1 for a name that is none."""
        _check_main(func_name)
        return self._inputs.index(input_name) if input_name in self._inputs else -1

    def invoke(self, func_name: str, *args: Any, **kwargs: Any) -> Any:
        """Run "main" over these inputs, or over those of `set_input`, and return its result."""
        _check_main(func_name)
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        positional, named = self._given or ((), {})
        self._result = self._run(*positional, **named)
        return self._result

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run "main"; see `invoke`."""
        return self.invoke("main", *args, **kwargs)

    def invoke_stateful(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Run "main", for `get_outputs` to give the results."""
        self.invoke(func_name, *args, **kwargs)

    def benchmark(
        self,
        device: object,
        *args: Any,
        func_name: str = "main",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: int | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        **kwargs: Any,
    ) -> BenchmarkResult:
        """Measure whole runs over these inputs, or over those of `set_input`, in seconds per run.

        Times are those seen from here.
        Inputs are moved in and results out in each, `end_to_end` or not; `device` is that which
        the machine has.
        """
        del device, end_to_end
        _check_main(func_name)
        given, named = (args, kwargs) if args or kwargs else self._given or ((), {})
        self._run(*given, **named)  # what is compiled when it is met is no part of the times
        options = {
            "number": number, "repeat": repeat, "min_repeat_ms": min_repeat_ms or 0,
            "limit_zero_time_iterations": limit_zero_time_iterations,
            "cooldown_interval_ms": cooldown_interval_ms,
            "repeats_to_cooldown": repeats_to_cooldown,
        }  # fmt: skip

        def once() -> None:
            self._run(*given, **named)

        return timed_calls(once, options)

    def get_outputs(self) -> list[Any]:
        """Return the results of the last run as a list."""
        if self._result is None:
            raise ExecutionError("there are no outputs yet: call run first")
        return list(self._result) if isinstance(self._result, tuple) else [self._result]


def _check_main(name: str) -> None:
    if name != "main":
        raise ExecutionError(f"there is no function {name!r}: a VirtualMachine runs 'main'")


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, REGIONS)
