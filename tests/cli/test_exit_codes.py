"""Every error has the exit code of its class, and the page says the same as the code."""

import inspect
import re
import socket
import subprocess
import sys

import pytest

from slipway import errors
from slipway.cli import exit_codes
from slipway.cli.exit_codes import MEANINGS, code_of

CLASSES = sorted(
    (c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, Exception)),
    key=lambda c: c.__name__,
)
# What is the user's, but of no class that a script could react to.
GENERAL = {
    "SlipwayError", "ScheduleError", "TuningError", "InvalidShapeError", "LoweringError",
    "StructuralMismatchError", "CodegenError", "ExecutionError", "NotAvailableError",
}  # fmt: skip
# A value that a function was given is one of the command line's.
VALUES = {"ArgumentValueError", "ArgumentTypeError", "RPCArgumentError"}


def made(kind):
    if kind is errors.OpenShapeError:
        return kind("a", "b", {})
    return kind("a message")


@pytest.mark.parametrize("kind", CLASSES, ids=lambda c: c.__name__)
def test_every_error_has_a_code_of_its_own_class(kind):
    code = code_of(made(kind))
    assert code in MEANINGS
    assert code != exit_codes.DONE
    assert (code == exit_codes.USAGE) == (kind.__name__ in VALUES)
    assert (code == exit_codes.FAILED) == (kind.__name__ in GENERAL)
    assert (code == exit_codes.DEFECT) == (kind is errors.InternalError)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.RPCTimeoutError("x"), 9),
        (errors.RPCConnectionError("x"), 9),
        (errors.RemoteError("x"), 10),
        (errors.OpNotImplemented("x"), 5),
        (errors.MissingPackageError("x"), 7),
        (FileNotFoundError(2, "no", "x"), 11),
        (ModuleNotFoundError("x"), 7),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError(), 3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_nearest_class_counts(error, code):
    assert code_of(error) == code


def test_the_page_lists_the_codes(repository):
    page = (repository / "docs" / "command_line.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", page, re.M)
    assert {int(code): text for code, text in rows} == MEANINGS


def slipway(*arguments):
    command = [sys.executable, "-m", "slipway", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("bogus",), 2),
        (("compile", "nowhere.onnx"), 11),
        (("compile", "broken.onnx"), 5),
        (("compile", "broken.onnx", "-o", "m.tra"), 2),
        (("compile", "broken.onnx", "--dim", "batch"), 2),
        (("fit", "broken.onnx"), 2),
        (("micro", "create", "broken.onnx", "p", "--module-name", "my model"), 2),
        (("micro", "create", "broken.onnx", "."), 11),
        (("run", "broken.tar", "--fill-mode", "radnom"), 2),
        (("compile", "broken.onnx", "--target", "raspberry-pi/4"), 6),
        (("fit", "broken.onnx", "--board", "nucleo-x"), 6),
        (("fit", "broken.onnx", "--board", "nowhere.toml"), 11),
        (("fit", "broken.onnx", "--board", "empty.toml"), 11),
        (("farm", "up", "--kinds", "aarch65"), 6),
        (("farm", "up", "--kinds", ","), 2),
        (("farm", "add", "cortex-m0"), 6),
        (("device", "add", "lab:22"), 2),
        (("device", "add", "pi@lab", "--port", "0"), 2),
        (("device", "add", "pi@lab", "--identity", "nowhere"), 11),
        (("micro", "create", "broken.onnx", "p", "--template", "zephir"), 2),
        (("micro", "create", "broken.onnx", "p", "--option", "boad=x"), 2),
        (("run", "broken.tar"), 8),
        (("run", "broken.tar", "--rpc-host", "127.0.0.1", "--rpc-port", "1"), 9),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else str(value),
)
def test_commands_end_with_them(arguments, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    (tmp_path / "broken.tar").write_bytes(b"no archive")
    (tmp_path / "empty.toml").touch()
    done = slipway(*arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("slipway: error: ") or arguments == ("bogus",)


SERVERS = ("rpc-server", "rpc-proxy", "rpc-tracker")


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--host", "192.0.2.1"), 9, "cannot listen on 192.0.2.1, port 0"),
        (("--port", "70000"), 2, "70000 is not a port"),
        (("--token-file", "none.txt"), 11, "none.txt: No such file"),
        (("--token-file", "binary.txt"), 11, "no text in UTF-8"),
        (("--token-file", "empty.txt"), 11, "it is empty"),
        (("--tls-cert", "empty.txt"), 11, "cannot use the TLS certificate"),
        (("--tls-key", "empty.txt"), 2, "--tls-key needs --tls-cert"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_servers_that_cannot_start_end_with_them(server, words, code, told, tmp_path, monkeypatch):
    """All of this ended with 2; a key without a certificate made a server without TLS."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe")
    (tmp_path / "empty.txt").touch()
    done = slipway(server, *(() if "--port" in words else ("--port", 0)), *words)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("slipway: error: ")
    assert told in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("rpc-server", "--serial", "nowhere"), 9),
        (("rpc-server", "--tracker", "nowhere"), 2),
        (("rpc-server", "--key", "two\nlines"), 2),
        (("rpc-proxy", "--plain-devices", "127.0.0.1:0"), 2),
        (("rpc-proxy", "--tls-ca", "nowhere.pem"), 11),
        (("rpc-tracker", "--state", "folder/that/is/none"), 11),
        (("rpc-tracker", "--log-format", "xml"), 2),
        (("rpc-query", "--tls-ca", "nowhere.pem"), 11),
        (("rpc-query", "--port", "99999"), 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_what_only_some_of_them_have(words, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = slipway(*words)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("slipway: error: ")


def test_a_port_that_is_taken_is_told_before_the_model_is_read(tmp_path):
    pytest.importorskip("uvicorn")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no model")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = slipway("serve", broken, "--port", taken.getsockname()[1])
    assert done.returncode == exit_codes.UNREACHABLE
    assert "Address already in use. Choose another --port" in done.stderr
    assert slipway("serve", broken, "--port", 0).returncode == exit_codes.MODEL


def test_a_search_that_lost_its_device_has_the_code_of_the_loss():
    """`slipway tune` whose server is killed ends as `run` does: 9, and not 1."""
    lost = errors.TuningError("no session with 10.0.0.1:9090 for nn.dense")
    lost.__cause__ = errors.RPCConnectionError("connection refused")
    assert code_of(lost) == exit_codes.UNREACHABLE
    refused = errors.TuningError("sixteen trials failed")
    refused.__cause__ = errors.ScheduleError("refused")
    assert code_of(refused) == exit_codes.FAILED
