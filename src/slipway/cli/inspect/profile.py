"""``slipway profile``: what each operator of a model takes on a device, beside what it must."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from slipway.cli import console
from slipway.cli.completions import target_names
from slipway.cli.connection import Connection, check_can_run
from slipway.cli.inspect.profile_table import print_profile
from slipway.cli.model_file import ModelOptions
from slipway.cli.options import (
    Bindings,
    DenseRounding,
    Dims,
    Inputs,
    InputShapes,
    ModelFormat,
    Repeat,
    RpcHost,
    RpcKey,
    RpcPort,
    Signature,
    Threads,
    Timeout,
    Tracker,
)
from slipway.cli.outputs import need_output
from slipway.cli.run import input_arrays, read_arrays
from slipway.toolchain.link import write_file
from slipway.toolchain.tempdir import tempdir

ARTIFACTS = (".tar", ".so")


def profile(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model file, or an artifact: .tar or .so.")
    ],
    target: Annotated[
        str,
        typer.Option(
            "--target", autocompletion=target_names, help="What a model file is compiled for."
        ),
    ] = ("llvm"),
    input_shapes: InputShapes = None,
    dim: Dims = None,
    bind: Bindings = None,
    model_format: ModelFormat = None,
    dense_rounding: DenseRounding = None,
    signature: Signature = None,
    inputs: Inputs = None,
    top: Annotated[int | None, typer.Option(min=1, help="Show the N slowest operators.")] = None,
    repeat: Repeat = 3,
    number: Annotated[
        int | None,
        typer.Option(min=1, help="Runs in each measurement. [default: a second's, 10 at most]"),
    ] = None,
    threads: Threads = None,
    limits: Annotated[
        bool, typer.Option("--limits/--no-limits", help="Measure the device's own limits too.")
    ] = True,
    trace: Annotated[
        Path | None, typer.Option(help="Write a trace for chrome://tracing or Perfetto.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    rpc_host: RpcHost = None,
    rpc_port: RpcPort = 9090,
    rpc_key: RpcKey = "",
    tracker: Tracker = None,
    timeout: Timeout = None,
) -> None:
    """Measure each operator of MODEL on this machine, or on a device over RPC.

    The table shows time, GFLOP/s and GB/s, and the share of the limit that binds: the device's
    rate of float32 multiply-adds, measured between the runs, or of bytes from as far as the
    operator's are. Operators that take more than 1% of the time at less than half of their limit
    are marked.

    For example:

        slipway profile resnet50.onnx --threads 1 --top 20

        slipway profile mobilenet.onnx --target raspberry-pi/4b-aarch64 --rpc-host pi.local

        slipway profile kws.tflite --target arm/cortex-m4 --tracker lab:9190 --rpc-key cortex-m4

        slipway profile bert.tar --json

        slipway profile bert.onnx --trace trace.json
    """
    from slipway.target import Target

    model.stat()
    need_output("--trace", trace, model, inputs)
    given = read_arrays(inputs) if inputs else {}
    if model.suffix not in ARTIFACTS:
        check_can_run(Target(target), rpc_host, tracker)
    connection = Connection(rpc_host, rpc_port, rpc_key, tracker, timeout)
    if threads is not None:
        connection.use_threads(threads)
    with tempdir() as folder:
        artifact = model
        if model.suffix not in ARTIFACTS:
            artifact = compile_for_profile(
                model,
                target,
                ModelOptions(input_shapes, bind, model_format, dense_rounding, dim, signature),
                folder.path,
            )
        report = measure(artifact, connection, given, limits, number, repeat)
    if trace is not None:
        text = json.dumps(report.to_chrome_trace(f"{model.name} on {connection.where}"))
        write_file(trace, text.encode())
        console.err.print(f"{console.plain(trace)}: {console.size_text(trace.stat().st_size)}")
    if as_json:
        print(json.dumps(report.to_dict(), indent=1))
    else:
        print_profile(report, top, f"{model.name} on {connection.where}")


def compile_for_profile(model: Path, target: str, options: ModelOptions, folder: Path) -> Path:
    """Return an artifact of a model file, as ``slipway compile`` makes it."""
    import slipway
    from slipway import relay

    with console.step(f"Reading {model}"):
        module, parameters = options.read(model, slipway.target.Target(target))
    with console.step(f"Compiling for {target}"), slipway.transform.PassContext(opt_level=3):
        library = relay.build(module, target=slipway.target.Target(target), params=parameters)
    path = folder / f"{model.stem}.tar"
    library.export_library(str(path))
    return path


def measure(
    artifact: Path, connection: Connection, given: dict[str, Any], limits: bool,
    number: int | None, repeat: int,
) -> Any:  # fmt: skip
    """Return the `ModelProfile` of an artifact on a device."""
    from slipway.inspect.limits import Probes
    from slipway.inspect.profile import profile_model
    from slipway.runtime.artifact import open_artifact
    from slipway.runtime.graph.graph_format import GraphTables
    from slipway.runtime.model_devices import ModelDevices
    from slipway.runtime.threads import num_threads
    from slipway.target import Target

    opened = open_artifact(artifact)
    metadata = opened.metadata
    module = connection.graph_module(artifact)
    said = {port["name"]: port for port in metadata.get("inputs", ())}
    for name, array in input_arrays(module, given, "random", said).items():
        module.set_input(name, array)
    module.run()
    if number is None:
        number = runs_in_a_second(module)
    processor = ModelDevices(metadata, connection.remote).is_processor
    bare = Target(metadata["target"]).parsed_triple.is_bare  # whose limits nothing measures
    if not limits or bare or not processor or opened.graph is None or "operators" not in metadata:
        with console.step("Measuring each operator"):
            return profile_model(module, metadata, number=number, repeat=repeat)
    with console.step("Preparing to measure the device's limits"):
        target = Target(metadata["target"])
        probes = Probes(target, connection.device, connection.load_built, num_threads())
    with console.step("Measuring each operator, and the limits between the runs"):
        tables = GraphTables.from_binary(opened.graph)
        return profile_model(module, metadata, probes, tables, number, repeat)


def runs_in_a_second(module: Any) -> int:
    """Return how many runs of a model take a second, 1 to 10: slow devices measure less often."""
    start = time.perf_counter()
    module.run()
    module.get_output(0)
    return max(1, min(10, int(1 / max(time.perf_counter() - start, 1e-9))))
