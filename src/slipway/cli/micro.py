"""``slipway micro``, ``slipway fit``: models on microcontrollers."""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway import errors
from slipway.cli import console
from slipway.cli.completions import board_names
from slipway.cli.exit_codes import LIMIT, OptionError
from slipway.cli.firmware_text import readable
from slipway.cli.model_file import ModelOptions, check_module_name
from slipway.cli.options import (
    AsJson,
    Bindings,
    DenseRounding,
    Dims,
    InputShapes,
    ModelFormat,
    Signature,
)
from slipway.cli.outputs import need_output, need_output_folder
from slipway.errors import (
    ModelError,
    RPCConnectionError,
    RPCTimeoutError,
    SlipwayError,
    ToolchainError,
)
from slipway.toolchain.link import write_file
from slipway.toolchain.tempdir import made_whole, scratch

if TYPE_CHECKING:
    from slipway.relay.expr import Function

app = typer.Typer(
    help="Projects for microcontrollers: create, build, flash, run.", no_args_is_help=True
)

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file, or a Model Library Format .tar.")
]
EMULATED = "mps2-an386"  # a board that QEMU runs
Project = Annotated[Path, typer.Argument(metavar="DIR", help="The project's directory.")]


def refuse_open_sizes(main: Function) -> None:
    """Raise ModelError, with the option to give, for inputs of open sizes: firmware has none."""
    from slipway.relay.dims import described
    from slipway.relay.types import flatten

    sizes = [d for param in main.params for t in flatten(param.checked_type) for d in t.shape]
    if ranges := described(sizes):
        raise ModelError(
            f"firmware has fixed sizes, and the model was read with {ranges}: give one size, "
            "--dim NAME=1, or shapes without ranges in --input-shapes"
        )


