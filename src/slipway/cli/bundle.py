"""``slipway bundle``: one file for a report of a fault, without secrets."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from slipway.cli import console
from slipway.cli.exit_codes import OptionError
from slipway.cli.outputs import need_output

DEFAULT = "slipway-bundle.zip"
# Of an option, and of a file's name: what a token, a key or a certificate is given by.
_SECRET_FILE = re.compile(r"token|secret|passw|key|tls|cert|\.(?:pem|key|crt|p12|token)$", re.I)


def bundle(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND ...]", help="The command that fails.", show_default=False
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file.")] = Path(DEFAULT),
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--file",
            help="Describe this model, artifact or array file as well; those that the command "
            "names are. Several are allowed.",
        ),
    ] = None,
    logs: Annotated[
        list[Path] | None,
        typer.Option("--log", help="Hold this text, without secrets. Several are allowed."),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="Examine this device, too: what `slipway doctor DEVICE` says."),
    ] = None,
    tracker: Annotated[
        str | None, typer.Option(help="--device is a kind of device of this tracker, HOST:PORT.")
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=0.1, help="Seconds that the command may take. [default: any]"),
    ] = None,
    structure: Annotated[
        bool,
        typer.Option(
            "--structure/--no-structure",
            help="Hold a copy of each .onnx and .tflite file with made-up weights.",
        ),
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")] = False,
) -> None:
    """Write one file that tells what a report of a fault needs, without what is secret.

    Behind "--" stands the command that fails, one of slipway's or any other: it is run again, with
    tracebacks. The file has its output, versions, what `slipway doctor` says, the variables that
    matter, and descriptions of the files that the command names: sizes, sums, shapes, metadata,
    and models with made-up weights. Values of tokens, passwords and keys are removed, and names
    of user and machine. Names of nodes and inputs stay: read it before you send it.

    For example:

        slipway bundle -- compile model.onnx --target raspberry-pi/4b-aarch64

        slipway bundle --device pi.local:9090 --log server.log -- run model.tar --rpc-host pi.local

        slipway bundle -- python train_and_compile.py
    """
    from slipway.doctor.bundle import collect_bundle, run_command
    from slipway.doctor.machine import examine_machine

    group: Any = context.find_root().command
    words = command_words(command or (), group.list_commands(context))
    named = [*(files or ()), *files_of(words)]
    for path in [*(files or ()), *(logs or ())]:
        if not path.is_file():
            raise OptionError(f"{path}: there is no such file to put into a bundle")
    need_output("--output", output, *named, *(logs or ()))
    if tracker is not None and device is None:
        raise OptionError("--tracker needs --device: the kind of device to examine")
    run = None
    if words:
        run = run_command(words, timeout, _show if not as_json else lambda _: None)
        console.err.print(f"[dim]The command ended with {run.ending}.[/]")
    examined = None
    if device is not None:
        from slipway.cli.doctor import examination

        examined = examination(device, tracker, 115200, None)
    with console.step("Examining this machine"):
        made = collect_bundle(
            os.environ, machine=examine_machine(), run=run, named=_once(named),
            logs=logs or (), device=examined, structure=structure,
        )  # fmt: skip
        made.write(output)
    members = [*made.texts, *made.files]
    removed = dict(sorted(made.redactor.removed.items()))
    if as_json:
        print(json.dumps({"bundle": str(output), "members": members, "removed": removed}, indent=1))
        return
    size = console.size_text(output.stat().st_size)
    console.out.print(
        f"{console.plain(output)}: {size}, {len(members)} files: {', '.join(members)}"
    )
    told = ", ".join(f"{kind} ({count})" for kind, count in removed.items()) or "nothing"
    console.out.print(f"removed: {console.plain(told)}")
    console.out.print("Read it before you send it: names of nodes, inputs and files are in it.")


def command_words(words: Sequence[str], ours: Sequence[str]) -> list[str]:
    """Return the words of a command, with "slipway" before one of `ours`.

    Raises OptionError for a first word that is neither one of slipway's nor a program.
    """
    if not words:
        return []
    if words[0] == "slipway":
        return list(words)
    if words[0] in ours:
        return ["slipway", *words]
    if shutil.which(words[0]) is None:
        raise OptionError(f"{words[0]}: neither a command of slipway nor a program of this machine")
    return list(words)


def files_of(words: Sequence[str]) -> list[Path]:
    """Return the files that a command's words name; no program, and none that holds a secret."""
    found = []
    for before, word in pairwise(words):
        option, _, value = word.partition("=") if word.startswith("-") else (before, "", word)
        path = Path(value)
        if _SECRET_FILE.search(f"{option if option.startswith('-') else ''} {path.suffix}"):
            continue
        with suppress(OSError):  # a word that is too long for a name
            if path.is_file() and path.suffix != ".py":
                found.append(path)
    return found


def _once(paths: Sequence[Path]) -> list[Path]:
    return list({path.resolve(): path for path in paths}.values())


def _show(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
