"""``slipway compare``: two compiled models, two model files, or one for two targets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli import console
from slipway.cli.completions import target_names
from slipway.cli.exit_codes import LIMIT, OptionError
from slipway.cli.inspect.profile import ARTIFACTS, compile_for_profile
from slipway.cli.inspect.report import WantedDevice
from slipway.cli.model_file import ModelOptions
from slipway.cli.options import (
    Bindings,
    DenseRounding,
    Dims,
    InputShapes,
    ModelFormat,
    Signature,
    Timeout,
)
from slipway.cli.outputs import need_output
from slipway.inspect.units import time_text
from slipway.toolchain.tempdir import tempdir

if TYPE_CHECKING:
    from slipway.report.compare import Comparison

SHOWN = 12


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="An artifact or a model file: before.")],
    b: Annotated[
        Path | None,
        typer.Argument(metavar="[B]", help="Another: after. Without it A for the second target."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            autocompletion=target_names,
            help="For model files; given twice, A's and B's. [default: llvm]",
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Run both there: HOST:PORT, or with --tracker a kind.")
    ] = None,
    tracker: Annotated[str | None, typer.Option(help="The tracker that has the device.")] = None,
    timeout: Timeout = None,
    input_shapes: InputShapes = None,
    dim: Dims = None,
    bind: Bindings = None,
    model_format: ModelFormat = None,
    dense_rounding: DenseRounding = None,
    signature: Signature = None,
    slower_than: Annotated[
        str | None, typer.Option(help="Fail when B is slower than A by more: 5% or 0.05.")
    ] = None,
    bigger_than: Annotated[
        str | None, typer.Option(help="Fail when B's file is larger by more: 2%, or 0.")
    ] = None,
    tolerance: Annotated[
        str | None,
        typer.Option(
            help="Fail when outputs are off by more of A's largest value. [default: 1e-4]"
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write a page of it (.html).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Hold B against A: sizes, time of a run and of each layer, kernels, numbers.

    Both are measured in interleaved rounds, where they can run: here, or on --device. Exits with 4
    when B's numbers differ from A's or B breaks a limit, so that a build can stop there; with 0
    otherwise.

    For example:

        slipway compare old.tar new.tar --slower-than 5% --bigger-than 2%

        slipway compare mobilenet.onnx --target "llvm -mcpu=x86-64-v2" --target llvm

        slipway compare float.tflite int8.tflite --target raspberry-pi/4b-aarch64 --device pi:9090
    """
    allowed = part_of(tolerance, "--tolerance")
    limits = part_of(slower_than, "--slower-than"), part_of(bigger_than, "--bigger-than")
    targets = [*(target or ["llvm"])]
    if len(targets) > 2 or (b is None and len(targets) != 2):
        raise OptionError(
            "compare takes two models, or one model and --target twice: "
            "slipway compare model.onnx --target A --target B"
        )
    for path in (a, b or a):
        path.stat()
    need_output("--output", output, a, b)
    options = ModelOptions(input_shapes, bind, model_format, dense_rounding, dim, signature)
    wanted = WantedDevice(device, tracker, timeout)
    found = compared((a, b or a), (targets[0], targets[-1]), wanted, options, allowed)
    found.judge(*limits)
    if output is not None:
        from slipway.report.compare_page import write_comparison

        write_comparison(found, output)
    if as_json:
        print(found.to_json())
    else:
        print_comparison(found)
    if found.faults:
        raise typer.Exit(LIMIT)


