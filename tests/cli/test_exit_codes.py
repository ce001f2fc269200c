"""Every error has the exit code of its class, and the page says the same as the code."""

import inspect
import re
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
    "SlipwayError", "ArgumentValueError", "ArgumentTypeError", "ScheduleError", "TuningError",
    "InvalidShapeError", "LoweringError", "StructuralMismatchError", "CodegenError",
    "ExecutionError", "NotAvailableError",
}  # fmt: skip


def made(kind):
    if kind is errors.OpenShapeError:
        return kind("a", "b", {})
    return kind("a message")


@pytest.mark.parametrize("kind", CLASSES, ids=lambda c: c.__name__)
def test_every_error_has_a_code_of_its_own_class(kind):
    code = code_of(made(kind))
    assert code in MEANINGS
    assert code not in (exit_codes.DONE, exit_codes.USAGE)
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
        (("run", "broken.tar"), 8),
        (("run", "broken.tar", "--rpc-host", "127.0.0.1", "--rpc-port", "1"), 9),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else str(value),
)
def test_commands_end_with_them(arguments, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    (tmp_path / "broken.tar").write_bytes(b"no archive")
    done = slipway(*arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("slipway: error: ") or arguments == ("bogus",)
