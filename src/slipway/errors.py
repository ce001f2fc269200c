"""Every exception that Slipway raises on purpose.

::

    SlipwayError
    ├── ArgumentValueError a value that a function cannot use
    ├── ArgumentTypeError  a value of a type that a function cannot use
    ├── TargetError        a target string, CPU, feature or tag that is not known
    ├── ScheduleError      a schedule primitive used where it cannot apply
    ├── LoweringError      loops that cannot be lowered or fail verification
    ├── CodegenError       a construct that a code generator cannot express
    ├── ToolchainError     a compiler, linker or emulator is missing or failed
    ├── ArtifactError      an exported library that is damaged, too new, or for another CPU
    ├── ExecutionError     a call into a compiled function with unusable arguments
    ├── DeviceError        a device's driver that is missing, refuses or fails
    ├── ModelError         a model file that cannot be read or uses what is not supported
    │   └── OpNotImplemented     an operator of it that cannot be imported
    ├── DiagnosticError    what is wrong with a graph
    │   ├── TypeInferenceError   an operator applied to arguments of the wrong type
    │   └── GraphTextError       a text that is no graph (a ModelError, too)
    ├── DownloadError      a file that cannot be fetched
    ├── NotAvailableError  a part of classic TVM that Slipway does not have
    ├── InternalError      a defect of Slipway itself, with what to report
    └── RPCError           a remote session failed
        ├── RPCConnectionError   the device cannot be reached, or the link broke
        ├── RPCTimeoutError      a deadline passed
        └── RemoteError          the device reported an error of its own

A message says what was asked, what is wrong with the actual values, and what to do.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from slipway.version import VERSION

P = ParamSpec("P")
R = TypeVar("R")


class SlipwayError(RuntimeError):
    """Base class of all errors that Slipway raises on purpose: a RuntimeError, as TVMError was."""


class ArgumentValueError(SlipwayError, ValueError):
    """A function was given a value that it cannot use."""


class ArgumentTypeError(SlipwayError, TypeError):
    """A function was given a value of a type that it cannot use."""


class TargetError(SlipwayError, ValueError):
    """A target string, CPU name, feature or tag that is not known."""


class ScheduleError(SlipwayError, ValueError):
    """A schedule primitive was used where it cannot apply."""


class TuningError(SlipwayError, RuntimeError):
    """Tuning cannot go on: the device gives no results, or its trials cannot be kept."""


class InvalidShapeError(SlipwayError, ValueError):
    """Tensors, axes or layouts that a ready-made tensor expression cannot take."""


class LoweringError(SlipwayError, ValueError):
    """Loops that cannot be lowered, or that fail the verifier."""


class StructuralMismatchError(SlipwayError, ValueError):
    """Two pieces of IR that were to be structurally equal are not."""


class CodegenError(SlipwayError):
    """A construct that a code generator cannot express for its target."""


class ToolchainError(SlipwayError, RuntimeError):
    """A compiler, linker or emulator is missing or failed."""


class DoesNotFitError(ToolchainError):
    """Firmware that has more bytes than its board."""


class ArtifactError(SlipwayError, RuntimeError):
    """An exported library that is damaged, of an unknown version, or made for another CPU."""


class ExecutionError(SlipwayError, ValueError):
    """A compiled function or model was called with unusable arguments."""


class DeviceError(SlipwayError, RuntimeError):
    """A device beside the processor has no driver here, or its driver refused or failed."""


class ModelError(SlipwayError, ValueError):
    """A model file that cannot be read, or that uses what is not supported."""


class OpenShapeError(ModelError):
    """A model that leaves sizes of its inputs open, which a compiled one must know.

    `problem` says which; `shapes` are shapes of all its inputs with open sizes, by name, for an
    example or to go on with; `dimensions` are the names that the file has for open sizes.
    """

    def __init__(
        self,
        problem: str,
        advice: str,
        shapes: dict[str, tuple[int, ...]],
        dimensions: Sequence[str] = (),
    ) -> None:
        super().__init__(f"{problem} {advice}")
        self.problem = problem
        self.shapes = shapes
        self.dimensions = tuple(dimensions)


class DiagnosticError(SlipwayError):
    """Base of what is wrong with a graph: its types, or its text (a classic name)."""


class TypeInferenceError(DiagnosticError, TypeError):
    """An operator was applied to arguments whose types do not fit it."""


class GraphTextError(ModelError, DiagnosticError):
    """The text of a graph cannot be read; the message says line and column."""


class OpError(SlipwayError):
    """Base of what is wrong with an operator of a model (a classic name, as those below)."""


class OpNotImplemented(ModelError, OpError, NotImplementedError):
    """A model uses operators that cannot be imported; the message names them all."""


class OpAttributeRequired(ModelError, OpError, AttributeError):
    """An operator of a model lacks an attribute."""


class OpAttributeInvalid(ModelError, OpError, AttributeError):
    """An attribute of an operator of a model has a value that it cannot have."""


class OpAttributeUnImplemented(ModelError, OpError, NotImplementedError):
    """An attribute of an operator of a model asks for what is not supported."""


class OpNotInferred(ModelError, OpError, ValueError):
    """What an operator of a model needs to know beforehand depends on its inputs."""


class FileError(SlipwayError, OSError):
    """A file that is missing, or that does not hold what is read from it."""


class DownloadError(SlipwayError, OSError):
    """A file that cannot be fetched from where it is said to be."""


class NotAvailableError(SlipwayError, NotImplementedError):
    """A part of classic TVM that is not there; the message says why, and what to use instead."""


class MissingPackageError(ModelError, ToolchainError, NotAvailableError):
    """What reads, writes or serves a model needs a package that is not installed."""


class InternalError(SlipwayError, RuntimeError):
    """A defect of Slipway: an exception that nobody raised on purpose, which is its `__cause__`."""


class RPCError(SlipwayError, RuntimeError):
    """A remote session failed.

    `failure` is the protocol's number for why the peer refused a greeting (3: the token), 0 where
    it is about something else.
    """

    def __init__(self, message: str = "", failure: int = 0) -> None:
        super().__init__(message)
        self.failure = int(failure)


class RPCConnectionError(RPCError, ConnectionError):
    """The device cannot be reached, or the link to it broke."""


class RPCArgumentError(RPCError, ArgumentValueError):
    """An address, a port or a kind of device that is none."""


class RPCTimeoutError(RPCError, TimeoutError):
    """A deadline passed before the device answered."""


class RemoteError(RPCError):
    """The device reported an error of its own; `kind` is the remote exception's class name."""

    def __init__(self, message: str, kind: str = "RuntimeError") -> None:
        super().__init__(message)
        self.kind = kind


