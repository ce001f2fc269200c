"""The exit codes of the ``slipway`` command: one for each class of failure.

docs/command_line.md lists them for scripts; they do not change between releases.
"""

from __future__ import annotations

from slipway import errors

DONE = 0
FAILED = 1  # and: the answer is no (check, bisect, doctor, farm status)
USAGE = 2  # the command line cannot be read, or gives a value that no function takes
DEFECT = 3  # of Slipway itself
LIMIT = 4  # what was measured is beyond a limit that the command line set (compare, fit)
MODEL = 5
TARGET = 6
MISSING = 7  # a compiler, an emulator, a package
ARTIFACT = 8
UNREACHABLE = 9
DEVICE = 10
FILE = 11
INTERRUPTED = 130
UNREAD = 141

MEANINGS = {
    DONE: "done",
    FAILED: "it failed, or the answer is no: `check`, `bisect`, `doctor` or `farm status` found "
    "something",
    USAGE: "the command line cannot be read, or gives a value that cannot be used",
    DEFECT: "a defect of Slipway, which it asks to report",
    LIMIT: "beyond a limit that was set: `compare`, `validate`, or a board is too small",
    MODEL: "the model cannot be read or uses what is not supported",
    TARGET: "no such target, board, CPU or feature",
    MISSING: "a compiler, emulator or package is missing or failed",
    ARTIFACT: "the artifact is none, is damaged, too new, or for another processor",
    UNREACHABLE: "a device or tracker cannot be reached, a deadline passed, or a port is taken",
    DEVICE: "the device refused, or reported an error of its own",
    FILE: "a file is missing, or cannot be read or written",
    INTERRUPTED: "interrupted with Ctrl-C",
    UNREAD: "who read the output went away, as `head` does",
}


class OptionError(errors.SlipwayError, ValueError):
    """An option of the command line is not one, does not go with another, or is missing."""


# The first class that an error is of counts.
_CLASSES: tuple[tuple[type[BaseException], int], ...] = (
    (KeyboardInterrupt, INTERRUPTED),
    (BrokenPipeError, UNREAD),
    (OptionError, USAGE),
    (errors.InternalError, DEFECT),
    (errors.RPCArgumentError, USAGE),
    (errors.RPCConnectionError, UNREACHABLE),
    (errors.RPCTimeoutError, UNREACHABLE),
    (errors.RPCError, DEVICE),
    (errors.DeviceError, DEVICE),
    (errors.MissingPackageError, MISSING),
    (errors.ModelError, MODEL),
    (errors.OpError, MODEL),
    (errors.DiagnosticError, MODEL),
    (errors.TargetError, TARGET),
    (errors.DoesNotFitError, LIMIT),
    (errors.ToolchainError, MISSING),
    (ModuleNotFoundError, MISSING),
    (errors.ArtifactError, ARTIFACT),
    (errors.FileError, FILE),
    (errors.DownloadError, FILE),
    (errors.ArgumentValueError, USAGE),
    (errors.ArgumentTypeError, USAGE),
    (errors.SlipwayError, FAILED),
    (OSError, FILE),
)


def code_of(error: BaseException) -> int:
    """Return the exit code for what ended a command; a search that lost its device, the loss's."""
    if isinstance(error, errors.TuningError) and isinstance(error.__cause__, errors.RPCError):
        return code_of(error.__cause__)
    return next((code for kind, code in _CLASSES if isinstance(error, kind)), DEFECT)
