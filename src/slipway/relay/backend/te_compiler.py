"""``relay.backend.te_compiler``: the cache of kernels that classic TVM has beside a build."""

from __future__ import annotations


class TECompiler:
    """What scripts clear between builds.  Each build compiles its kernels: nothing is kept here."""

    def clear(self) -> None:
        """Do nothing: there is nothing to forget."""


def get() -> TECompiler:
    """Return the compiler of kernels."""
    return TECompiler()
