"""``slipway micro``, ``slipway fit``, ``slipway size``: models on microcontrollers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from slipway.cli import console
from slipway.cli.exit_codes import LIMIT
from slipway.cli.model_file import ModelOptions
from slipway.cli.options import AsJson, Bindings, DenseRounding, InputShapes, ModelFormat
from slipway.errors import ModelError

app = typer.Typer(
    help="Projects for microcontrollers: create, build, flash, run.", no_args_is_help=True
)

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file, or a Model Library Format .tar.")
]
BoardName = Annotated[str, typer.Option("--board", help="A board's name, or a .toml of your own.")]
Project = Annotated[Path, typer.Argument(metavar="DIR", help="The project's directory.")]


def model_archive(
    model: Path, target: str, options: ModelOptions, folder: Path, module_name: str | None = None
) -> Path:
    """Return the Model Library Format archive of a model, compiling it when it is not one."""
    if model.suffix == ".tar":
        if module_name is not None:
            raise ModelError(
                f"--module-name {module_name}: {model} is compiled already, and its names are "
                "fixed; give the model's own file, or compile it again with --module-name"
            )
        return model
    import slipway
    from slipway import relay
    from slipway.micro import export_model_library_format

    model.stat()
    with console.step(f"Reading {model}"):
        module, parameters = options.read(model, slipway.target.Target(target))
    with console.step(f"Compiling for {target}"), slipway.transform.PassContext(opt_level=3):
        library = relay.build(
            module,
            target=slipway.target.Target(target),
            params=parameters,
            executor=relay.backend.Executor("aot", {"unpacked-api": True, "interface-api": "c"}),
            runtime=relay.backend.Runtime("crt"),
            mod_name=module_name or "default",
        )
    return export_model_library_format(library, folder / "model.tar")


def fit(
    model: Model,
    board: Annotated[list[str] | None, typer.Option("--board", help="A board; repeatable.")] = None,
    all_boards: Annotated[bool, typer.Option("--all-boards", help="Every board known.")] = False,
    link: Annotated[
        bool, typer.Option("--link/--estimate", help="Also link, and show the truth beside it.")
    ] = False,
    input_shapes: InputShapes = None,
    bind: Bindings = None,
    model_format: ModelFormat = None,
    dense_rounding: DenseRounding = None,
    svg: Annotated[
        Path | None, typer.Option(help="Write the arena as a picture: offset over time.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tell what flash and RAM MODEL takes, and which boards have them.

    Exits with 4 when a board named is too small; the table then says which layers are at fault.
    """
    from slipway.micro.board import board_names, find_board
    from slipway.micro.fit import Verdict, estimate, fit_report
    from slipway.micro.measure_image import measure_boards
    from slipway.micro.model_library import only_model, unpack_model_library

    names = board_names() if all_boards else list(board or ())
    if not names:
        raise ModelError("name a board with --board, or give --all-boards")
    boards = [find_board(name) for name in names]
    options = ModelOptions(input_shapes, bind, model_format, dense_rounding)
    with tempfile.TemporaryDirectory(prefix="slipway-fit-") as folder:
        archive = model_archive(model, boards[0].target, options, Path(folder))
        description = only_model(unpack_model_library(archive, Path(folder) / "model"))
        needs = estimate(description)

        def archive_for(target: str) -> Path:
            own = Path(folder) / f"target{len(list(Path(folder).iterdir()))}"
            own.mkdir()
            return model_archive(model, target, options, own)

        linked = measure_boards(boards, archive_for) if link else {}
    if svg is not None:
        svg.write_text(_plan_picture(description), encoding="utf-8")
    verdicts = [Verdict(b, linked.get(b.name) or needs.need) for b in boards]
    if as_json:
        print(json.dumps(fit_values(verdicts), indent=1))
    else:
        print(fit_report(needs, boards, linked))
    if not all_boards and not all(verdict.fits for verdict in verdicts):
        raise typer.Exit(LIMIT)


def fit_values(verdicts: Sequence[Any]) -> list[dict[str, Any]]:
    """Return what `fit` tells of each board, as plain values in bytes."""
    return [
        {
            "board": v.board.name, "fits": v.fits, "origin": v.need.origin,
            "flash": v.need.flash, "flash_left": v.flash_margin,
            "ram": v.need.ram, "ram_left": v.ram_margin,
        }
        for v in verdicts
    ]  # fmt: skip


