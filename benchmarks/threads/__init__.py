"""What models and operators would take on more cores than this machine has."""

from benchmarks.threads.command import main

__all__ = ["main"]
