"""Every exception that Slipway raises on purpose.

::

    SlipwayError
    ├── TargetError        a target string, CPU, feature or tag that is not known
    ├── ScheduleError      a schedule primitive used where it cannot apply
    ├── LoweringError      loops that cannot be lowered or fail verification
    ├── CodegenError       a construct that a code generator cannot express
    ├── ToolchainError     a compiler, linker or emulator is missing or failed
    ├── ArtifactError      an exported library that is damaged, too new, or for another CPU
    ├── ExecutionError     a call into a compiled function with unusable arguments
    ├── ModelError         a model file that cannot be read or uses what is not supported
    ├── TypeInferenceError an operator applied to arguments of the wrong type
    └── RPCError           a remote session failed
        ├── RPCConnectionError   the device cannot be reached, or the link broke
        ├── RPCTimeoutError      a deadline passed
        └── RemoteError          the device reported an error of its own

A message says what was asked, what is wrong with the actual values, and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SlipwayError(Exception):
    """Base class of all errors that Slipway raises on purpose."""


class TargetError(SlipwayError, ValueError):
    """A target string, CPU name, feature or tag that is not known."""


class ScheduleError(SlipwayError, ValueError):
    """A schedule primitive was used where it cannot apply."""


class LoweringError(SlipwayError, ValueError):
    """Loops that cannot be lowered, or that fail the verifier."""


class CodegenError(SlipwayError):
    """A construct that a code generator cannot express for its target."""


class ToolchainError(SlipwayError, RuntimeError):
    """A compiler, linker or emulator is missing or failed."""


class ArtifactError(SlipwayError, RuntimeError):
    """An exported library that is damaged, of an unknown version, or made for another CPU."""


class ExecutionError(SlipwayError, ValueError):
    """A compiled function or model was called with unusable arguments."""


class ModelError(SlipwayError, ValueError):
    """A model file that cannot be read, or that uses what is not supported."""


class OpenShapeError(ModelError):
    """A model that leaves sizes of its inputs open, which a compiled one must know.

    `problem` says which; `shapes` are shapes of all its inputs with open sizes, by name, for an
    example or to go on with.
    """

    def __init__(self, problem: str, advice: str, shapes: dict[str, tuple[int, ...]]) -> None:
        super().__init__(f"{problem} {advice}")
        self.problem = problem
        self.shapes = shapes


class TypeInferenceError(SlipwayError, TypeError):
    """An operator was applied to arguments whose types do not fit it."""


class RPCError(SlipwayError, RuntimeError):
    """A remote session failed."""


class RPCConnectionError(RPCError, ConnectionError):
    """The device cannot be reached, or the link to it broke."""


class RPCTimeoutError(RPCError, TimeoutError):
    """A deadline passed before the device answered."""


class RemoteError(RPCError):
    """The device reported an error of its own; `kind` is the remote exception's class name."""

    def __init__(self, message: str, kind: str = "RuntimeError") -> None:
        super().__init__(message)
        self.kind = kind


def did_you_mean(word: str, known: Iterable[str], limit: int = 3) -> str:
    """Return " Did you mean 'a' or 'b'?" for the nearest known words, or an empty string."""
    near = difflib.get_close_matches(word, list(known), n=limit, cutoff=0.6)
    if not near:
        return ""
    return " Did you mean " + " or ".join(repr(n) for n in near) + "?"
