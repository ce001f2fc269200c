"""The examples of every command's help: they parse, and what they name exists."""

import itertools
import re
import shlex

import pytest
import typer

from slipway.cli.app import app
from slipway.micro.board import find_board
from slipway.target import Target


def all_commands(command, name):
    """Yield (name, command) of every command that runs something, those of groups too."""
    for part, below in getattr(command, "commands", {}).items():
        yield from all_commands(below, f"{name} {part}")
    if not hasattr(command, "commands"):
        yield name, command


COMMANDS = dict(all_commands(typer.main.get_command(app), "slipway"))
EXAMPLES = sorted(
    {
        part.strip()
        for command in COMMANDS.values()
        for line in (command.help or "").split("For example:", 1)[-1].splitlines()
        for part in re.split(r"&&|\||\$\(|\)", line)
        if part.strip().startswith("slipway ")
    }
)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_of_itself(name):
    _, _, examples = (COMMANDS[name].help or "").partition("For example:")
    assert name in examples


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_parses_and_names_what_there_is(line):
    words = shlex.split(line)[1:]
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context("slipway", list(words))
    for option, value in itertools.pairwise(words):
        if option == "--target" and command.name not in ("device-server", "demo"):
            Target(value)
        if option == "--board":
            find_board(value)
