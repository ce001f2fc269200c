"""How long compiling takes, and where."""

from benchmarks.compile_time.command import main

__all__ = ["main"]
