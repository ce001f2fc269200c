"""``slipway tune``: find the fastest choice for each kernel of a model, on the device itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli import console
from slipway.cli.completions import board_names, target_names
from slipway.cli.connection import check_device_named, tracker_address
from slipway.cli.exit_codes import OptionError
from slipway.cli.model_file import ModelOptions
from slipway.cli.options import (
    Bindings,
    DenseRounding,
    Dims,
    InputShapes,
    ModelFile,
    ModelFormat,
    RpcHost,
    RpcKey,
    RpcPort,
    Signature,
    Timeout,
    Tracker,
)
from slipway.cli.outputs import need_output
from slipway.inspect.units import time_text

if TYPE_CHECKING:
    from slipway.ir.module import IRModule
    from slipway.runtime.ndarray import NDArray
    from slipway.target import Target
    from slipway.tuning.builders import Builder
    from slipway.tuning.database import Database
    from slipway.tuning.runner import Runner
    from slipway.tuning.task import TuningTask
    from slipway.tuning.tune import Budget, Progress
    from slipway.tuning.whole_model import WholeModel


TRIALS = 64
BAUD = 115200


def tune(
    model: ModelFile,
    target: Annotated[
        str, typer.Option("--target", autocompletion=target_names, help="What it is to run on.")
    ] = "llvm",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The best choices. [default: MODEL.records]"),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            help="Keeps every trial: a file, or postgresql://USER@HOST/DATABASE. "
            "[default: MODEL.tuning.sqlite]"
        ),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials of each kernel at most. [default: 64]")
    ] = None,
    board: Annotated[
        str | None,
        typer.Option(
            autocompletion=board_names,
            help="A microcontroller's board: count instructions in its emulator.",
        ),
    ] = None,
    port: Annotated[
        str | None,
        typer.Option(
            help="Of --board: its serial port here. Time on the board itself, in its RAM."
        ),
    ] = None,
    baud: Annotated[
        int | None, typer.Option(min=1, help="The rate of --port. [default: 115200]")
    ] = None,
    core: Annotated[
        str | None,
        typer.Option(
            help="Without a device: a modelled cortex-a53, cortex-a72 or cortex-a76; or node."
        ),
    ] = None,
    transfer: Annotated[
        str | None,
        typer.Option(
            help="No search: take what this database's trials of other targets foretell, tried "
            "first where --rpc-host, --tracker or --core names a device."
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="A page about the search: curves, what failed, what won.")
    ] = None,
    builders: Annotated[
        str | None,
        typer.Option(
            help="Where candidates are compiled: a number of processes here (1: in this one), "
            "dask://HOST:8786 or ray://HOST:10001. [default: half of the cores]"
        ),
    ] = None,
    build_timeout: Annotated[
        float | None,
        typer.Option(min=0.1, help="Seconds for a candidate to compile. [default: 60]"),
    ] = None,
    cold_caches: Annotated[
        bool,
        typer.Option("--cold-caches", help="Flush a kernel's weights from the caches before runs."),
    ] = False,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="End the search after. [default: never, as with 0]")
    ] = None,
    input_shapes: InputShapes = None,
    dim: Dims = None,
    bind: Bindings = None,
    model_format: ModelFormat = None,
    dense_rounding: DenseRounding = None,
    signature: Signature = None,
    rpc_host: RpcHost = None,
    rpc_port: RpcPort = 9090,
    rpc_key: RpcKey = "",
    tracker: Tracker = None,
    timeout: Timeout = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Search layouts and ways to compute the kernels of MODEL, measured here or on a device.

    Every trial is kept: a search that was ended goes on where it was. `slipway compile
    --tuning-records` takes what is written.

    For example:

        slipway tune mobilenet.onnx --trials 32

        slipway tune mobilenet.onnx --target raspberry-pi/4b-aarch64 --rpc-host pi.local

        slipway compile mobilenet.onnx --tuning-records mobilenet.records

        slipway tune mobilenet.onnx --core cortex-a53

        slipway tune mobilenet.onnx --target "llvm -mcpu=cortex-a72" --transfer a53.sqlite

        slipway tune keywords.tflite --board mps2-an386

        slipway tune keywords.tflite --board nucleo_f446re --port /dev/ttyACM0

        slipway tune mobilenet.onnx --builders dask://farm.local:8786
    """
    from slipway.target import Target
    from slipway.tuning.build_cluster import builder_of
    from slipway.tuning.database import Database
    from slipway.tuning.runner import ModelledRunner, NodeRunner
    from slipway.tuning.tune import Budget

    model.stat()
    searched = {"--trials": trials, "--seconds": seconds, "--report": report}
    elsewhere = {
        **searched, "--builders": builders, "--build-timeout": build_timeout, "--core": core,
        "--database": database, "--rpc-host": rpc_host, "--tracker": tracker,
        "--cold-caches": cold_caches or None,
    }  # fmt: skip
    options = ModelOptions(input_shapes, bind, model_format, dense_rounding, dim, signature)
    records = output or Path(f"{model.stem}.records")
    need_output("--output", records, model)
    need_output("--report", report, model, records)
    if board is not None:
        from slipway.cli.tune_board import Cable, tune_on_board

        given = {**elsewhere, "--transfer": transfer}
        without_effect("--board", "tries every kernel on a microcontroller", given)
        if port is None and baud is not None:
            raise OptionError("--baud needs --port: where the board is")
        cable = None if port is None else Cable(port, baud or BAUD)
        tune_on_board(model, board, records, options, as_json, cable)
        return
    for name, value in (("--port", port), ("--baud", baud)):
        if value is not None:
            raise OptionError(f"{name} needs --board: the board that is there")
    if transfer is not None:
        without_effect("--transfer", "searches nothing", searched)
    runner = runner_of(rpc_host, rpc_port, rpc_key, tracker, timeout, core, cold_caches)
    if isinstance(runner, ModelledRunner | NodeRunner):
        target = runner.target if target == "llvm" else target
    chosen = Target(target)
    if cold_caches and chosen.kind.device_type != 1:
        raise OptionError(f"--cold-caches flushes a processor's, and {chosen.kind.name} has none")
    with console.step(f"Reading {model}"):
        module, parameters = options.read(model, chosen)
    if transfer is not None and not any((rpc_host, tracker, core)):
        without_effect("--transfer", "without a device measures nothing", elsewhere)
        write_foretold(module, chosen, parameters, transfer, records, as_json)
        return
    known = Database(database or f"{model.stem}.tuning.sqlite")
    with builder_of(builders, build_timeout or 60.0) as builder:
        if transfer is not None:
            read = SearchedModel(model.name, module, parameters, chosen)
            write_transferred(read, runner, Database(transfer), known, builder, records, as_json)
            return
        done = search(
            SearchedModel(model.name, module, parameters, chosen), runner, known,
            Budget(trials or TRIALS, seconds=seconds or 0), builder, records, report,
        )  # fmt: skip
    print_search(done, known, records, as_json)
    if done.is_interrupted:
        raise typer.Exit(130)


