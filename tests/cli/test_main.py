"""Exit codes and messages of the command itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from slipway.cli.exit_codes import DEFECT, DONE, FILE, UNREAD, USAGE

COMMANDS = (
    "compile", "bisect", "check", "run", "profile", "rpc-server", "device-server", "targets",
    "demo", "quantize", "rpc-tracker", "rpc-query", "rpc-proxy", "doctor", "report", "compare",
    "tune", "validate",
)  # fmt: skip


def slipway(*arguments, **environment):
    command = [sys.executable, "-m", "slipway", *arguments]
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", **environment}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)


def test_help_names_every_command():
    done = slipway("--help")
    assert done.returncode == 0
    assert all(command in done.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command):
    done = slipway(command, "--help")
    assert done.returncode == 0, done.stderr
    assert f"slipway {command}" in done.stdout.split("For example", 1)[1]


def test_help_and_version_are_words_too():
    assert slipway("help").stdout == slipway("--help").stdout
    assert "slipway micro create" in slipway("help", "micro", "create").stdout
    assert slipway("version").stdout == slipway("--version").stdout


def test_every_word_of_other_tools_leads_to_a_command():
    import typer

    from slipway.cli.app import app
    from slipway.cli.meant import _COMMANDS

    for word, line in _COMMANDS.items():
        command = typer.main.get_command(app)
        assert word not in command.commands
        for part in line.split():
            command = command.commands[part] if hasattr(command, "commands") else command


def test_version():
    import slipway as package

    assert slipway("--version").stdout.split() == ["slipway", package.__version__]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("chek",), "No such command 'chek'. Did you mean 'check'? `slipway --help` tells"),
        (("micro", "creat"), "Did you mean 'create'? `slipway micro --help` tells"),
        (("compile",), "Missing argument 'MODEL'. `slipway compile --help` tells"),
        (("benchmark", "m.onnx"), "that is `slipway profile` here. `slipway --help` tells"),
        (("export", "m.onnx"), "No such command 'export'; that is `slipway compile` here"),
        (("m.onnx",), "a command stands before a model: `slipway check m.onnx`"),
        (("build/m.tar", "--repeat", "3"), "before an artifact: `slipway run build/m.tar`"),
        (("tvmc", "compile"), "its command line is `python -m slipway.driver.tvmc`"),
        (("run", "x.tar", "--bogus"), "No such option: --bogus"),
        (
            ("compile", "m.onnx", "--target", "llvm", "-mcpu=cortex-a72"),
            'needs quotes: --target "ll',
        ),
        (("compile", "m.onnx", "--opt-level", "9"), "Invalid value for '--opt-level'"),
    ],
)
def test_wrong_usage_is_one_paragraph_and_exits_with_2(arguments, words):
    done = slipway(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("slipway: error: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_wrong_usage_is_an_object_too():
    done = slipway("check", "m.onnx", "--bogus", "--json")
    assert json.loads(done.stdout)["exit_code"] == 2


def test_a_group_without_a_command_shows_its_help():
    done = slipway("micro")
    assert done.returncode == 2
    assert "flash" in done.stdout


def failure(*arguments, usage=False):
    """Return the one paragraph that a failing command prints; `usage`: an option is at fault."""
    done = slipway(*arguments)
    assert done.returncode not in (DONE, DEFECT), done.stdout + done.stderr
    assert (done.returncode == USAGE) == usage
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("slipway: error: "), done.stderr
    return last


def test_a_missing_file_is_named():
    assert "nowhere.onnx: No such file or directory" in failure("compile", "nowhere.onnx")


def test_an_unknown_output_format_is_named(tmp_path):
    message = failure("compile", "model.onnx", "-o", str(tmp_path / "x.tra"), usage=True)
    assert "one of .tar, .so, .wasm, .o, .a" in message
    assert "Did you mean '.tar'" in message


def test_an_unknown_device_is_named():
    assert "Did you mean 'aarch64'" in failure("demo", "--device", "arch64")


def test_debug_shows_the_traceback():
    done = slipway("compile", "nowhere.onnx", SLIPWAY_DEBUG="1")
    assert "Traceback" in done.stderr


READERS = (
    ("compile",), ("bisect",), ("check",), ("profile",), ("demo",), ("fit",), ("report",),
    ("micro", "create"),
)  # fmt: skip


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_commands_that_read_a_model_have_the_same_options_for_it(command):
    shown = slipway(*command, "--help").stdout
    for option in ("--input-shapes", "--bind", "--model-format", "--dense-rounding",
                   "--signature"):  # fmt: skip
        assert option in shown, option


def test_the_demo_wants_a_model_for_what_is_said_of_it():
    assert "--model FILE" in failure("demo", "--bind", "x=1", usage=True)


def test_targets_end_with_options_that_describe_this_machine():
    """Without them code is planned for no machine in particular; with them it is a valid target."""
    import re

    from slipway.target import Target

    shown = " ".join(slipway("targets", COLUMNS="400").stdout.split())
    (text,) = re.findall(r"sizes of its caches: (llvm .*)$", shown)
    assert Target(text).core_counts == (os.cpu_count(),)


@pytest.mark.parametrize("command", ["--help", "targets", "targets --json", "check MODEL --quiet"])
def test_output_that_nobody_reads_ends_the_command_in_silence(command, repository):
    model = str(repository / "src" / "slipway" / "models" / "digits" / "digits.onnx")
    reads, writes = os.pipe()
    os.close(reads)
    words = [sys.executable, "-m", "slipway", *command.replace("MODEL", model).split()]
    done = subprocess.run(words, stdout=writes, stderr=subprocess.PIPE, text=True, timeout=120)
    os.close(writes)
    assert (done.returncode, done.stderr) == (UNREAD, "")


@pytest.mark.parametrize(
    ("command", "code"), [("compile MODEL -o OUT", UNREAD), ("compile none.onnx", FILE)]
)
def test_progress_and_errors_that_nobody_reads(command, code, repository, tmp_path):
    model = str(repository / "src" / "slipway" / "models" / "digits" / "digits.onnx")
    reads, writes = os.pipe()
    os.close(reads)
    words = command.replace("MODEL", model).replace("OUT", str(tmp_path / "m.tar")).split()
    done = subprocess.run(
        [sys.executable, "-m", "slipway", *words], stdout=subprocess.DEVNULL, stderr=writes,
        timeout=120,
    )  # fmt: skip
    os.close(writes)
    assert done.returncode == code
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("command", ["targets", "targets --json"])
def test_output_that_finds_no_room_is_an_error(command):
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-m", "slipway", *command.split()]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == FILE
    assert done.stderr.startswith("slipway: error: ")
    assert done.stderr.count("\n") == 1


def test_closed_streams_lead_nowhere():
    """As cron and daemons begin programs."""
    command = f"exec {sys.executable} -m slipway targets <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], timeout=120).returncode == DONE
