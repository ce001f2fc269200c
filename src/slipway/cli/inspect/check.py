"""``slipway check``: what becomes of every node of a model, before anything is compiled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli import console
from slipway.cli.completions import board_names, target_names
from slipway.cli.exit_codes import OptionError
from slipway.cli.inspect.check_kernels import explained, print_explained
from slipway.cli.model_file import (
    parse_bindings,
    parse_dims,
    parse_shapes,
    read_model,
    shapes_option,
    survey_model,
)
from slipway.cli.options import (
    Bindings,
    DenseRounding,
    Dims,
    InputShapes,
    ModelFile,
    ModelFormat,
    Signature,
)
from slipway.deploy.model_file import rounding_for
from slipway.errors import LoweringError, OpenShapeError

if TYPE_CHECKING:
    from slipway.target import Target

COLOURS = {
    "native": "green", "rewritten": "cyan", "folded": "dim", "unsupported": "red",
    "unchecked": "yellow",
}  # fmt: skip
MEANINGS = {
    "native": "one operator of the compiler",
    "rewritten": "several operators together",
    "folded": "known at compile time",
    "unsupported": "cannot be compiled",
    "unchecked": "after an unsupported node",
}


def check(
    model: ModelFile,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", autocompletion=target_names, help="What it is to run on. [default: llvm]"
        ),
    ] = None,
    board: Annotated[
        str | None,
        typer.Option(
            autocompletion=board_names, help="A board in the place of --target: does it fit there?"
        ),
    ] = None,
    input_shapes: InputShapes = None,
    dim: Dims = None,
    bind: Bindings = None,
    model_format: ModelFormat = None,
    dense_rounding: DenseRounding = None,
    signature: Signature = None,
    only: Annotated[
        str | None, typer.Option(help="Show only nodes of this status, unsupported for example.")
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="One row for each kind of operator.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="How each kernel is computed: strategy and knobs.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Tell what becomes of every node of MODEL on a target, without compiling it.

    A node is native (one operator of the compiler), rewritten (several), folded (known at compile
    time), or unsupported, and then the table says why. Where the model leaves sizes open, some that
    fit it are assumed, and shown. Exits with 0 when the whole model can be compiled, else with 1.

    For example:

        slipway check mobilenet.onnx --target raspberry-pi/4b-aarch64

        slipway check kws.tflite --target arm/cortex-m4 --summary

        slipway check kws.tflite --board nucleo-f446re

        slipway check vad.onnx --input-shapes "input:[1,576] state:[2,1,128]" --bind sr=16000

        slipway check mobilenet.onnx --explain

        slipway check encoder.pt2 --json
    """
    from slipway.target import Target

    if board is not None and target is not None:
        raise OptionError("--board has a target of its own: leave --target out")
    chosen = Target(_board_target(board) if board is not None else target or "llvm")
    rounding = rounding_for(chosen, dense_rounding)
    shapes, dims = parse_shapes(input_shapes), parse_dims(dim)
    constants = parse_bindings(bind)
    assumed = ""
    try:
        entries = survey_model(model, shapes, model_format, constants, dims, signature)
    except OpenShapeError as error:
        shapes, assumed = error.shapes, shapes_option(error.shapes)
        entries = survey_model(model, shapes, model_format, constants, dims, signature)
    found: dict[str, Any] = {"schedules": {}, "memory": {}, "kernels": [], "problem": ""}
    if all(entry.status not in ("unsupported", "unchecked") for entry in entries):
        module, parameters = read_model(
            model, shapes, model_format, constants, rounding, dims, signature,
            counted=chosen.parsed_triple.is_bare,
        )  # fmt: skip
        found = on_target(module, parameters, chosen, board)
    report = {
        "model": str(model),
        "target": str(chosen),
        "supported": not found["problem"]
        and all(e.status not in ("unsupported", "unchecked") for e in entries),
        "counts": counted(entries),
        "problem": found["problem"],
        "assumed": assumed,
        "memory": found["memory"],
        **({"kernels": found["kernels"]} if explain else {}),
        "nodes": [
            {
                "name": e.name, "kind": e.kind, "status": e.status, "detail": e.detail,
                "schedule": found["schedules"].get(e.name, ""),
            }
            for e in entries
        ],
    }  # fmt: skip
    if as_json:
        print(json.dumps(report, indent=1))
    else:
        print_report(report, only, summary)
        if explain:
            print_explained(report["kernels"])
    if not report["supported"]:
        raise typer.Exit(1)


def counted(entries: Sequence[Any]) -> dict[str, int]:
    """Return the number of nodes of each status."""
    from slipway.frontends.report import counts

    return counts(entries)


def _board_target(board: str) -> str:
    from slipway.micro.board import find_board

    return find_board(board).target