@dataclass(frozen=True)
class SearchedModel:
    """A model that was read for a target."""

    name: str
    module: IRModule
    parameters: Mapping[str, NDArray]
    target: Target


@dataclass
class SearchResult:
    """What a search did: the kernels as they are shown, and what the whole model gained."""

    tasks: list[TuningTask] = field(default_factory=list)
    wholes: list[WholeModel] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)  # what the seconds were too few for
    is_interrupted: bool = False


def search(
    model: SearchedModel, runner: Runner, known: Database, budget: Budget, builder: Builder | None,
    records: Path, report: Path | None,
) -> SearchResult:  # fmt: skip
    """Search, shown as it goes on; write the records, and the page where one is wanted.

    Both are written of what was found before an error or Ctrl-C, too.
    """
    from slipway.cli.tune_view import TuneView
    from slipway.transform.context import PassContext
    from slipway.tuning.tune import tune_model

    done, view = SearchResult(), TuneView(budget.seconds)

    def begin(found: list[TuningTask]) -> None:
        done.tasks.extend(found)
        view.begin(found)

    with PassContext(opt_level=3), view:
        try:
            tune_model(
                model.module, model.target, model.parameters, runner, known, budget, view.kernel,
                begun=begin, layout_watcher=view.layout, checked=done.wholes.append,
                unfinished=lambda tasks: done.unfinished.extend(map(str, tasks)), builder=builder,
            )  # fmt: skip
        except KeyboardInterrupt:
            done.is_interrupted = True
        finally:
            if known.records():
                known.write_records(records)
            if report is not None:
                write_page(report, model, done.tasks, known, runner)
    if not records.exists():
        known.write_records(records)
    done.lines = [line_of(view.rows[number]) for number in sorted(view.rows)]
    return done


