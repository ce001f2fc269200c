"""``slipway demo``: the whole way of a model, from its file to a device and back."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from slipway.cli import console
from slipway.cli.demo.case import Case, Outputs, digits_case, model_case
from slipway.cli.demo.device import (
    PAGE,
    DeviceKind,
    build_server,
    gpu_kind,
    kind_named,
    node,
    session_with,
    this_machine,
)
from slipway.cli.exit_codes import OptionError
from slipway.cli.model_file import ModelOptions
from slipway.cli.options import Bindings, DenseRounding, Dims, InputShapes, ModelFormat, Signature
from slipway.errors import ExecutionError
from slipway.inspect.units import time_text
from slipway.runtime.model_devices import ModelDevices
from slipway.toolchain import emulators, native
from slipway.toolchain.tempdir import tempdir
from slipway.version import VERSION

if TYPE_CHECKING:
    from slipway.target import Target

TOLERANCE = 1e-4
SLOWEST = 5
TIMING_S = 3.0  # how long to measure, about, where a run is shorter than that
MEMBERS = {
    "lib.so": "library",
    "params.bin": "parameters",
    "graph.bin": "graph",
    "graph.json": "graph, for people",
}


@dataclass
class Results:
    """What the device gave back: the outputs of each run, and what was measured there."""

    outputs: list[Outputs] = field(default_factory=list)
    seconds: Any = None
    layers: list[tuple[str, str, str]] = field(default_factory=list)


def demo(
    model: Annotated[
        Path | None,
        typer.Option("--model", help="A .onnx, .tflite or .pt2 file instead of the digits."),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="The device to start: aarch64, armv7, riscv64, x86_64 or web. [default: aarch64]"
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="Run it on this machine's GPU instead: opencl, vulkan, cuda or rocm."),
    ] = None,
    input_shapes: InputShapes = None,
    dim: Dims = None,
    bind: Bindings = None,
    model_format: ModelFormat = None,
    dense_rounding: DenseRounding = None,
    signature: Signature = None,
) -> None:
    """Compile a model for a device, run it there over RPC, and compare.

    Without `--model`, a small network for handwritten digits runs its whole test set.

    For example:

        slipway demo

        slipway demo --model mobilenet.onnx --device riscv64

        slipway demo --device web

        slipway demo --target opencl
    """
    options = ModelOptions(input_shapes, bind, model_format, dense_rounding, dim, signature)
    if model is None and options != ModelOptions():
        raise OptionError("options that say how a model is read need the model: --model FILE")
    if device is not None and target is not None:
        raise OptionError("--device and --target name two devices: give one of them")
    kind, emulator = (gpu_kind(target), []) if target else choose_device(device or "aarch64")
    with console.step("Reading the model"):
        case = model_case(model, options, kind.compiled_for) if model else digits_case()
    with tempdir() as temp:
        run_demo(case, kind, emulator, temp.path)


def run_demo(case: Case, kind: DeviceKind, emulator: list[str], folder: Path) -> None:
    """Compile, launch, run and report; files go into `folder`.

    Raises ExecutionError when the device's results are not the reference's.
    """
    from slipway.target import Target

    where = f"emulated by {Path(emulator[0]).name}" if emulator else "this machine"
    console.out.print(
        f"\nSlipway {VERSION}: [bold]{case.path.name}[/] on {kind.name} ({kind.processor}), {where}"
    )
    with console.step("Compiling for this machine"):
        host = build(case, Target("llvm"))
    with console.step(f"Compiling for {kind.compiled_for}"):
        library = build(case, kind.compiled_for)
        artifact = folder / f"{case.path.stem}{kind.suffix}"
        library.export_library(str(artifact))
    with console.step(f"Device server for {kind.server} (built once, then kept)"):
        server = build_server(kind)
    with console.step("Runtime of this machine (built once, then kept)"):
        native.host_runtime()
    with session_with(kind, server, emulator, folder) as remote:
        results = run_on_device(case, artifact, library.metadata, remote, kind.name)
    with console.step("Running them on this machine"):
        here = run_here(case, host)
    report(case, kind, results, here, bool(emulator))
    print_sizes(case, artifact, server)
    title = f"Slowest layers, measured on the device ({kind.name})"
    console.table(("layer", "time", "share"), results.layers, title=title)
    check(case, kind, results, here)


def choose_device(name: str) -> tuple[DeviceKind, list[str]]:
    """Return the device of that name and its emulator; this machine where there is no emulator."""
    kind = kind_named(name)
    if kind.name == PAGE:
        return kind, node()
    emulator = emulators.find(kind.name)
    if emulator is not None:
        return kind, emulator
    console.err.print(
        f"[yellow]{emulators.install_hint(kind.name)}.[/] Until then this machine plays the device."
    )
    return this_machine(), []


def build(case: Case, target: Target) -> Any:
    """Compile the case's model for `target`."""
    import slipway
    from slipway import relay

    with slipway.transform.PassContext(opt_level=3):
        return relay.build(case.module, target=target, params=case.parameters)