def _plan_picture(model: dict[str, Any]) -> str:
    from slipway.compiler.memory_plan import Block, Plan, Pool, plan_svg

    plan = model["memory_plan"]
    pools = [p["name"] for p in plan["pools"]]
    blocks = [Block(t["name"], t["size_bytes"], t["first"], t["last"], 1) for t in plan["tensors"]]
    made = Plan(
        tuple(blocks),
        tuple(t["offset"] for t in plan["tensors"]),
        sum(p["size_bytes"] for p in plan["pools"]),
        plan["lower_bound_bytes"],
        plan["algorithm"],
        pools=tuple(Pool(name) for name in pools),
        pool_of=tuple(pools.index(t["pool"]) for t in plan["tensors"]),
        proven=plan["proven"],
    )
    return plan_svg(made, model["model_name"])


@app.command("create")
def create(
    model: Model,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A directory to make.")],
    board: BoardName = "mps2-an386",
    template: Annotated[
        str, typer.Option(help="crt, baremetal, cmake, zephyr, arduino, or a path.")
    ] = "baremetal",
    project_type: Annotated[
        str, typer.Option(help="The template's kind of project.")
    ] = "example_project",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="A template's option, NAME=VALUE; repeatable."),
    ] = None,
    module_name: Annotated[
        str | None, typer.Option(help="What names in generated C begin with: tvmgen_NAME.")
    ] = None,
    input_shapes: InputShapes = None,
    bind: Bindings = None,
    model_format: ModelFormat = None,
    dense_rounding: DenseRounding = None,
) -> None:
    """Make a project of MODEL from a template."""
    from slipway.micro import generate_project_from_mlf
    from slipway.micro.board import find_board

    options: dict[str, Any] = {"board": board, "project_type": project_type}
    for text in option or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise ModelError(f"--option {text}: write NAME=VALUE")
        options[name] = value
    with tempfile.TemporaryDirectory(prefix="slipway-micro-") as folder:
        archive = model_archive(
            model,
            find_board(board).target,
            ModelOptions(input_shapes, bind, model_format, dense_rounding),
            Path(folder),
            module_name,
        )
        generate_project_from_mlf(template, directory, archive, options).close()
    console.out.print(f"{directory}: a {template} project for {board}")


def _open(directory: Path) -> Any:
    from slipway.micro import GeneratedProject

    return GeneratedProject.from_directory(directory)


@app.command("build")
def build(directory: Project) -> None:
    """Compile a project's firmware."""
    project = _open(directory)
    with console.step(f"Building {directory}"):
        project.build()
    project.close()


@app.command("flash")
def flash(directory: Project) -> None:
    """Program the board with a project's firmware."""
    project = _open(directory)
    with console.step(f"Flashing {directory}"):
        project.flash()
    project.close()


@app.command("run")
def run(
    directory: Project,
    timeout: Annotated[float, typer.Option(help="Seconds without a byte before giving up.")] = 20.0,
) -> None:
    """Start a project's firmware and print what it sends, to its end."""
    from slipway.micro.project_api.server import IoTimeoutError, TransportClosedError

    project = _open(directory)
    try:
        with project.transport() as transport:
            while True:
                print(transport.read(256, timeout).decode("utf-8", "replace"), end="", flush=True)
    except TransportClosedError:
        return
    except IoTimeoutError:
        console.out.print(f"[dim]nothing more within {timeout:g} s[/dim]")
    finally:
        project.close()


def size(
    project: Annotated[Path, typer.Argument(metavar="DIR", help="A built project.")],
    diff: Annotated[
        Path | None, typer.Option("--diff", help="Another built project, the one before.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Attribute every byte of a project's flash and RAM to a layer; or compare two builds."""
    from slipway.micro.image_size import read_map, size_difference, size_table
    from slipway.micro.model_library import only_model

    def pieces(folder: Path) -> Any:
        description = folder / "model" / "metadata.json"
        model = only_model(json.loads(description.read_text())) if description.exists() else None
        return read_map(folder / "build" / "firmware.map", model)

    after = pieces(project)
    if as_json:
        builds = {"after": after} if diff is None else {"before": pieces(diff), "after": after}
        found = {name: [asdict(piece) for piece in build] for name, build in builds.items()}
        print(json.dumps(found, indent=1))
        return
    print(size_table(after) if diff is None else size_difference(pieces(diff), after))