def write_page(
    path: Path, model: SearchedModel, tasks: Sequence[TuningTask], known: Database, runner: Runner
) -> None:
    """Write the page about a search: curves, and why each kernel's choice won."""
    from slipway.tuning.explain import explain_task
    from slipway.tuning.explain_gpu import explain_gpu_task
    from slipway.tuning.picture import write_search_page

    tell = explain_task if model.target.kind.is_cpu else explain_gpu_task
    with known:
        why = {t.key: tell(t, known, runner.device).paragraph for t in tasks}
    write_search_page(path, tasks, known, runner.device, f"Tuning {model.name}", why)


def print_search(done: SearchResult, known: Database, records: Path, as_json: bool) -> None:
    """Print the kernels that were searched, and what the model gained."""
    if as_json:
        ended = "interrupted" if done.is_interrupted else "done"
        found: dict[str, Any] = {
            "ended": ended, "records": str(records), "tasks": done.lines,
            "unfinished": done.unfinished,
        }  # fmt: skip
        if done.wholes:
            found["model"] = describe_whole(done.wholes[0])
        print(json.dumps(found, indent=1))
        return
    print_report(done.lines)
    for whole in done.wholes:
        print_whole(whole)
    if done.unfinished:
        more = ", ..." if len(done.unfinished) > 3 else ""
        console.out.print(
            f"The seconds were too few for {len(done.unfinished)} layouts and kernels, which the "
            f"same command goes on with: {console.plain(', '.join(done.unfinished[:3]))}{more}"
        )
    console.out.print(
        f"{console.plain(records)}: {len(known.records())} choices better than the default; "
        f"{console.plain(known.where)}: {len(known)} trials"
    )


def describe_whole(whole: WholeModel) -> dict[str, Any]:
    """Return what a model gained, as JSON has it."""
    return {
        "default_seconds": whole.seconds,
        "score": whole.score,
        "set_aside": [str(task) for task in whole.set_aside],
    }


def print_whole(whole: WholeModel) -> None:
    """Print what the model gained, and which choices it is slower with."""
    after = time_text(whole.seconds * whole.score)
    console.out.print(
        f"The whole model: {time_text(whole.seconds)} by default, {after} tuned ({whole.score:.2f})"
    )
    for task in whole.set_aside:
        is_wrong = any(task is one for one in whole.wrong)
        why = "computes something else" if is_wrong else "is slower"
        console.out.print(f"  set aside, as the model {why} with it: {task}")


def write_foretold(
    module: Any, target: Target, params: Any, path_or_url: str, records: Path, as_json: bool
) -> None:
    """Write the records that another target's trials foretell, and say how many there are."""
    from slipway.toolchain.link import write_file
    from slipway.transform.context import PassContext
    from slipway.tuning.database import Database
    from slipway.tuning.transfer import records_foretold

    with PassContext(opt_level=3):
        found = records_foretold(module, target, params, Database(path_or_url))
    write_file(records, "".join(json.dumps(record) + "\n" for record in found).encode())
    if as_json:
        print(json.dumps({"records": str(records), "foretold": len(found), "measured": False}))
        return
    console.out.print(
        f"{console.plain(records)}: {len(found)} choices that trials of other targets speak for; "
        "none was measured on this one"
    )


