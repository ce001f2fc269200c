"""What pages tell to type besides `test_command_blocks`: commands in a sentence, other programs.

A command in a sentence must exist with its options.  Of blocks every line is of a program that is
looked at here, or named with why it cannot be.
"""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer

from slipway.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for part in ("docs", "examples", "src") for path in (ROOT / part).rglob("*.md")),
]
BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Programs of others, whose lines are checked by hand.
OTHERS = {
    "openssl": "makes a token", "scp": "needs a machine", "ssh": "needs a machine",
    "podman": "needs a container's rights", "dask": "a cluster's own program",
    "export": "a variable of the shell", "time": "measures what follows",
    "g++": "test_languages.py", "cc": "test_languages.py", "cargo": "test_languages.py",
    "echo": "test_languages.py",
}  # fmt: skip
DRAWINGS = {"architecture.md"}  # whose blocks show how things hang together


def command_of(words):
    """Return the command that words name, and the words behind it; a|b|c are several of a group."""
    command, rest = typer.main.get_command(app), list(words)
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        names = rest.pop(0).split("|")
        for name in names:
            assert name in command.commands, f"there is no command {name!r}"
        command = command.commands[names[0]]
    return command, rest


def sentences():
    """Return (page, command) of code in sentences that begins with slipway."""
    for page in PAGES:
        text = BLOCK.sub("", page.read_text(encoding="utf-8"))
        for code in re.findall(r"`([^`]+)`", text):
            if code.startswith("slipway ") and "COMMAND" not in code:
                yield page.name, " ".join(code.split())


def lines():
    """Return (page, line) of blocks of shell, but for those that begin with slipway."""
    for page in PAGES:
        for language, block in BLOCK.findall(page.read_text(encoding="utf-8")):
            if language not in ("", "sh") or page.name in DRAWINGS:
                continue
            for line in block.replace("\\\n", " ").splitlines():
                line = re.sub(r"\s+#.*|^#.*", "", line).strip()
                if line and not line.startswith("slipway "):
                    yield page.name, line


SENTENCES = list(dict.fromkeys(sentences()))
LINES = list(dict.fromkeys(lines()))


def test_there_are_some():
    assert len(SENTENCES) > 60
    assert len(LINES) > 25


@pytest.mark.parametrize(("page", "code"), SENTENCES)
def test_a_command_in_a_sentence_exists_with_its_options(page, code):
    command, rest = command_of(code.split()[1:])
    known = {"--help", "-h", "--quiet"}
    known |= {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
    for word in rest[: rest.index("--")] if "--" in rest else rest:
        option = re.match(r"\[?(--[a-z][\w-]*|-[a-z]\b)", word)
        assert option is None or option[1] in known, f"{command.name} has no {option[1]}"


@pytest.mark.parametrize(("page", "line"), LINES)
def test_a_line_of_another_program(page, line):
    words = shlex.split(line)
    if words[0] == "sudo":
        del words[0]
    program = Path(words[0]).name
    if program in OTHERS:
        return
    if program == "make":
        targets = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert words[1] in targets
    elif program == "pip":
        with (ROOT / "pyproject.toml").open("rb") as file:
            extras = tomllib.load(file)["project"]["optional-dependencies"]
        named = re.findall(r"\[([\w,]+)\]", line)
        assert all(extra in extras for one in named for extra in one.split(","))
    elif program == "apt-get":
        wanted = (ROOT / ".ci/run").read_text() + "make python3-venv"
        assert not [word for word in words[2:] if word not in wanted.split()]
    elif program == "slipway-server":
        told = (ROOT / "src/slipway/crt/server/server_main.c").read_text()
        assert not [word for word in words if word.startswith("--") and f'"{word}"' not in told]
    elif words[:2] == ["python", "-m"]:
        check_module(words[2:])
    elif program == "python":
        assert (ROOT / words[1]).is_file()
    else:
        pytest.fail(f"nothing looks at {program}: a test of its own, or a reason in OTHERS")


def check_module(words):
    """The module is there, and its --help has the options of the line."""
    if words[0] == "benchmarks":
        told = "".join(p.read_text() for p in (ROOT / "benchmarks").rglob("*.py"))
        name = ROOT / "benchmarks" / words[1]
        assert name.is_dir() or name.with_suffix(".py").is_file()
        options = [word for word in words if word.startswith("--")]
        assert not [word for word in options if f'"{word}"' not in told]
        return
    options = [word for word in words[1:] if word.startswith("-")]
    done = subprocess.run(
        [sys.executable, "-m", words[0], "--help"], capture_output=True, text=True, check=True
    )
    assert not [word for word in options if word not in done.stdout]


def test_ci_installs_what_the_readme_lists():
    (listed,) = re.findall(
        r"apt-get install (gcc .*?)\n```", (ROOT / "README.md").read_text(), re.S
    )
    script = (ROOT / ".ci/run").read_text()
    (packages,) = re.findall(r"packages=\((.*?)\n\)", script, re.S)
    extra = set(re.sub(r"#.*", "", packages).split()) ^ set(listed.replace("\\\n", " ").split())
    assert not {one for one in extra if not one.startswith(("python3", "make", "git"))}
