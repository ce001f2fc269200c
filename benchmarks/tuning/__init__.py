"""What tuning gains, and what searches learn from each other."""

from benchmarks.tuning.command import main

__all__ = ["main"]