def part_of(text: str | None, option: str) -> float | None:
    """Return a part of the whole: "5%" and "0.05" are the same.

    Raises OptionError for what is neither.
    """
    if text is None:
        return None
    try:
        value = float(text.rstrip("% ")) / (100 if text.rstrip().endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise OptionError(f"{option} {text}: write a percentage, {option} 5% say")
    return value


def compared(
    paths: tuple[Path, Path], targets: tuple[str, str], wanted: WantedDevice,
    options: ModelOptions, tolerance: float | None = None,
) -> Comparison:  # fmt: skip
    """Compile what is not compiled yet, and return how the two differ."""
    from slipway.deploy.agreement import TOLERANCE
    from slipway.report.compare import compare as compare_artifacts
    from slipway.report.loaded import LoadedArtifact, why_not_here, why_not_there

    session, where = wanted.open()
    with tempdir() as folder:
        artifacts, names = [], []
        for path, target, letter in zip(paths, targets, "ab", strict=True):
            own = folder.path / letter
            own.mkdir()
            is_file = path.suffix not in ARTIFACTS
            made = compile_for_profile(path, target, options, own) if is_file else path
            artifacts.append(made)
            names.append(f"{path.name} for {target}" if is_file else path.name)
        if names[0] == names[1]:
            names = [str(path) for path in paths]
        versions: list[Any] = []
        for artifact in artifacts:
            absent = why_not_here(artifact) if session is None else why_not_there(artifact, session)
            versions.append(absent or LoadedArtifact(artifact, session, where))
        with console.step(f"Measuring on {where}, interleaved"):
            return compare_artifacts(
                artifacts[0], artifacts[1], (names[0], names[1]), (versions[0], versions[1]),
                tolerance=TOLERANCE if tolerance is None else tolerance,
            )  # fmt: skip


def print_comparison(found: Comparison) -> None:
    """Print the tables and the verdict."""
    a, b = found.a, found.b
    console.out.print(f"A  {console.plain(a.name)}\nB  {console.plain(b.name)}", soft_wrap=True)
    rows = [
        (name, console.size_text(a.sizes[name]), console.size_text(b.sizes[name]),
         changed(a.sizes[name], b.sizes[name]))
        for name in a.sizes
        if name in b.sizes
    ]  # fmt: skip
    if a.median_s is not None and b.median_s is not None and found.slower is not None:
        times = time_text(a.median_s), time_text(b.median_s)
        low, high = found.slower_between or (0.0, 0.0)
        rows.append(("time per run", *times, f"{found.slower:+.1%} ({low:+.1%} to {high:+.1%})"))
    console.table(("", "A", "B", "B beside A"), rows)
    print_layers(found)
    if found.changes:
        shown = [
            (console.layer(c.name), c.kind, console.plain(c.a), console.plain(c.b))
            for c in found.changes[:SHOWN]
        ]
        console.table(("kernel", "", "A", "B"), shown, title="Kernels that differ", text_columns=4)
        if len(found.changes) > SHOWN:
            console.out.print(f"and {len(found.changes) - SHOWN} more (--json has all)")
    else:
        console.out.print(found.sameness())
    for output in found.numbers:
        verdict = "agrees" if output.agrees else "[red]DIFFERS[/]"
        more = "" if output.sqnr_db is None else f", SQNR {output.sqnr_db:.1f} dB"
        console.out.print(
            f"output {console.plain(output.output)}: {verdict}, error {output.error:.2g}{more}"
        )
    for note in found.notes:
        console.out.print(f"[yellow]{console.plain(note)}[/]")
    for fault in found.faults:
        console.out.print(f"[red]✗[/] {console.plain(fault)}")
    if not found.faults:
        console.out.print("[green]✓[/] B keeps every limit that was set")


def print_layers(found: Comparison) -> None:
    """Print the layers of one name in both whose time changed most."""
    from slipway.report.compare import layer_times

    times = layer_times(found)[:SHOWN]
    if times:
        rows = [
            (console.layer(name), time_text(one), time_text(other), changed(one, other))
            for name, one, other in times
        ]
        console.table(("layer", "A", "B", "B beside A"), rows, title="Layers that changed most")


def changed(before: float, after: float) -> str:
    """Return by which part something grew: "+3.1%"."""
    return "-" if not before else f"{after / before - 1:+.1%}"
