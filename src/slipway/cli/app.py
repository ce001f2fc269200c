"""The command tree: each command is one function of one file, here or in a folder beside it."""

from __future__ import annotations

from typing import Any

import typer
from typer.completion import install_callback, show_callback
from typer.core import TyperGroup

from slipway.cli import console, micro
from slipway.cli.client_options import client
from slipway.cli.compile import compile_model
from slipway.cli.demo.command import demo
from slipway.cli.devices import device, farm
from slipway.cli.devices.device_server import device_server
from slipway.cli.devices.rpc_proxy import rpc_proxy
from slipway.cli.devices.rpc_query import rpc_query
from slipway.cli.devices.rpc_server import rpc_server
from slipway.cli.devices.rpc_tracker import rpc_tracker
from slipway.cli.devices.web_device import web_device
from slipway.cli.doctor import doctor
from slipway.cli.inspect.bisect import bisect
from slipway.cli.inspect.check import check
from slipway.cli.inspect.compare import compare
from slipway.cli.inspect.explain import explain
from slipway.cli.inspect.profile import profile
from slipway.cli.inspect.report import report
from slipway.cli.inspect.validate import validate
from slipway.cli.language.chat import chat
from slipway.cli.language.serve import serve
from slipway.cli.quantize import quantize
from slipway.cli.run import run
from slipway.cli.runtime import runtime
from slipway.cli.targets import targets
from slipway.cli.tune import tune
from slipway.cli.web_demo import web_demo
from slipway.version import VERSION

QUIET = "--quiet"
COMPLETION: dict[str, Any] = {
    "--install-completion": install_callback,
    "--show-completion": show_callback,
}
SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")


def complete_in(ctx: Any, option: str, shell: str) -> None:
    """Install or show the completion of the shell that is named, and end the process."""
    if shell not in SHELLS:
        raise typer.BadParameter(f"{shell!r} is none of {', '.join(SHELLS)}.", param_hint=option)
    COMPLETION[option](ctx, None, shell)


class Commands(TyperGroup):
    """All commands: options of them all may stand behind a command's name as well."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take --quiet from wherever it stands before a "--"."""
        if args[1:] and args[0] in COMPLETION and not args[1].startswith("-"):
            complete_in(ctx, *args[:2])  # typer's own options would pass over the shell's name
        end = args.index("--") if "--" in args else len(args)
        if QUIET in args[:end]:
            args = [QUIET, *(one for i, one in enumerate(args) if one != QUIET or i >= end)]
        return super().parse_args(ctx, args)


app = typer.Typer(
    help="Compile a model on this machine, launch it on any device.",
    no_args_is_help=True,
    cls=Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("compile")(compile_model)
app.command("check")(check)
app.command("explain")(client(explain))
app.command("run")(client(run))
app.command("profile")(client(profile))
app.command("tune")(client(tune))
app.command("validate")(client(validate))
app.command("bisect")(client(bisect))
app.command("report")(client(report))
app.command("compare")(client(compare))
app.command("rpc-server")(rpc_server)
app.command("rpc-proxy")(rpc_proxy)
app.command("rpc-tracker")(rpc_tracker)
app.command("rpc-query")(client(rpc_query))
app.command("device-server")(device_server)
app.command("runtime")(runtime)
app.command("web-device")(web_device)
app.command("web-demo")(web_demo)
app.command("targets")(targets)
app.command("demo")(demo)
app.command("doctor")(client(doctor))
app.command("quantize")(quantize)
app.command("chat")(client(chat))
app.command("serve")(client(serve))
app.command("fit")(micro.fit)
app.command("size")(micro.size)
app.add_typer(micro.app, name="micro")
app.add_typer(device.app, name="device")
app.add_typer(farm.app, name="farm")


def show_version(is_wanted: bool) -> None:
    """Print the version and leave, when asked for it."""
    if is_wanted:
        print(f"slipway {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=show_version, is_eager=True, help="Show the version and exit."
    ),
    quiet: bool = typer.Option(
        False, "--quiet", help="Print results and errors, no progress; behind a command, too."
    ),
    import_budget: int = typer.Option(
        1, min=1, help="Let an import make so many times the usual nodes and computed constants."
    ),
) -> None:
    """Compile a model on this machine, launch it on any device."""
    console.err.quiet = quiet
    if import_budget != 1:
        from slipway.frontends.budget import set_default_factor

        set_default_factor(import_budget)
