"""The command tree: each command is one function of one file, here or in a folder beside it.

A command's module is loaded when the command is asked for: together they load half of Slipway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import typer
from typer.completion import install_callback, show_callback
from typer.core import TyperGroup
from typer.main import get_command_from_info, get_group
from typer.models import CommandInfo

from slipway.cli.client_options import client
from slipway.cli.meant import advice, words_meant
from slipway.lazy import load
from slipway.version import VERSION

# The functions, and the groups of commands, in the order in which --help lists them.
_HOMES = {
    "compile": "slipway.cli.compile:compile_model",
    "check": "slipway.cli.inspect.check:check",
    "explain": "slipway.cli.inspect.explain:explain",
    "run": "slipway.cli.run:run",
    "profile": "slipway.cli.inspect.profile:profile",
    "tune": "slipway.cli.tune:tune",
    "validate": "slipway.cli.inspect.validate:validate",
    "bisect": "slipway.cli.inspect.bisect:bisect",
    "report": "slipway.cli.inspect.report:report",
    "compare": "slipway.cli.inspect.compare:compare",
    "rpc-server": "slipway.cli.devices.rpc_server:rpc_server",
    "rpc-proxy": "slipway.cli.devices.rpc_proxy:rpc_proxy",
    "rpc-tracker": "slipway.cli.devices.rpc_tracker:rpc_tracker",
    "rpc-query": "slipway.cli.devices.rpc_query:rpc_query",
    "device-server": "slipway.cli.devices.device_server:device_server",
    "runtime": "slipway.cli.runtime:runtime",
    "web-device": "slipway.cli.devices.web_device:web_device",
    "web-demo": "slipway.cli.web_demo:web_demo",
    "targets": "slipway.cli.targets:targets",
    "demo": "slipway.cli.demo.command:demo",
    "doctor": "slipway.cli.doctor:doctor",
    "bundle": "slipway.cli.bundle:bundle",
    "quantize": "slipway.cli.quantize:quantize",
    "chat": "slipway.cli.language.chat:chat",
    "serve": "slipway.cli.language.serve:serve",
    "fit": "slipway.cli.micro:fit",
    "size": "slipway.cli.inspect.size:size",
    "micro": "slipway.cli.micro:app",
    "device": "slipway.cli.devices.device:app",
    "farm": "slipway.cli.devices.farm:app",
}
# Those that go to a device, a tracker or a proxy: they have a token and an authority.
_CLIENTS = (
    "bisect", "bundle", "chat", "compare", "doctor", "profile", "report", "rpc-query", "run",
    "serve", "tune", "validate",
)  # fmt: skip

MARKUP: Literal["markdown"] = "markdown"
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


class _Loaded(Mapping[str, Any]):
    """Name -> command: made of its function when it is asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._make(name, load(_HOMES[name]))
        return self._made[name]

    def _make(self, name: str, found: Any) -> Any:
        if isinstance(found, typer.Typer):
            found.info.name, found.rich_markup_mode = name, MARKUP
            return get_group(found)
        callback = client(found) if name in _CLIENTS else found
        return get_command_from_info(
            CommandInfo(name, callback=callback),
            pretty_exceptions_short=False,
            rich_markup_mode=MARKUP,
        )

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


class Commands(TyperGroup):
    """All commands: options of them all may stand behind a command's name as well."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": _Loaded()})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take --quiet from wherever it stands before a "--"."""
        if args[1:] and args[0] in COMPLETION and not args[1].startswith("-"):
            complete_in(ctx, *args[:2])  # typer's own options would pass over the shell's name
        args = words_meant(args)
        end = args.index("--") if "--" in args else len(args)
        if QUIET in args[:end]:
            args = [QUIET, *(one for i, one in enumerate(args) if one != QUIET or i >= end)]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; a word of other tools is answered with the command that does it."""
        if args and args[0] not in self.commands and (meant := advice(args[0])):
            ctx.fail(f"No such command {args[0]!r}; {meant}.")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    help="Compile a model on this machine, launch it on any device.",
    no_args_is_help=True,
    cls=Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode=MARKUP,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    from slipway.cli import console
    from slipway.toolchain import waiting

    console.err.quiet = quiet
    waiting.tell_to(lambda message: console.err.print(console.plain(message)))
    if import_budget != 1:
        from slipway.frontends.budget import set_default_factor

        set_default_factor(import_budget)
