"""The graph executor: one instance of a compiled model, fed with inputs and run.

The work is done in C, here or on a remote device; this is its classic facade.  The functions it
calls (`set_input`, `run`, ...) are described in ``crt/include/slipway/graph_module.h``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.arguments import array_of
from slipway.errors import ArgumentTypeError, ExecutionError, SlipwayError
from slipway.runtime.container import ShapeTuple, String
from slipway.runtime.devices import AnyDevice, Device
from slipway.runtime.graph.graph_format import GraphTables
from slipway.runtime.graph.input_values import IN_MODEL, converted
from slipway.runtime.libraries.library import FUNCTION_PREFIX
from slipway.runtime.libraries.native_library import native_runtime
from slipway.runtime.libraries.native_module import NativeModule
from slipway.runtime.module import LibraryModule, Module
from slipway.runtime.ndarray import NDArray, array
from slipway.runtime.packed_func import to_ffi_function
from slipway.runtime.params import read_params, save_param_dict
from slipway.runtime.timing import BenchmarkResult


def create_native(tables: GraphTables | bytes, library: Module, *devices: Device) -> NativeModule:
    """Make a graph executor in C that calls the compiled functions of `library`.

    Its tensors lie on `devices`, one for each kind that the graph has parts for; without any, on
    the CPU.
    """
    blob = tables if isinstance(tables, bytes) else tables.to_binary()
    parsed = tables if isinstance(tables, GraphTables) else GraphTables.from_binary(tables)
    device_ids = [dev.__dlpack_device__() for dev in devices] or [(1, 0)]
    args: list[Any] = [number for position in device_ids for number in position]
    kept: list[Any] = [library]
    for name in parsed.functions():
        code = library.library if isinstance(library, LibraryModule) else None
        address = code.address(FUNCTION_PREFIX + name) if code is not None else None
        if address:
            args += [name, address]
        else:
            function = to_ffi_function(library.get_function(name, query_imports=True))
            kept.append(function)
            args += [name, function]
    handle = native_runtime().packed("graph_create")(blob, *args)
    return NativeModule(handle, keep_alive=kept)


def share_params(made: NativeModule, tables: GraphTables, params: Mapping[str, NDArray]) -> None:
    """Let an executor read parameters where they lie; those it has no input for are left out."""
    share = made["share_param"]
    inputs = {tables.nodes[number].name for number in tables.inputs}
    for name, values in params.items():
        if name in inputs:  # else optimisation removed it: classic behaviour
            share(name, values)


def _is_plain(value: Any) -> bool:
    """Return whether C takes a value as it is: an array of this process, or one of NumPy's own."""
    if type(value) is np.ndarray:
        return value.flags.carray and value.dtype.isbuiltin == 1 and value.dtype.kind in "fiub"
    return type(value) is NDArray


