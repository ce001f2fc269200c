"""``slipway report``: everything there is to say of a model on a target, as one page."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli import console
from slipway.cli.completions import target_names
from slipway.cli.exit_codes import OptionError
from slipway.cli.model_file import (
    ModelOptions,
    need_model,
    parse_bindings,
    parse_dims,
    parse_shapes,
    survey_model,
)
from slipway.cli.options import (
    Bindings,
    DenseRounding,
    Dims,
    Inputs,
    InputShapes,
    ModelFile,
    ModelFormat,
    Signature,
    Timeout,
)
from slipway.cli.outputs import need_output
from slipway.cli.run import read_arrays
from slipway.toolchain.tempdir import tempdir

if TYPE_CHECKING:
    from slipway.report.data import Report


RAN_AS_UPLOADED = (
    "The board ran the kernels as they are uploaded, code and weights in its RAM, under the graph "
    "executor; graphs, memory and layers are of that. Flash, RAM and boards are of the program "
    "that `slipway micro` makes."
)


@dataclass(frozen=True)
class WantedDevice:
    """Where the command line says that a model is to run.

    Raises ModelError for a tracker without a kind of device.
    """

    device: str | None = None
    tracker: str | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.tracker is not None and self.device is None:
            raise OptionError("--tracker needs --device: the kind of device to ask for")

    def open(self) -> tuple[Any, str]:
        """Return a session and what to call the device; (None, "this machine") without one."""
        if self.device is None:
            return None, "this machine"
        from slipway.deploy.device import open_session

        with console.step(f"Connecting to {self.device}"):
            return open_session(self.device, tracker=self.tracker, timeout=self.timeout)


DeviceName = Annotated[
    str | None,
    typer.Option(help="Run it there: HOST:PORT, or with --tracker the kind of device."),
]


def report(
    model: ModelFile,
    target: Annotated[
        str, typer.Option("--target", autocompletion=target_names, help="What it is compiled for.")
    ] = "llvm",
    device: DeviceName = None,
    tracker: Annotated[
        str | None, typer.Option(help="The tracker, HOST:PORT, that has the device.")
    ] = None,
    timeout: Timeout = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page. [default: MODEL.html]")
    ] = None,
    inputs: Inputs = None,
    input_shapes: InputShapes = None,
    dim: Dims = None,
    bind: Bindings = None,
    model_format: ModelFormat = None,
    dense_rounding: DenseRounding = None,
    signature: Signature = None,
    numbers: Annotated[
        bool, typer.Option("--numbers/--no-numbers", help="Compare each layer with NumPy.")
    ] = True,
    limits: Annotated[
        bool, typer.Option("--limits/--no-limits", help="Measure the device's own limits.")
    ] = True,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print what the page holds; the page is written with --output alone."
        ),
    ] = False,
) -> None:
    """Write a page about MODEL on a target: one file that loads nothing from elsewhere.

    It shows the graph before and after fusion, how each layer is computed, its time beside what
    the device allows, its numbers beside NumPy's, the plan of the memory, sizes, what became of
    each node, versions, and how to repeat it. For a microcontroller flash and RAM by layer take
    the place of times. Without --device it runs on this machine where it can.

    For example:

        slipway report mobilenet.onnx -o report.html

        slipway report mobilenet.onnx --target raspberry-pi/4b-aarch64 --device pi.local:9090

        slipway report kws.tflite --target arm/cortex-m4 -o kws.html
    """
    options = ModelOptions(input_shapes, bind, model_format, dense_rounding, dim, signature)
    wanted = WantedDevice(device, tracker, timeout)
    need_model(model, model_format)
    page = output or (None if as_json else Path(f"{model.stem}.html"))
    need_output("--output", page, model, inputs)
    found = reported(model, target, wanted, options, inputs, numbers, limits)
    from slipway.report.page import write_page

    path = write_page(found, page) if page is not None else None
    if as_json:
        print(found.to_json())
    elif path is not None:
        console.out.print(f"{console.plain(path)}: {console.size_text(path.stat().st_size)}")


def reported(
    model: Path, target: str, wanted: WantedDevice, options: ModelOptions,
    inputs: Path | None, numbers: bool, limits: bool,
) -> Report:  # fmt: skip
    """Return the report of a model file that is compiled for `target` and run on a device."""
    import slipway
    from slipway import relay
    from slipway.report.boards import add_boards
    from slipway.report.collect import rewritten_of
    from slipway.report.make import make_report
    from slipway.target import Target

    chosen = Target(target)
    bare = chosen.parsed_triple.is_bare
    given = read_arrays(inputs) if inputs else None
    session, where = wanted.open()
    with console.step(f"Reading {model}"):
        module, parameters = options.read(model, chosen)
        entries = survey_model(
            model, parse_shapes(options.input_shapes), options.model_format,
            parse_bindings(options.bind), parse_dims(options.dim), options.signature,
        )  # fmt: skip
    with console.step(f"Compiling for {chosen}"), slipway.transform.PassContext(opt_level=3):
        program = firmware_of(module, chosen, parameters) if bare else None
        is_run = program is None or session is not None
        library: Any = program
        if is_run:
            library = relay.build(module, target=chosen, params=parameters)
    with tempdir() as folder:
        artifact = None
        if is_run:
            artifact = folder.path / f"{model.stem}.tar"
            library.export_library(str(artifact))
        found = make_report(
            library, model.name, artifact, session=session, where=where, source=model,
            constants=parse_bindings(options.bind), signature=options.signature, numbers=numbers,
            limits=limits, inputs=given,
        )  # fmt: skip
    if program is not None and is_run:
        add_boards(found, program)
        found.notes.append(RAN_AS_UPLOADED)
    found.rewritten = rewritten_of(entries)
    found.repeat = how_to_repeat(model)
    return found


def firmware_of(module: Any, target: Any, parameters: Any) -> Any:
    """Return a model compiled ahead of time, as a microcontroller has it in its flash."""
    from slipway import relay

    return relay.build(
        module, target=target, params=parameters,
        executor=relay.backend.Executor("aot", {"unpacked-api": True, "interface-api": "c"}),
        runtime=relay.backend.Runtime("crt"),
    )  # fmt: skip


def how_to_repeat(model: Path) -> list[str]:
    """Return the command of this process, and what tells whether the model is the same."""
    import hashlib

    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    return [shlex.join(["slipway", *sys.argv[1:]]), f"sha256 of {model.name}: {digest}"]