def write_transferred(
    model: SearchedModel, runner: Runner, other: Database, known: Database,
    builder: Builder | None, records: Path, as_json: bool,
) -> None:  # fmt: skip
    """Try on a device what another target's trials foretell, and write what holds there."""
    from slipway.transform.context import PassContext
    from slipway.tuning.transfer_measured import transfer_measured

    try:
        with PassContext(opt_level=3), console.step("Trying another machine's choices"):
            done = transfer_measured(
                model.module, model.target, model.parameters, other, known, runner, builder
            )
    finally:
        known.write_records(records)
    kept = len(known.records())
    if as_json:
        print(json.dumps({"records": str(records), "foretold": len(done.tried),
                          "measured": True, "choices": kept}))  # fmt: skip
        return
    if done.whole is not None:
        print_whole(done.whole)
    console.out.print(
        f"{console.plain(records)}: {kept} choices that are faster here, with those of earlier "
        f"searches; {len(done.tried)} that trials of other targets speak for were tried"
    )


def without_effect(option: str, why: str, others: Mapping[str, object]) -> None:
    """Raise OptionError for an option that was given beside one that leaves it without effect."""
    for name, value in others.items():
        if value is not None:
            raise OptionError(
                f"{option} {why}, so that {name} has no effect: leave one of them out"
            )


def runner_of(
    host: str | None,
    port: int,
    key: str,
    tracker: str | None,
    timeout: float | None,
    core: str | None = None,
    is_cold: bool = False,
) -> Any:
    """Return where candidates run.

    Raises ExecutionError for a tracker that cannot be read, ToolchainError for an unknown core.
    """
    from slipway.toolchain.core_clock import modelled
    from slipway.tuning.runner import (
        DeviceRunner,
        LocalRunner,
        ModelledRunner,
        NodeRunner,
        TrackerRunner,
    )

    check_device_named(host, key, tracker, timeout)
    if core is not None:
        if host is not None or tracker is not None:
            raise OptionError("--core is a model here: leave --rpc-host and --tracker out")
        if is_cold:
            raise OptionError("--core is a model here, whose caches are not flushed")
        if core == "node":
            return NodeRunner()
        modelled(core)
        return ModelledRunner(core)
    address = tracker_address(host, key, tracker)
    if address is not None:
        if timeout is None:
            return TrackerRunner(*address, key, is_cold=is_cold)
        return TrackerRunner(*address, key, wait_s=timeout, is_cold=is_cold)
    if host is None:
        return LocalRunner(is_cold=is_cold)
    if timeout is None:
        return DeviceRunner(host, port, key, is_cold=is_cold)
    return DeviceRunner(host, port, key, connect_s=timeout, is_cold=is_cold)


def line_of(progress: Progress[TuningTask]) -> dict[str, Any]:
    """Return what is shown of a task."""
    return {
        "layer": progress.task.layers[0] if progress.task.layers else progress.task.name,
        "operator": progress.task.op,
        "calls": progress.task.weight,
        "default_seconds": progress.default_seconds,
        "score": progress.score,
        "trials": progress.trials,
        "errors": progress.errors,
        "drift": progress.drift,
        "condition": progress.condition,
    }


def print_report(report: list[dict[str, Any]]) -> None:
    """Print a row for each task, and what the model gains."""
    rows = [
        (
            line["layer"], line["operator"], str(line["calls"]),
            # Not measured this time: all candidates had been tried before.
            time_text(line["default_seconds"]) if line["default_seconds"] else "-",
            f"{line['score']:.2f}",
            str(line["trials"]), str(sum(line["errors"].values())),
        )
        for line in report
    ]  # fmt: skip
    columns = ("node", "operator", "calls", "default", "of default", "trials", "errors")
    console.table(columns, rows, text_columns=2)
    before = sum(line["calls"] * line["default_seconds"] for line in report)
    after = sum(line["calls"] * line["default_seconds"] * line["score"] for line in report)
    if before:
        console.out.print(
            f"All kernels searched: {time_text(before)} by default, {time_text(after)} tuned"
        )
    print_drift(report)


def print_drift(report: list[dict[str, Any]]) -> None:
    """Say how much slower the device became, where that is notable."""
    from slipway.tuning.drift import NOTABLE

    worst = max(report, key=lambda line: line.get("drift", 1.0), default={})
    if worst.get("drift", 1.0) < NOTABLE:
        return
    said = f" ({worst['condition']})" if worst["condition"] else ""
    console.out.print(
        f"The device was up to {worst['drift']:.2f} times as slow as at its fastest{said}: cool "
        "it, or end what else runs there. Candidates were timed in rounds, so that the gains hold"
    )