def model_archive(
    model: Path, target: str, options: ModelOptions, folder: Path, module_name: str | None = None
) -> Path:
    """Return the Model Library Format archive of a model, compiling it when it is not one."""
    if model.suffix == ".tar":
        if module_name is not None:
            raise OptionError(
                f"--module-name {module_name}: {model} is compiled already, and its names are "
                "fixed; give the model's own file, or compile it again with --module-name"
            )
        return model
    import slipway
    from slipway import relay
    from slipway.micro import export_model_library_format

    check_module_name(module_name)
    model.stat()
    with console.step(f"Reading {model}"):
        module, parameters = options.read(model, slipway.target.Target(target), firmware=True)
    refuse_open_sizes(module["main"])
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
    board: Annotated[
        list[str] | None,
        typer.Option("--board", autocompletion=board_names, help="A board; repeatable."),
    ] = None,
    all_boards: Annotated[bool, typer.Option("--all-boards", help="Every board known.")] = False,
    link: Annotated[
        bool, typer.Option("--link/--estimate", help="Also link, and show the truth beside it.")
    ] = False,
    input_shapes: InputShapes = None,
    dim: Dims = None,
    bind: Bindings = None,
    model_format: ModelFormat = None,
    dense_rounding: DenseRounding = None,
    signature: Signature = None,
    svg: Annotated[
        Path | None, typer.Option(help="Write the arena as a picture: offset over time.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tell what flash and RAM MODEL takes, and which boards have them.

    Exits with 4 when a board named is too small; the table then says which layers are at fault.

    For example:

        slipway fit kws.tflite

        slipway fit kws.tflite --board nucleo-f446re --board rp2040

        slipway fit kws.tflite --board mps2-an386 --link
    """
    from slipway.micro.board import board_names, find_board
    from slipway.micro.fit import ModelNeeds, Verdict, estimate, fit_report
    from slipway.micro.measure_image import compiled_estimate, measure_boards
    from slipway.micro.model_library import only_model, unpack_model_library

    names = board_names() if all_boards else list(board or ())
    if not names:
        raise OptionError("name a board with --board, or give --all-boards")
    boards = [find_board(name) for name in names]
    need_output("--svg", svg, model)
    options = ModelOptions(input_shapes, bind, model_format, dense_rounding, dim, signature)
    with scratch("slipway-fit-") as folder:
        archives: dict[str, Path] = {}

        def archive_for(target: str) -> Path:
            if target not in archives:
                own = Path(folder) / f"target{len(archives)}"
                own.mkdir()
                archives[target] = model_archive(model, target, options, own)
            return archives[target]

        description: dict[str, Any] = {}
        cores: dict[tuple[str, ...], ModelNeeds] = {}
        for one in boards:
            core = (one.target, *one.cflags)
            if core not in cores:
                unpacked = Path(folder) / f"core{len(cores)}"
                found = only_model(unpack_model_library(archive_for(one.target), unpacked))
                cores[core] = estimate(found, compiled_estimate(unpacked, one))
                description = found if len(cores) == 1 else description
        by_board = {one.name: cores[(one.target, *one.cflags)] for one in boards}
        needs = by_board[boards[0].name]
        linked = measure_boards(boards, archive_for) if link else {}
    if svg is not None:
        write_file(svg, _plan_picture(description).encode())
    own_needs = {name: found.need for name, found in by_board.items()}
    verdicts = [Verdict(b, linked.get(b.name) or own_needs[b.name]) for b in boards]
    if as_json:
        print(json.dumps(fit_values(verdicts), indent=1))
    else:
        print(fit_report(needs, boards, linked, own_needs))
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
    board: Annotated[
        str | None,
        typer.Option(
            autocompletion=board_names,
            help=f"A board's name, or a .toml of your own. [default: {EMULATED}, for baremetal]",
        ),
    ] = None,
    template: Annotated[
        str,
        typer.Option(
            help="crt, baremetal, cmake, zephyr, arduino, platformio, espidf, cmsis, or a path."
        ),
    ] = "baremetal",
    target: Annotated[
        str | None,
        typer.Option(help="What to compile for. [default: the board's; for other systems plain C]"),
    ] = None,
    project_type: Annotated[
        str | None,
        typer.Option(help="The template's kind of project. [default: example_project]"),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="A template's option, NAME=VALUE; repeatable."),
    ] = None,
    module_name: Annotated[
        str | None, typer.Option(help="What names in generated C begin with: tvmgen_NAME.")
    ] = None,
    input_shapes: InputShapes = None,
    dim: Dims = None,
    bind: Bindings = None,
    model_format: ModelFormat = None,
    dense_rounding: DenseRounding = None,
    signature: Signature = None,
) -> None:
    """Make a project of MODEL from a template.

    For example:

        slipway micro create kws.tflite firmware --board nucleo-f446re

        slipway micro create kws.tflite for-cmake --template cmake --target c --module-name kws
    """
    from slipway.micro import TemplateProject, generate_project_from_mlf

    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise FileExistsError(f"{directory} exists and is not empty; give a new directory")
    need_output_folder("DIR", directory)
    named = given_options(option)
    board = given_once("board", board, named)
    project_type = given_once("project_type", project_type, named)
    if board is None and template == "baremetal":
        board = EMULATED
    options = {**({"board": board} if board else {}), **named}
    if project_type or template not in LIBRARIES:
        options["project_type"] = project_type or "example_project"
    with _server_errors(), closing(TemplateProject.from_directory(template)) as known:
        known.check_options(options)  # before the model is compiled
    with scratch("slipway-micro-") as folder:
        archive = model_archive(
            model,
            target or _target_of(board, template),
            ModelOptions(input_shapes, bind, model_format, dense_rounding, dim, signature),
            Path(folder),
            module_name,
        )
        if board is not None:
            _warn_of_size(archive, board, Path(folder) / "unpacked")
        with made_whole(directory), _server_errors():
            generate_project_from_mlf(template, directory, archive, options).close()
    article = "an" if template[0] in "aeiou" else "a"
    made_for = f" for {board}" if board else ""
    console.out.print(f"{console.plain(directory)}: {article} {template} project{made_for}")


LIBRARIES = ("cmake", "cmsis")  # templates without a program


def given_options(texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the values of ``--option NAME=VALUE``."""
    found: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise OptionError(f"--option {text}: write NAME=VALUE")
        found[name] = value
    return found


def given_once(name: str, value: str | None, named: dict[str, Any]) -> str | None:
    """Return what has an option of its own, or was among those of --option; it is taken out there.

    Raises OptionError for two values.
    """
    other: str | None = named.pop(name, None)
    if value is not None and other is not None and value != other:
        raise OptionError(
            f"--{name.replace('_', '-')} {value} and --option {name}={other}: leave one of them out"
        )
    return other if value is None else value


def _warn_of_size(archive: Path, board: str, folder: Path) -> None:
    from slipway.micro.board import find_board
    from slipway.micro.fit import certain_excess, estimate
    from slipway.micro.model_library import only_model, unpack_model_library

    try:
        known = find_board(board)
    except SlipwayError:
        return  # a board of another system, whose memories are not known here
    need = estimate(only_model(unpack_model_library(archive, folder))).need
    if excess := certain_excess(known, need):
        text = f"{excess}: it will not link. `slipway fit` tells what takes it."
        console.err.print(f"[yellow]warning:[/] {console.plain(text)}", soft_wrap=True)


def _target_of(board: str | None, template: str) -> str:
    """Return what a board's core is called; other systems name boards that have no file here."""
    from slipway.micro.board import find_board

    if board is None:
        return "c"
    try:
        return find_board(board).target
    except SlipwayError:
        if template in ("baremetal", "crt"):
            raise
    return "c"


@contextmanager
def _server_errors() -> Iterator[None]:
    """Let what a project's server reports become an error of the class that it was there."""
    from slipway.micro.project_api.server import JSONRPCError

    try:
        yield
    except JSONRPCError as error:
        data = error.data if isinstance(error.data, dict) else {}
        found = getattr(errors, str(data.get("class")), None)
        kind: type[SlipwayError] = ToolchainError
        if isinstance(found, type) and issubclass(found, SlipwayError):
            kind = found
        system = getattr(builtins, str(data.get("class")), None)
        if isinstance(system, type) and issubclass(system, OSError):
            raise system(data.get("words") or error.message) from error
        raise kind(data.get("words") or error.message) from error


@contextmanager
def _opened(directory: Path, options: dict[str, Any] | None = None) -> Iterator[Any]:
    """Open a project."""
    from slipway.micro import GeneratedProject

    directory.stat()
    with _server_errors():
        project = GeneratedProject.from_directory(directory, options)
        try:
            yield project
        finally:
            project.close()


Port = Annotated[
    str | None, typer.Option("--port", help="The board's serial port, /dev/ttyACM0 for example.")
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", help="A template's option, NAME=VALUE, instead of the stored one."),
]


@app.command("build")
def build(directory: Project) -> None:
    """Compile a project's firmware.

    For example:

        slipway micro build firmware
    """
    with _opened(directory) as project, console.step(f"Building {directory}"):
        project.build()


@app.command("flash")
def flash(directory: Project, port: Port = None, option: Options = None) -> None:
    """Program the board with a project's firmware, by the tool that its description names.

    For example:

        slipway micro flash firmware
    """
    options = given_options(option) | ({"port": port} if port else {})
    with _opened(directory, options) as project, console.step(f"Flashing {directory}"):
        project.flash()


@app.command("run")
def run(
    directory: Project,
    port: Port = None,
    option: Options = None,
    timeout: Annotated[float, typer.Option(help="Seconds without a byte before giving up.")] = 20.0,
) -> None:
    """Start a project's firmware and print what it sends, to its end.

    The bytes of outputs are shown as values. A board that sends nothing at all is an error.

    For example:

        slipway micro run firmware

        slipway micro run firmware --port /dev/ttyACM0 --timeout 60
    """
    from slipway.micro.project_api.server import IoTimeoutError, TransportClosedError

    options = given_options(option) | ({"port": port} if port else {})
    heard, begun = 0, b""  # a line that is not at its end
    with _opened(directory, options) as project, project.transport() as transport:
        try:
            while True:
                data = transport.read(256, timeout)
                heard += len(data)
                *lines, begun = (begun + data).split(b"\n")
                for line in lines:
                    print(readable(line.decode("utf-8", "replace")), flush=True)
        except TransportClosedError as closed:
            said = (closed.data or {}).get("emulator", "").strip()
            if said and not heard:
                raise ToolchainError(
                    f"{directory}: the emulator ended before the board sent anything: "
                    + readable(said.splitlines()[0])
                ) from None
            print(readable(begun.decode("utf-8", "replace")), end="", flush=True)
            if heard and options.get("port"):  # an emulator ends so, a board does not
                raise RPCConnectionError(
                    f"{options['port']} is gone: was the board unplugged or reset, or does another "
                    "program read the port?"
                ) from None
        except IoTimeoutError:
            if heard:
                print(readable(begun.decode("utf-8", "replace")), flush=True)
                console.out.print(f"[dim]nothing more within {timeout:g} s[/dim]")
                return
    if not heard:
        raise RPCTimeoutError(
            f"{directory}: the board sent nothing within {timeout:g} s. Is it programmed "
            "(slipway micro flash), is --port the right one, and does the project's kind print "
            "(a host_driven one waits for a session)? Reset the board and run this again"
        )
