"""``slipway run``: run an artifact here or on a device."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from slipway.cli import console
from slipway.cli.connection import Connection
from slipway.cli.exit_codes import OptionError
from slipway.cli.options import (
    AsJson,
    Inputs,
    Number,
    Repeat,
    RpcHost,
    RpcKey,
    RpcPort,
    Threads,
    Timeout,
    Tracker,
    need_one_of,
)
from slipway.cli.outputs import need_output, need_output_folder
from slipway.deploy.model_file import MODEL_SUFFIXES
from slipway.deploy.tensors import largest_first, positions_of
from slipway.errors import (
    ArgumentValueError,
    ArtifactError,
    ExecutionError,
    FileError,
    did_you_mean,
)
from slipway.inspect.units import time_text
from slipway.runtime.arrays.numpy_file import read_numpy_file
from slipway.runtime.artifact import metadata_of
from slipway.runtime.devices import AnyDevice, Device
from slipway.toolchain.link import write_file

FILL_MODES = ("random", "zeros", "ones")


def run(
    artifact: Annotated[
        Path, typer.Argument(metavar="ARTIFACT", help="What `slipway compile` wrote: .tar or .so.")
    ],
    inputs: Inputs = None,
    outputs: Annotated[
        Path | None, typer.Option("--outputs", "-o", help="Where to write the outputs, as .npz.")
    ] = None,
    fill_mode: Annotated[
        str, typer.Option(help="What fills inputs that are not given: random, zeros or ones.")
    ] = "random",
    print_top: Annotated[
        int | None, typer.Option(min=1, help="Print the N largest values of each output.")
    ] = None,
    print_time: Annotated[
        bool, typer.Option("--print-time", help="Time the run, on the device itself.")
    ] = False,
    repeat: Repeat = 5,
    number: Number = 10,
    profile: Annotated[
        bool, typer.Option("--profile", help="Print the time of each layer.")
    ] = False,
    dump_tensors: Annotated[
        Path | None,
        typer.Option(help="A folder for what each layer computes, a .npy each, in order."),
    ] = None,
    threads: Threads = None,
    rpc_host: RpcHost = None,
    rpc_port: RpcPort = 9090,
    rpc_key: RpcKey = "",
    tracker: Tracker = None,
    timeout: Timeout = None,
    device: Annotated[
        str, typer.Option(help="The kind of device, cpu or cl; the artifact's, and no other.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Run ARTIFACT on this machine, or on a device with an RPC server.

    For example:

        slipway run mobilenet.tar --inputs cat.npz --outputs result.npz --print-top 5

        slipway run mobilenet.tar --rpc-host raspberrypi.local --print-time --repeat 10
    """
    need_one_of("--fill-mode", fill_mode, FILL_MODES)
    if "." in device or "@" in device:
        raise OptionError(
            f"--device {device}: that is a machine, and this option the kind of device on it, cpu "
            "or cl; a machine is named by --rpc-host HOST --rpc-port PORT"
        )
    if artifact.suffix.lower() in MODEL_SUFFIXES:
        made = shlex.quote(artifact.with_suffix(".tar").name)
        raise ArtifactError(
            f"{artifact} is a model file, and run takes what was compiled of it: "
            f"slipway compile {shlex.quote(str(artifact))} -o {made} && slipway run {made}"
        )
    need_output("--outputs", outputs, artifact, inputs)
    need_output_folder("--dump-tensors", dump_tensors)
    given = read_arrays(inputs) if inputs else {}
    connection = Connection(rpc_host, rpc_port, rpc_key, tracker, timeout)
    if threads is not None:
        connection.use_threads(threads)
    module = connection.graph_module(artifact)
    if device and Device(device).device_type != connection.device.device_type:
        raise ExecutionError(
            f"--device {device}: {artifact.name} was compiled for {connection.device}; compile it "
            "for that device, with --target"
        )
    described = metadata_of(artifact)
    said = {port["name"]: port for port in described.get("inputs", ())}
    for name, array in input_arrays(module, given, fill_mode, said).items():
        module.set_input(name, array)
    if dump_tensors is None:
        module.run()
    else:
        dump_layers(module, dump_tensors, described.get("operators", {}))
    results = [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
    names = module.get_output_names()
    if outputs is not None:
        stored = BytesIO()
        np.savez(stored, **{f"output_{i}": value for i, value in enumerate(results)})
        write_file(outputs, stored.getvalue())
    if as_json:
        found = run_values(results, print_top or 0)
        for one, name in zip(found["outputs"], names, strict=True):
            one["tensor"] = name
        if print_time:
            timing = module.module.time_evaluator(
                "run", connection.device, number=number, repeat=repeat
            )()
            found["seconds"] = [float(value) for value in timing.results]
        if profile:
            found["profile"] = profile_of(artifact, module, number, repeat).to_dict()
        print(json.dumps(found, indent=1))
        return
    labels = {port["name"]: port.get("labels", ()) for port in described.get("outputs", ())}
    print_results(results, [(name, labels.get(name, ())) for name in names], outputs, print_top)
    if print_time:
        print_times(module, connection.device, repeat, number)
    if profile:
        print_layers(artifact, module, number, repeat)


def print_results(
    results: Sequence[np.ndarray[Any, Any]], named: Sequence[tuple[str, Sequence[str]]],
    outputs: Path | None, print_top: int | None,
) -> None:  # fmt: skip
    """Print what was written where, or each output, and the largest values of each.

    `named` has the name of each, and what its classes are called.
    """
    if outputs is not None:
        console.out.print(f"{outputs}: {', '.join(describe_array(a) for a in results)}")
    elif print_top is None:
        for index, (value, (name, _)) in enumerate(zip(results, named, strict=True)):
            console.out.print(
                f"output_{index}, {console.plain(name)}: {describe_array(value)}", soft_wrap=True
            )
    if print_top is not None:
        for index, (value, (_, labels)) in enumerate(zip(results, named, strict=True)):
            print_largest(f"output_{index}", value, print_top, labels)


def dump_layers(module: Any, folder: Path, operators: Mapping[str, Any]) -> None:
    """Run the model, and write what each layer computes before its memory is used again.

    A file has the name of the model's node, where the artifact's `operators` know it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for number, (layer, function, value) in enumerate(module.layer_values()):
        known = operators.get(layer, {}).get("layer", "")
        name = re.sub(r"[^\w.-]+", "_", known or layer or function)[:80]
        stored = BytesIO()
        np.save(stored, value.numpy())
        write_file(folder / f"{number:03}_{name}.npy", stored.getvalue())
        count += 1
    console.err.print(f"{console.plain(folder)}: {count} tensors")


def print_layers(artifact: Path, module: Any, number: int, repeat: int) -> None:
    """Print the time of each operator under the names of the model's nodes."""
    from slipway.cli.inspect.profile_table import print_profile

    print_profile(profile_of(artifact, module, number, repeat), None, "Time of each layer")


def profile_of(artifact: Path, module: Any, number: int, repeat: int) -> Any:
    """Return the `ModelProfile` of a loaded artifact, without limits."""
    from slipway.inspect.profile import profile_model

    return profile_model(module, metadata_of(artifact), number=number, repeat=repeat)


def run_values(results: Sequence[Any], top: int) -> dict[str, Any]:
    """Return the outputs' types, ranges and `top` largest values with their flat index."""
    outputs = []
    for index, value in enumerate(results):
        flat = value.reshape(-1)
        order = largest_first(value, top)
        one = {
            "name": f"output_{index}", "dtype": str(value.dtype), "shape": list(value.shape),
            "min": number_text(flat.min()) if flat.size else None,
            "max": number_text(flat.max()) if flat.size else None,
        }  # fmt: skip
        if top:
            one["top"] = [[int(i), number_text(flat[i])] for i in order]
        outputs.append(one)
    return {"outputs": outputs}


def number_text(value: Any) -> float | str:
    """Return a number for JSON, which has no "nan" and no "inf": these become texts."""
    if np.asarray(value).dtype.kind in "biu":
        return int(value)
    number = float(value)
    return number if np.isfinite(number) else str(number)


def read_arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of the .npz at `path`; FileError when it is none."""
    try:
        stored = read_numpy_file(path)
    except ArgumentValueError as error:
        raise FileError(f"--inputs {path}: this is no .npz file ({error})") from error
    if isinstance(stored, np.ndarray):
        raise FileError(
            f"--inputs {path}: this is a single array (.npy); a .npz names each input: "
            "numpy.savez('x.npz', input_name=array)"
        )
    return stored


def input_arrays(
    module: Any, given: dict[str, Any], fill_mode: str, said: Mapping[str, Any]
) -> dict[str, Any]:
    """Return an array for each input of `module`: the given one, or one filled by `fill_mode`.

    `said` is what the artifact says of inputs by name.  Raises ExecutionError for a given name
    that the model does not have, or another dtype.
    """
    shapes, dtypes = module.get_input_info()
    for name in given:
        if name not in shapes:
            known = ", ".join(shapes)
            hint = did_you_mean(name, shapes)
            raise ExecutionError(f"the model has no input {name!r}; its inputs: {known}.{hint}")
        texts = said.get(name, {}).get("labels")
        if texts and given[name].dtype.kind in "US":
            given = {**given, name: positions_of(given[name], texts)}
        if (found := given[name].dtype) != np.dtype(dtypes[name]):
            raise ExecutionError(
                f"input {name!r} is of dtype {dtypes[name]}, and the file has {found}: convert the "
                "array before it is saved"
            )
    rng = np.random.default_rng(0)
    arrays = {}
    for name, shape in shapes.items():
        if name in given:
            arrays[name] = given[name]
            continue
        console.err.print(
            f"input {console.plain(repr(name))} is not given: filled with {fill_mode}"
        )
        high = said.get(name, {}).get("range", (0, 127))[1]
        arrays[name] = filled(tuple(shape), str(dtypes[name]), fill_mode, rng, int(high))
    return arrays


def filled(
    shape: tuple[int, ...], dtype: str, fill_mode: str, rng: np.random.Generator, high: int = 127
) -> Any:
    """Return an array of zeros, ones or random values: [0, 1) for floats, integers up to `high`."""
    if fill_mode == "zeros":
        return np.zeros(shape, dtype)
    if fill_mode == "ones":
        return np.ones(shape, dtype)
    if np.dtype(dtype).kind == "f":
        return rng.random(shape).astype(dtype)
    most = 1 if dtype == "bool" else min(high, 127)
    return rng.integers(0, most + 1, shape).astype(dtype)


def describe_array(array: Any) -> str:
    """Return one line on an array: dtype, shape, range."""
    span = f", {value_text(array.min())} to {value_text(array.max())}" if array.size else ""
    return f"{array.dtype} {tuple(array.shape)}{span}"


def value_text(value: Any) -> str:
    """Return a number as people read it: six digits of a real one, all of an integer."""
    return str(int(value)) if value.dtype.kind in "biu" else f"{value:g}"


def print_largest(name: str, array: Any, count: int, labels: Sequence[str] = ()) -> None:
    """Print the `count` largest values of `array` with their flat index, and what that is called.

    Labels are those of a sample's classes: they name nothing where there are several samples.
    """
    flat = array.reshape(-1)
    order = largest_first(array, count)
    if labels and len(labels) == flat.size:
        named = [(str(i), console.plain(labels[i]), value_text(flat[i])) for i in order]
        console.table(("index", "label", "value"), named, title=name, text_columns=2)
    else:
        rows = [(str(index), value_text(flat[index])) for index in order]
        console.table(("index", "value"), rows, title=name)


def print_times(module: Any, device: AnyDevice | None, repeat: int, number: int) -> None:
    """Print mean, median, minimum, maximum and deviation of the time of one run."""
    timing = module.module.time_evaluator("run", device, number=number, repeat=repeat)()
    values = (timing.mean, timing.median, timing.min, timing.max, timing.std)
    console.table(
        ("per run", "mean", "median", "min", "max", "std"),
        [(f"{repeat} x {number}", *(time_text(value) for value in values))],
    )
