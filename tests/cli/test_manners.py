"""What all commands have: --quiet, --json, --timeout, completion, and advice that is right."""

import json
import os
import shutil
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

import pytest

import slipway as package
from slipway import rpc
from slipway.deploy.device import open_session
from slipway.errors import RPCConnectionError, TargetError
from slipway.target import Target
from slipway.toolchain.elf import ElfFile

DIGITS = Path(str(files("slipway"))) / "models" / "digits" / "digits.onnx"
PRINTING = (
    "bisect", "bundle", "check", "compare", "compile", "device-server", "doctor", "explain", "fit",
    "profile",
    "quantize",
    "report", "rpc-query", "run", "size", "targets", "tune", "validate",
)  # fmt: skip


def slipway(*arguments, **environment):
    command = [sys.executable, "-m", "slipway", *map(str, arguments)]
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120", **environment}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=240)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    path = tmp_path_factory.mktemp("digits") / "digits.tar"
    return package.compile(DIGITS, quiet=True).save(path)


@pytest.mark.parametrize("where", ["before", "behind"])
def test_quiet_leaves_the_result_only(where, tmp_path):
    words = ["compile", DIGITS, "-o", tmp_path / "m.tar"]
    done = slipway("--quiet", *words) if where == "before" else slipway(*words, "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert "m.tar" in done.stdout
    loud = slipway(*words)
    assert "Compiling" in loud.stderr


def test_quiet_keeps_errors():
    done = slipway("compile", "nowhere.onnx", "--quiet")
    assert "nowhere.onnx" in done.stderr


def test_every_command_with_a_result_can_print_json(repository):
    own = dict(every_command())
    for name in PRINTING:
        assert "as_json" in own[name].callback.__annotations__, name
    page = (repository / "docs" / "command_line.md").read_text(encoding="utf-8")
    shown = sorted([*PRINTING, "device", "farm"])
    row = next(line for line in page.splitlines() if line.startswith("| `--json`"))
    assert row.split(": ", 1)[1].startswith(f"{', '.join(f'`{name}`' for name in shown)};")


def every_command(group=None, words=()):
    """Yield (words, command) of the whole tree."""
    import typer

    from slipway.cli.app import app

    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from every_command(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


def test_every_option_says_what_it_is_and_has_one_meaning():
    seen = {}
    for words, command in every_command():
        assert command.help, words
        for option in command.params:
            assert getattr(option, "help", None), (words, option.name)
            for flag in option.opts:
                if flag.startswith("--"):
                    seen.setdefault(flag, {}).setdefault(option.is_flag, []).append(words)
    clashes = {flag: kinds for flag, kinds in seen.items() if len(kinds) > 1}
    assert not clashes  # with a value in one command, without in another


def test_every_command_that_goes_to_a_device_has_the_same_four():
    found = {}
    for words, command in every_command():
        flags = {flag for option in command.params for flag in option.opts}
        if flags & {"--rpc-host", "--tracker", "--device"} and not words.startswith(
            ("rpc-server", "rpc-proxy", "web-device", "demo")
        ):
            found[words] = flags
    assert {"run", "profile", "tune", "bisect", "report", "compare", "chat", "serve", "doctor",
            "validate"} <= set(found)  # fmt: skip
    for words, flags in found.items():
        assert flags >= {"--token-file", "--tls-ca", "--timeout"}, words


def test_token_and_authority_of_a_file_reach_the_connection(tmp_path, artifact):
    token = tmp_path / "token.txt"
    token.write_text("of one's own\n")
    with rpc.Tracker("127.0.0.1", 0, silent=True, token="of one's own") as running:
        at = ("--port", running.port)
        assert slipway("rpc-query", *at, "--token-file", token, "--json").returncode == 0
        wrong = tmp_path / "wrong.txt"
        wrong.write_text("another")
        done = slipway("rpc-query", *at, "--token-file", wrong)
        assert done.returncode != 0
        assert "token" in done.stderr
        done = slipway("rpc-query", *at, "--tls-ca", tmp_path / "none.pem")
        assert "none.pem" in done.stderr
        done = slipway("run", artifact, "--rpc-host", "127.0.0.1", "--rpc-port", running.port,
                       "--tls-ca", "system", "--timeout", 2)  # fmt: skip
        assert done.returncode == 9
        assert "TLS" in done.stderr


def test_json_of_compile_and_run(artifact, tmp_path):
    done = slipway("compile", DIGITS, "-o", tmp_path / "m.tar", "--dump-code", "relay", "--json")
    found = json.loads(done.stdout)
    assert [Path(f["path"]).name for f in found["files"]] == ["m.tar", "m.relay"]
    assert found["files"][0]["bytes"] == (tmp_path / "m.tar").stat().st_size
    done = slipway("run", artifact, "--json", "--print-top", 2, "--print-time", "--profile")
    found = json.loads(done.stdout)
    (output,) = found["outputs"]
    assert output["shape"] == [1, 10]
    assert output["top"][0][1] == pytest.approx(output["max"])
    assert len(found["seconds"]) == 5
    assert found["profile"]["operators"]


def test_json_of_targets_and_fit():
    rows = json.loads(slipway("targets", "raspberry", "--json").stdout)
    assert {"name", "compiles_to", "target"} == set(rows[0])
    (board,) = json.loads(slipway("fit", DIGITS, "--board", "nucleo-l4r5zi", "--json").stdout)
    assert board["fits"] is True
    assert board["flash"] > 20000


def test_numbers_that_json_has_not():
    import numpy as np

    from slipway.cli.run import run_values

    text = json.dumps(run_values([np.array([np.nan, 1, np.inf])], 1), allow_nan=False)
    assert json.loads(text)["outputs"][0]["max"] == "nan"
    whole = run_values([np.array([-128, 3, -128], "int8"), np.array([2**53 + 1])], 1)["outputs"]
    assert [one["top"] for one in whole] == [[[1, 3]], [[0, 2**53 + 1]]]


def test_completion_knows_commands_and_options():
    words = {"_SLIPWAY_COMPLETE": "complete_bash", "COMP_WORDS": "slipway com", "COMP_CWORD": "1"}
    done = slipway(**words)
    assert set(done.stdout.split()) == {"compare", "compile"}
    words |= {"COMP_WORDS": "slipway compile --targ", "COMP_CWORD": "2"}
    assert "--target" in slipway(**words).stdout
    words |= {"COMP_WORDS": "slipway compile --target raspberry-pi/4b-aa", "COMP_CWORD": "3"}
    assert slipway(**words).stdout.split() == ["raspberry-pi/4b-aarch64"]


def test_completion_knows_targets_servers_and_boards():
    from slipway.cli.completions import board_names, server_names, target_names

    assert set(target_names("l")) == {"llvm"}
    assert all(Target(name) for name in target_names("raspberry-pi/"))
    assert server_names("aarch") == ["aarch64-linux"]
    assert board_names("nucleo-f4") == ["nucleo-f446re"]
    assert board_names("none of them") == []


@pytest.mark.parametrize(
    ("shell", "words"),
    [("bash", "complete -o"), ("zsh", "#compdef slipway"), ("fish", "complete --command slipway")],
)
def test_completion_is_for_the_shell_that_is_named(shell, words, tmp_path):
    """The name was passed over: what was printed and installed was for the shell around it."""
    done = slipway("--show-completion", shell)
    assert words in done.stdout
    if found := shutil.which(shell):  # each shell reads what is for it
        (tmp_path / "script").write_text(done.stdout)
        begin = "autoload -U compinit; compinit -D; " * (shell == "zsh")
        command = [found, "-c", f"{begin}. {tmp_path / 'script'}"]
        read = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (read.returncode, read.stderr) == (0, "")


def test_an_unknown_shell_has_no_completion():
    done = slipway("--install-completion", "tcsh")
    assert done.returncode == 2
    assert "bash, zsh, fish" in " ".join(done.stderr.split())


# Advice


def test_a_port_may_stand_behind_the_host():
    """As `slipway.load(...).on("pi:9090")` takes it; "pi:9090:9090" was no name that was known."""
    from slipway.cli.client_options import parted

    given = {"rpc_host": "pi.local:9091", "rpc_port": 9090}
    assert parted(given) == {"rpc_host": "pi.local", "rpc_port": 9091}
    for host in (None, "pi.local", "::1", "fe80::1:9090", "pi:x"):
        assert parted({"rpc_host": host, "rpc_port": 9090})["rpc_host"] == host


@pytest.fixture(scope="module")
def tracker():
    with rpc.Tracker("127.0.0.1", 0, silent=True) as running:
        address = ("127.0.0.1", running.port)
        with (
            rpc.Server("127.0.0.1", 0, key="rpi4", tracker_addr=address, silent=True),
            rpc.connect_tracker(*address) as client,
        ):
            deadline = time.monotonic() + 60
            while not client.summary()["queue_info"].get("rpi4", {}).get("free"):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield f"127.0.0.1:{running.port}"


def test_an_unknown_kind_is_told_at_once(tracker, artifact):
    start = time.monotonic()
    with pytest.raises(RPCConnectionError, match=r"it has 'rpi4'. Did you mean 'rpi4'"):
        open_session("rpi5", tracker=tracker)
    assert time.monotonic() - start < 5
    done = slipway("run", artifact, "--tracker", tracker, "--rpc-key", "rpi5")
    assert "no device of kind 'rpi5'" in done.stderr
    assert done.returncode == 9  # as of `tune`


def test_timeout_ends_the_wait_for_a_device_in_use(tracker, artifact):
    host, port = tracker.split(":")
    with rpc.connect_tracker(host, int(port)) as client, client.request("rpi4", timeout=60):
        start = time.monotonic()
        done = slipway("run", artifact, "--tracker", tracker, "--rpc-key", "rpi4", "--timeout", 1)
        assert time.monotonic() - start < 60
    assert done.returncode == 9, done.stderr


def test_a_model_file_is_compiled_before_it_runs():
    assert "slipway compile" in slipway("run", DIGITS).stderr


def test_another_format_is_not_called_damaged(tmp_path):
    (tmp_path / "m.tflite").write_bytes(b"x")
    (tmp_path / "c.npz").write_bytes(b"x")
    done = slipway("quantize", tmp_path / "m.tflite", "--calibration", tmp_path / "c.npz")
    assert done.returncode == 5
    assert "this is a tflite model" in done.stderr


@pytest.mark.parametrize("prefix", ["raspberry-pi/4", "raspberry-pi/4b", "rpi/4b"])
def test_the_beginning_of_a_tag_is_completed(prefix):
    from slipway.target import Target

    with pytest.raises(TargetError, match="Did you mean 'raspberry-pi/4b-aarch64'"):
        Target(prefix)


def test_the_advice_for_a_cpu_lists_cpus():
    from slipway.target import Target

    with pytest.raises(TargetError, match="--cpus aarch64` lists them"):
        Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a99")
    assert "cortex-a72" in slipway("targets", "--cpus", "aarch64").stdout.split()
    assert slipway("targets", "--cpus", "aarch65").returncode == 6


def test_a_library_for_hexagon_has_all_it_needs(tmp_path):
    """Its kernels divide by calling functions of a compiler's runtime."""
    done = slipway("compile", DIGITS, "--target", "hexagon", "-o", tmp_path / "m.so")
    assert done.returncode == 0, done.stderr
    assert ElfFile((tmp_path / "m.so").read_bytes(), "m.so").undefined == []