def run_on_device(
    case: Case, artifact: Path, metadata: Mapping[str, Any], remote: Any, device_name: str
) -> Results:
    """Upload `artifact`, of that metadata, to a device, run every input there, and measure."""
    from slipway.cli.inspect.profile_table import profile_rows
    from slipway.contrib import graph_executor
    from slipway.inspect.profile import profile_model

    with console.step(f"Uploading {artifact.name}"):
        remote.upload(str(artifact))
        library = remote.load_module(artifact.name)
    devices = ModelDevices(metadata, remote)
    module = graph_executor.GraphModule(library["default"](*devices.each))
    results = Results()
    for arrays in console.progress(
        case.inputs, f"Running {len(case.inputs)} inputs on {device_name}"
    ):
        results.outputs.append(run_once(module, arrays))
    with console.step("Timing on the device"):
        first = module.module.time_evaluator("run", devices.main, number=1, repeat=1)().mean
        runs = int(np.clip(TIMING_S / first, 1, 10))
        results.seconds = module.module.time_evaluator("run", devices.main, number=1, repeat=runs)()
        report = profile_model(module, metadata, number=1, repeat=runs)
        results.layers = profile_rows(report, SLOWEST)
    return results


def run_here(case: Case, library: Any) -> list[Outputs]:
    """Return the outputs for each input, run in this process."""
    from slipway import runtime
    from slipway.contrib import graph_executor

    module = graph_executor.GraphModule(library["default"](runtime.cpu(0)))
    return [run_once(module, arrays) for arrays in case.inputs]


def run_once(module: Any, arrays: dict[str, Any]) -> Outputs:
    """Return the outputs for `arrays`."""
    for name, array in arrays.items():
        module.set_input(name, array)
    module.run()
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


def report(
    case: Case, kind: DeviceKind, results: Results, host: list[Outputs], emulated: bool
) -> None:
    """Print accuracy (or agreement) of device, host and reference, and the time of a run."""
    sources = [(f"device ({kind.name})", results.outputs), ("host (this machine)", host)]
    if case.reference:
        sources.append((f"reference ({case.reference})", case.expected))
    against = case.expected or host
    rows = []
    for name, outputs in sources:
        far = "-" if outputs is against else f"{largest_difference(outputs, against):.1e}"
        accuracy = () if case.labels is None else (f"{accuracy_of(outputs, case.labels):.2%}",)
        rows.append((name, *accuracy, far))
    other = "the reference" if case.reference else "the host"
    columns = ("", *(() if case.labels is None else ("accuracy",)), f"farthest from {other} by")
    console.table(columns, rows, title=f"{len(case.inputs)} inputs")
    timing = results.seconds
    console.out.print(
        f"Time per run, measured on the device: [bold]{time_text(timing.median)}[/] "
        f"(min {time_text(timing.min)}, max {time_text(timing.max)})"
    )
    if emulated:
        console.out.print("[dim]An emulator's time says nothing about a real board's.[/]")
    console.out.print()


def print_sizes(case: Case, artifact: Path, server: Path) -> None:
    """Print the sizes of the model, of the artifact and its parts, and of the server."""
    rows = [(f"model ({case.path.name})", case.path.stat().st_size)]
    rows.append((f"artifact ({artifact.name})", artifact.stat().st_size))
    sizes = {}
    if artifact.suffix == ".tar":
        with tarfile.open(artifact) as archive:
            sizes = {member.name: member.size for member in archive.getmembers()}
    rows += [
        (f"  {title} ({name})", sizes[name]) for name, title in MEMBERS.items() if name in sizes
    ]
    rows.append(("device server (all that the device needs)", server.stat().st_size))
    console.table(
        ("size of", ""), [(name, console.size_text(size)) for name, size in rows], title="Sizes"
    )


def check(case: Case, kind: DeviceKind, results: Results, host: list[Outputs]) -> None:
    """Raise ExecutionError when the device is further from the reference than the tolerance.

    Where there is no reference, the host's outputs take its place.
    """
    other = "the reference" if case.expected else "the host"
    far = largest_difference(results.outputs, case.expected or host)
    if not far <= TOLERANCE:
        raise ExecutionError(
            f"the outputs on {kind.name} differ from those of {other} by {far:.1e} of the largest "
            f"value; {TOLERANCE:.0e} is allowed. Please report this with the model."
        )
    console.out.print(f"[green]✓[/] {kind.name} agrees with {other} to {TOLERANCE:.0e}")


def accuracy_of(runs: Sequence[Outputs], labels: Any) -> float:
    """Return the share of runs in whose first output the label's element is the largest."""
    right = [np.argmax(outputs[0]) == label for outputs, label in zip(runs, labels, strict=True)]
    return float(np.mean(right))


def largest_difference(runs: Sequence[Outputs], expected: Sequence[Outputs]) -> float:
    """Return the largest difference of an element, relative to the largest of its tensor."""
    return float(
        np.max(
            [
                np.max(np.abs(got - wanted.astype(np.float64))) / max(np.max(np.abs(wanted)), 1e-30)
                for outputs, references in zip(runs, expected, strict=True)
                for got, wanted in zip(outputs, references, strict=True)
            ]
        )
    )
