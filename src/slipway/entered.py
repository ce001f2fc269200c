"""The objects whose ``with`` runs: of one thread, and of one task of asyncio, the innermost last.

A thread begins outside of all, that of ``asyncio.to_thread`` too, although it takes a copy of its
task's context variables: what is entered there says which thread entered it.
"""

from __future__ import annotations

from contextvars import ContextVar
from threading import get_ident
from typing import Generic, TypeVar

T = TypeVar("T")


class Entered(Generic[T]):
    """A stack for each thread and task."""

    def __init__(self, name: str) -> None:
        self._entered: ContextVar[tuple[int, tuple[T, ...]]] = ContextVar(name, default=(0, ()))

    def all(self) -> tuple[T, ...]:
        """Return what this thread or task is inside of, the innermost last."""
        thread, entered = self._entered.get()
        return entered if thread == get_ident() else ()

    def innermost(self) -> T | None:
        """Return the innermost one, or None."""
        entered = self.all()
        return entered[-1] if entered else None

    def enter(self, item: T) -> None:
        """Be inside `item`, which becomes the innermost one."""
        self._entered.set((get_ident(), (*self.all(), item)))

    def leave(self, item: T) -> bool:
        """Leave `item`, wherever it stands; return whether it was entered here."""
        inside = list(self.all())
        positions = [n for n, other in enumerate(inside) if other is item]
        if positions:
            del inside[positions[-1]]
            self._entered.set((get_ident(), tuple(inside)))
        return bool(positions)