def on_target(
    module: Any, parameters: dict[str, Any], target: Target, board: str | None = None
) -> dict[str, Any]:
    """Return the schedule of each node on `target`, the memory needed, and what stands against it.

    A node has the strategy of its kernel's main operator; "general" where a backend has none.
    """
    import slipway
    from slipway.backends.backend import backend_of, compile_target
    from slipway.compiler.graph import plan_storage
    from slipway.compiler.open_sizes import largest_bytes
    from slipway.compiler.relay_build import kernel_graph, targets_of
    from slipway.inspect.coverage import kernel_schedules

    chosen = compile_target(target)
    program = backend_of(chosen).language(chosen) == "c"
    try:
        with slipway.transform.PassContext(opt_level=3):
            graph = kernel_graph(module, chosen, parameters, aot=program)
    except LoweringError as error:
        return {"schedules": {}, "memory": {}, "kernels": [], "problem": str(error)}
    kernels = kernel_schedules(graph, targets_of(module, chosen))
    schedules = {layer: k.schedule or "general" for k in kernels for layer in k.layers}
    ports = [n.types[0] for n in graph.nodes if not n.function and n.name not in graph.params]
    ports += [graph.type_of(ref) for ref in graph.outputs]
    memory: dict[str, Any] = {
        "weights_bytes": sum(array.nbytes for array in graph.params.values()),
        "tensors_bytes": plan_storage(graph).size_bytes,
        "inputs_outputs_bytes": sum(map(largest_bytes, ports)),
        "kernels": len(graph.kernels),
    }
    if chosen.parsed_triple.is_small:
        memory["boards"] = boards_that_fit(chosen, memory, board)
    return {
        "schedules": schedules,
        "memory": memory,
        "kernels": explained(kernels),
        "problem": "",
    }


def boards_that_fit(
    target: Target, memory: dict[str, Any], board: str | None = None
) -> dict[str, bool]:
    """Return whether the model fits `board`, or each known one of the processor, by estimate.

    The planner that follows may still save RAM; ``slipway fit`` tells exactly.
    """
    from slipway.micro import board as known
    from slipway.micro.fit import Verdict, need_of

    need = need_of(
        weights=memory["weights_bytes"],
        arena=memory["tensors_bytes"] - memory["inputs_outputs_bytes"],
        io=memory["inputs_outputs_bytes"],
        kernels=memory["kernels"],
    )
    names = [board] if board else known.board_names()
    boards = [known.find_board(name) for name in names]
    return {b.name: Verdict(b, need).fits for b in boards if board or b.core == target.cpu}


def print_report(report: dict[str, Any], only: str | None, summary: bool) -> None:
    """Print the tables and the verdict."""
    nodes = [n for n in report["nodes"] if only in (None, n["status"])]
    rows: list[tuple[str, ...]]
    if summary:
        grouped = Counter((n["kind"], n["status"], n["detail"]) for n in nodes)
        rows = [
            (console.plain(kind), str(count), coloured(status), console.plain(detail))
            for (kind, status, detail), count in sorted(grouped.items())
        ]
        console.table(("operator", "nodes", "status", "becomes, or why not"), rows, text_columns=4)
    elif nodes:
        rows = [
            (console.layer(n["name"]), console.plain(n["kind"]), coloured(n["status"]),
             console.plain(n["detail"]), n["schedule"])
            for n in nodes
        ]  # fmt: skip
        columns = ("node", "operator", "status", "becomes, or why not", "schedule")
        console.table(columns, rows, text_columns=5)
    for status, count in report["counts"].items():
        console.out.print(f"{count:>6} {coloured(status)}: {MEANINGS[status]}")
    if report["assumed"]:
        console.out.print(
            f"The model leaves sizes open; assumed here: {console.plain(report['assumed'])}",
            soft_wrap=True,
        )
    print_memory(report["memory"])
    if report["problem"]:
        console.out.print(f"[red]✗[/] {console.plain(report['problem'])}")
    elif report["supported"]:
        console.out.print(
            f"[green]✓[/] {console.plain(report['model'])} can be compiled for {report['target']}"
        )
    else:
        console.out.print(f"[red]✗[/] {console.plain(report['model'])} cannot be compiled yet")


def print_memory(memory: dict[str, Any]) -> None:
    """Print what the model needs, and which boards of the target's processor have it."""
    if not memory:
        return
    sizes = {name: console.size_text(memory[f"{name}_bytes"]) for name in ("weights", "tensors")}
    console.out.print(
        f"Weights {sizes['weights']}, tensors at most {sizes['tensors']}, "
        f"{memory['kernels']} kernels"
    )
    for name, fits in memory.get("boards", {}).items():
        console.out.print(f"  {name}: {'fits' if fits else '[red]does not fit[/]'} (estimate)")


def coloured(status: str) -> str:
    """Return the status with its colour."""
    return f"[{COLOURS[status]}]{status}[/]"