class GraphModule:
    """A model ready to run.

    Parameters: the graph module that a factory returned (``lib["default"](dev)``), local or remote.
    Attributes: `module`, whose functions and `time_evaluator` may be used directly.
    """

    module: Any

    def __init__(self, module: Any) -> None:
        if isinstance(module, GraphModule):
            module = module.module
        if not hasattr(module, "get_function"):
            raise ArgumentTypeError(
                f"GraphModule takes what lib['default'](dev) returns, not {type(module).__name__}."
            )
        self.module = module
        self._is_local = isinstance(module, Module)
        self._takes_inputs = isinstance(module, NativeModule) and module.type_key == "graph"
        self._set_input = module["set_input"]
        self._run = module["run"]
        self._get_output = module["get_output"]
        self._get_input = module["get_input"]
        self._types: dict[str, tuple[tuple[int, ...], str, str]] | None = None
        self._shapes: frozenset[tuple[int, ...]] = frozenset()  # of `_types`
        self._remote_inputs: dict[str | int, Any] = {}
        self._kept: dict[Any, NDArray] = {}

    # Inputs.

    def set_input(self, key: str | int | None = None, value: Any = None, **params: Any) -> None:
        """Set one input by name or number, and any number of them by keyword.

        Values are NDArrays or anything NumPy takes; Python lists and numbers get the input's dtype,
        arrays of another dtype are converted where nothing is lost, with a warning.  Raises
        ExecutionError for a name that the model lacks, another shape, and values that do not fit.
        """
        if key is not None:
            if value is None:
                raise ExecutionError(f"set_input({key!r}): the value is missing.")
            self._set_one(key, value)
        if len(params) > 1:
            # Larger ones first, as classic TVM does: they find the memory least fragmented.
            params = dict(sorted(params.items(), key=lambda item: -math.prod(np.shape(item[1]))))
        for name, given in params.items():
            self._set_one(name, given)

    def _set_one(self, key: str | int, value: Any) -> None:
        if self._is_local and _is_plain(value) and self._has_shape(value):
            with suppress(ExecutionError):  # what C refuses is looked into below
                self._set_input(key, value)
                return
        if not hasattr(value, "dtype"):
            known = self._input_types()
            name = list(known)[key] if isinstance(key, int) and key < len(known) else str(key)
            value = array_of(name, value, known[name][1] if name in known else None)
        if not self._has_shape(value):
            # Open dimensions have other sizes from now on, or it is refused.
            self._types, self._shapes = None, frozenset()
        if self._is_local:
            given = value if isinstance(value, NDArray) else array(value)
            try:
                self._set_input(key, given)
            except ExecutionError:  # asked only now: most values have the input's dtype and shape
                wanted = self._input_types().get(self._name_of(key), ((),))[0]
                if _differ_by_ones(given.shape, wanted):
                    self._set_one(key, np.reshape(given.numpy(), wanted))
                    return
                dtype = self._dtype_of(key)
                if dtype in ("", given.dtype):
                    raise
                self._set_input(key, converted(f"set_input: {str(key)!r}", given, dtype, IN_MODEL))
        elif hasattr(value, "session"):
            try:
                self._set_input(key, value)
            except SlipwayError:
                target = self._get_input(key)
                if not _differ_by_ones(value.shape, target.shape):
                    raise
                target.copyfrom(np.reshape(value.numpy(), tuple(target.shape)))
        else:
            self._send_input(key, value)

    def _has_shape(self, value: Any) -> bool:
        """Return whether an input may have the shape of `value`, as far as that was asked for."""
        return not self._shapes or np.shape(value) in self._shapes

    def _dtype_of(self, key: str | int) -> str:
        """Return the dtype of an input; "" where the model has none of that name or number."""
        known = self._input_types().get(self._name_of(key))
        return "" if known is None else known[1]

    def _name_of(self, key: str | int) -> str:
        """Return the name of an input given by name or number; "" for a number that none has."""
        if isinstance(key, str):
            return key
        known = list(self._input_types())
        return known[key] if key < len(known) else ""

    def _send_input(self, key: str | int, value: Any) -> None:
        """Write into a remote model's input where it lies: one trip, and no second tensor."""
        target = self._remote_inputs.get(key)
        if target is None:
            target = self._remote_inputs[key] = self._get_input(key)
        if _differ_by_ones(value.shape, target.shape):
            value = np.reshape(value, tuple(target.shape))
        given = (tuple(value.shape), dtypes.canonical(value.dtype))
        if given[0] != tuple(target.shape) and self._is_open():
            self._remote_inputs.clear()  # they have other shapes from now on
            whole = target.device.empty(*given).copyfrom(np.asarray(value, order="C"))
            self._set_input(key, whole)
            return
        if given[0] == tuple(target.shape) and given[1] != target.dtype:
            value = converted(f"set_input: {str(key)!r}", value, target.dtype, IN_MODEL)
            given = (given[0], value.dtype)
        if given != (tuple(target.shape), target.dtype):
            raise ExecutionError(
                f"set_input: {key!r} has shape {tuple(target.shape)} and dtype {target.dtype} in "
                f"this model, got {given[0]} and {given[1]}. Convert it first, or compile the "
                "model for that shape."
            )
        target.copyfrom(value)

    def _is_open(self) -> bool:
        """Return whether sizes of the model are known only when it runs."""
        try:
            return int(self.module["get_num_open_sizes"]()) > 0
        except (ExecutionError, AttributeError):  # an older or small runtime without such models
            return False

    def set_input_zero_copy(
        self, key: str | int | None = None, value: NDArray | None = None, **params: NDArray
    ) -> None:
        """Let inputs use the memory of the values, which must stay until it is replaced.

        One by name or number, and any number of them by keyword.
        """
        if key is not None:
            self._kept[key] = self._set_and_kept("set_input_zero_copy", key, value)
        for name, given in params.items():
            self.set_input_zero_copy(name, given)

    def set_output_zero_copy(self, index: int, value: NDArray) -> None:
        """Let an output be written into `value`, which must stay until it is replaced.

        An output that is a reshape of a layer's result is written there too, and so is what other
        layers read of it.  `run` refuses memory that an input or another output was given.
        """
        self._kept["output", index] = self._set_and_kept("set_output_zero_copy", index, value)

    def _set_and_kept(self, function: str, key: str | int, value: Any) -> NDArray:
        is_taken = isinstance(value, NDArray) if self._is_local else hasattr(value, "session")
        if not is_taken:
            where = (
                "this process: nd.array(x)" if self._is_local else "its device: nd.array(x, dev)"
            )
            raise ExecutionError(
                f"{function}: the model keeps the memory that it is given, so it takes a tensor of "
                f"{where}, not a {type(value).__name__}."
            )
        self.module[function](key, value)
        return value  # type: ignore[no-any-return]

    def load_params(self, params_bytes: bytes | bytearray) -> None:
        """Set parameters from the bytes of ``save_param_dict``."""
        if not isinstance(params_bytes, bytes | bytearray | memoryview):
            raise ArgumentTypeError(
                f"load_params takes the bytes of save_param_dict, not {params_bytes!r:.80}"
            )
        self.module["load_params"](self._blob(bytes(params_bytes)))
        self._types = None

    def _blob(self, content: bytes) -> Any:
        """Return bytes as the module's functions take them: to a device they go as a tensor."""
        if self._is_local:
            return content
        values = np.frombuffer(content, np.uint8)
        return self._get_input(0).device.empty(values.shape, "uint8").copyfrom(values)

    def share_params(self, other: GraphModule, params_bytes: bytes | bytearray = b"") -> None:
        """Take the parameters of another instance of the same model.

        All of them: `params_bytes`, whose names say in TVM which to take, must name each.
        """
        if not isinstance(other.module, NativeModule) or not self._is_local:
            raise ExecutionError("share_params works between models in this process only.")
        if params_bytes:
            named, own = read_params(bytes(params_bytes)), other.get_input_info()[0]
            every = [other.get_input_name(i) for i in range(other.get_num_inputs())]
            left_out = [name for name in every if name not in named and name not in own]
            if left_out:
                raise ExecutionError(
                    f"share_params takes all parameters of the other model, and params_bytes does "
                    f"not name {', '.join(map(repr, left_out[:3]))}: share all, then give this "
                    "model's own with load_params or set_input."
                )
        self.module["share_params"]._function(other.module._handle)

    # Running.

    def run(self, **inputs: Any) -> None:
        """Run the model, after setting `inputs` by name."""
        if inputs and not self._runs_on(inputs):
            self.set_input(**inputs)
            self._run()
        elif not inputs:
            self._run()

    def _runs_on(self, inputs: Mapping[str, Any]) -> bool:
        """Run in one call of C, if it takes the inputs as they are; else nothing has run."""
        if not self._takes_inputs:
            return False
        given: list[Any] = []
        for name, value in inputs.items():
            if not (_is_plain(value) and self._has_shape(value)):
                return False
            given += (name, value)
        try:
            self._run(*given)
        except ExecutionError as error:
            if str(error).startswith("set_input: "):
                return False  # what C refuses is looked into one by one
            raise
        return True

    def get_output(self, index: str | int, out: NDArray | None = None) -> NDArray:
        """Return an output by name or number: a view that the next run overwrites.

        With `out`, it is copied there instead.
        """
        if out is not None:
            self._get_output(index, out)
            return out
        result: NDArray = self._get_output(index)
        return result

    def get_input(self, index: str | int, out: NDArray | None = None) -> NDArray:
        """Return an input by name or number, as `get_output` does."""
        if out is not None:
            self._get_input(index, out)
            return out
        result: NDArray = self._get_input(index)
        return result

    def debug_get_output(self, node: str | int, out: NDArray | None = None) -> NDArray:
        """Return what a layer last computed; its memory may have been used again since."""
        found = self.module["debug_get_output"]
        if out is not None:
            found(node, out)
            return out
        result: NDArray = found(node)
        return result

    def layer_values(self) -> Iterator[tuple[str, str, NDArray]]:
        """Run the model layer by layer; yield (layer, function, what it computes) of each.

        Its memory is used again later: copy what is to be kept before the next one.
        """
        for index, (layer, function) in enumerate(self.node_names()):
            if function:
                self.module["run_node"](index)
                yield layer, function, self.debug_get_output(index)

    # States: inputs that the model itself writes, and that live between runs.

    def reset(self) -> None:
        """Let the states hold again what they held at first."""
        self.module["reset_states"]()

    def get_state_info(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Return (shape, dtype) by name of the states."""
        every = self._input_types().items()
        return {n: (found[0], found[1]) for n, found in every if found[2] == "state"}

    def save_state(self) -> bytes:
        """Return what the states hold, as ``save_param_dict`` writes it."""
        states = {name: self._get_input(name).numpy() for name in self.get_state_info()}
        return bytes(save_param_dict(states))

    def load_state(self, saved: bytes | bytearray) -> None:
        """Let the states hold what `save_state` returned, here or of another executor.

        Raises ArtifactError for bytes that are damaged, ExecutionError for those of another model;
        the states hold what they held then.
        """
        values, own = read_params(bytes(saved)), self.get_state_info()
        if set(values) != set(own):
            listed = (", ".join(map(repr, names)) or "none" for names in (values, own))
            raise ExecutionError(
                "load_state: what was saved has the states {}, and this model has {}: save them "
                "of the same model".format(*listed)
            )
        held: dict[str, Any] = {}
        try:
            for name, value in values.items():
                held[name] = self._get_input(name).numpy()
                self.set_input(name, value)
        except SlipwayError:
            self.set_input(**held)
            raise

    @property
    def has_given_memory(self) -> bool:
        """Return whether an input or output lies in memory of the caller's, of zero-copy calls."""
        return bool(self._kept)

    # What the model looks like.

    def get_num_inputs(self) -> int:
        """Return the number of inputs, parameters included."""
        return int(self.module["get_num_inputs"]())

    def get_num_outputs(self) -> int:
        """Return the number of outputs."""
        return int(self.module["get_num_outputs"]())

    def get_input_name(self, index: int) -> str:
        """Return the name of an input by its number.  Raises IndexError if there is none."""
        return str(self.module["get_input_name"](index))

    def get_input_index(self, name: str) -> int:
        """Return the number of an input; -1 if there is none of that name."""
        return int(self.module["get_input_index"](name))

    def get_input_info(self) -> tuple[dict[str, ShapeTuple], dict[str, String]]:
        """Return (shapes, dtypes) by name of the inputs that are not parameters."""
        own = {n: t for n, t in self._input_types().items() if t[2] == "input"}
        shapes = {name: ShapeTuple(found[0]) for name, found in own.items()}
        return shapes, {name: String(found[1]) for name, found in own.items()}

    def get_output_info(self) -> list[tuple[tuple[int, ...], str]]:
        """Return (shape, dtype) of each output."""
        lines = _read_lines(str(self.module["get_output_info"]()))
        return [(shape, dtype) for _, shape, dtype, _ in lines]

    def get_output_names(self) -> list[str]:
        """Return what the model calls its outputs, in order."""
        return [name for name, *_ in _read_lines(str(self.module["get_output_info"]()))]

    def node_names(self) -> list[tuple[str, str]]:
        """Return (layer, function) of every step in order; function "" for inputs."""
        text = str(self.module["get_node_info"]())
        return [(line.split("\t")[0], line.split("\t")[1]) for line in _lines(text)]

    def _input_types(self) -> dict[str, tuple[tuple[int, ...], str, str]]:
        if self._types is None:
            self._types = _parse_lines(str(self.module["get_input_info"]()))
            self._shapes = frozenset(found[0] for found in self._types.values())
        return self._types

    # Timing.

    def profile(
        self, number: int = 10, repeat: int = 3, **inputs: Any
    ) -> list[tuple[str, str, float]]:
        """Measure every layer: (layer, function, seconds), in order, inputs left out.

        The time of a layer is the minimum of `repeat` means over `number` runs each.
        """
        self.set_input(**inputs)
        names = self.node_names()
        blob = self.module["profile"](number, repeat)
        times = np.frombuffer(blob, dtype="<f8").reshape(repeat, len(names)).min(axis=0)
        return [
            (layer, function, float(seconds))
            for (layer, function), seconds in zip(names, times, strict=True)
            if function
        ]

    def benchmark(
        self,
        device: AnyDevice | None,
        func_name: str = "run",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        **inputs: Any,
    ) -> BenchmarkResult:
        """Measure whole runs; with `end_to_end` also moving inputs in and outputs out.

        Times are in seconds per run, measured on the device (`end_to_end`: seen from here).
        """
        options: dict[str, Any] = {
            "repeat": repeat,
            "number": number,
            "min_repeat_ms": min_repeat_ms,
            "limit_zero_time_iterations": limit_zero_time_iterations,
            "cooldown_interval_ms": cooldown_interval_ms,
            "repeats_to_cooldown": repeats_to_cooldown,
        }
        if end_to_end:
            return self._benchmark_end_to_end(options, inputs)
        self.set_input(**inputs)
        measured: BenchmarkResult = self.module.time_evaluator(func_name, device, **options)()
        return measured

    def _benchmark_end_to_end(
        self, options: Mapping[str, int], inputs: Mapping[str, Any]
    ) -> BenchmarkResult:
        outputs = range(self.get_num_outputs())

        def whole() -> None:
            self.set_input(**inputs)
            self._run()
            for index in outputs:
                self._get_output(index).numpy()

        return timed_calls(whole, options)

    def __getitem__(self, name: str) -> Any:
        return self.module[name]


def timed_calls(function: Callable[[], None], options: Mapping[str, int]) -> BenchmarkResult:
    """Return the times of calls in seconds; `options` are all that `time_evaluator` takes."""
    order = (
        "number", "repeat", "min_repeat_ms", "limit_zero_time_iterations", "cooldown_interval_ms",
        "repeats_to_cooldown",
    )  # fmt: skip
    evaluate = native_runtime().packed("time_evaluate")
    blob = bytes(evaluate(to_ffi_function(function), *(options[n] for n in order), None))
    return BenchmarkResult(struct.unpack(f"<{len(blob) // 8}d", blob))


def create(
    graph_json: str,
    lib: Any,
    device: AnyDevice | Sequence[AnyDevice] | None = None,
    *,
    ctx: AnyDevice | None = None,
) -> GraphModule:
    """Make an executor from a graph's JSON and the library with its functions, on `device`.

    A model for several kinds of device takes a list with one of each; `cpu(0)` need not be there.
    `lib` may be a remote module: the executor is then made on its device; firmware makes that of
    the graph it was built with.  One that carries a model's parameters gives them to the executor.
    """
    chosen = ctx if device is None else device  # `ctx` is its name in TVM 0.6
    if chosen is None:
        raise ArgumentTypeError("create needs the device that the library is on: cpu(0), say")
    devices = list(chosen) if isinstance(chosen, Sequence) else [chosen]
    tables = GraphTables.from_json(graph_json)
    dev = devices[0]
    if isinstance(dev, Device):
        for one in devices:
            if isinstance(one, Device):
                one.check()
        made = create_native(tables, lib, *(devices if tables.arenas else ()))
        carried = lib.shared_params() if isinstance(lib, Module) else None
        if carried:
            share_params(made, tables, carried)
        return GraphModule(made)
    if isinstance(lib, Module):
        raise ExecutionError(
            f"the library is in this process and {dev} is not: load the library on the device "
            "first, with remote.upload and remote.load_module."
        )
    try:
        make = lib["__slipway_graph_create"]
    except AttributeError:  # firmware, whose model's graph is part of it
        return GraphModule(lib["default"]())
    blob = np.frombuffer(tables.to_binary(), np.uint8)
    sent = dev.host.empty(blob.shape, "uint8").copyfrom(blob)
    return GraphModule(make(sent, *devices) if tables.arenas else make(sent))


def _lines(text: str) -> list[str]:
    """Return the lines of a list of names, which may hold what else ends lines in Unicode."""
    return [line for line in text.split("\n") if line]


def _read_lines(text: str) -> list[tuple[str, tuple[int, ...], str, str]]:
    """Parse "name<TAB>dtype<TAB>1,3<TAB>role" lines into (name, shape, dtype, role)."""
    parsed = []
    for line in _lines(text):
        name, dtype, shape, role = line.split("\t")
        extents = tuple(int(extent) for extent in shape.split(",") if extent)
        parsed.append((name, extents, dtype, role))
    return parsed


def _parse_lines(text: str) -> dict[str, tuple[tuple[int, ...], str, str]]:
    """Return the same as {name: (shape, dtype, role)}, where names occur once."""
    return {name: tuple(found) for name, *found in _read_lines(text)}  # type: ignore[misc]


def _differ_by_ones(given: Sequence[int], wanted: Sequence[int]) -> bool:
    """Return whether two shapes hold the same elements but for axes of one, as (2,) and (1, 2)."""
    own, other = tuple(given), tuple(wanted)
    return own != other and [n for n in own if n != 1] == [n for n in other if n != 1]