# What classic scripts catch.
TVMError = SlipwayError
RPCSessionTimeoutError = RPCTimeoutError


def register_error(func_name: Any = None, cls: type[BaseException] | None = None) -> Any:
    """Let an exception of the caller's class come out of compiled code as what it was.

    A decorator, with or without a name (the classic function).  It does nothing here: every class
    is known when one of its exceptions passes through compiled code.
    """
    if isinstance(func_name, type):
        return func_name
    return (lambda given: given) if cls is None else cls


def did_you_mean(word: str, known: Iterable[str], limit: int = 3) -> str:
    """Return " Did you mean 'a' or 'b'?" for the nearest known words, or an empty string."""
    import difflib

    names = [name for name in known if isinstance(name, str)]
    matches = difflib.get_close_matches(str(word), names, n=limit, cutoff=0.6)
    if not matches:
        return ""
    return " Did you mean " + " or ".join(repr(n) for n in matches) + "?"


def reason_of(error: BaseException) -> str:
    """Return why something failed: of a system's error without its number and the file's name."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is no text in UTF-8, from byte {error.start} on"
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def with_words(told: str, words: str) -> str:
    """Return what went wrong, and behind it what a program said of it, where it said anything."""
    words = words.strip()
    return f"{told}:\n{words}" if words else f"{told}."


def printable(words: str, kept: str = "") -> str:
    """Return `words`, which may come from anywhere, as text that does nothing to a terminal.

    Characters that are not printable become escapes, but those of `kept`.
    """
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() or c in kept else ascii(c)[1:-1] for c in words)


def internal_error(doing: str, error: BaseException) -> InternalError:
    """Return what to raise ``from error`` where Slipway failed while `doing` something."""
    lines = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
    frames = [(Path(file), line) for file, line in _frames(error.__traceback__)]
    ours = [(file, line) for file, line in frames if _PACKAGE in file.parents]
    where = ""
    if ours:
        where = f" ({ours[-1][0].relative_to(_PACKAGE.parent).as_posix()}:{ours[-1][1]})"
    return InternalError(
        f"a defect of Slipway {VERSION}, not of what it was given: {doing} ended with {what}"
        f"{where}. Please report it with this line and what `slipway bundle -- COMMAND` writes: "
        "the traceback, versions, the model with made-up weights, all without secrets"
    )


def defects_named(doing: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: an exception that is no answer to the caller becomes an `InternalError`.

    Left as they are: the errors of this module, of files and of packages that are missing, and
    whatever passed through code of the user's (a callback, a pass, a converter).
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except (SlipwayError, OSError, ImportError):
                raise
            except MemoryError as error:
                raise SlipwayError(f"{doing} needs more memory than this process gets") from error
            except Exception as error:
                if isinstance(error, TypeError) and not _takes(function, args, kwargs):
                    raise _wrong_call(function, error, kwargs) from None
                if passed_through_others(error):
                    raise
                raise internal_error(doing, error) from error

        return wrapped

    return decorate


def _takes(function: Callable[..., object], args: Any, kwargs: Any) -> bool:
    """Return whether `function` can be called with these arguments."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _wrong_call(
    function: Callable[..., object], error: TypeError, kwargs: Iterable[str]
) -> ArgumentTypeError:
    """Return the error of arguments that `function` does not take, with the names it does."""
    known = list(inspect.signature(function).parameters)
    meant = "".join(did_you_mean(name, known) for name in kwargs if name not in known)
    return ArgumentTypeError(f"{error}.{meant} It takes {', '.join(known)}")


_PACKAGE = Path(__file__).parent


@functools.cache
def _libraries() -> frozenset[Path]:
    import sysconfig

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return frozenset(Path(sysconfig.get_path(name)) for name in names)


def passed_through_others(error: BaseException) -> bool:
    """Return whether an error came through code that is neither Slipway's nor a library's.

    The first frame is that of the handler, which is ours.
    """
    for file, _ in _frames(error.__traceback__):
        path = Path(file)
        if file.startswith("<") or _PACKAGE in path.parents:
            continue
        if not any(folder in path.parents for folder in _libraries()):
            return True
    return False


def _frames(traceback: TracebackType | None) -> Iterable[tuple[str, int]]:
    while traceback is not None:
        yield traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next
