"""Who is told why something takes long that happens once: the command line, and nobody else."""

from __future__ import annotations

from collections.abc import Callable


def _nobody(_: str) -> None:
    pass


_told: Callable[[str], object] = _nobody
_last = ""


def tell(message: str) -> None:
    """Tell whoever waits what is being made; once, where it fails and is tried again."""
    global _last
    if message != _last:
        _last = message
        _told(message)


def tell_to(told: Callable[[str], object]) -> None:
    """Let `told` hear from now on what this process makes once, before it is made."""
    global _told
    _told = told
