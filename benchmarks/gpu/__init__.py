"""Layers and small networks on the GPUs that this machine has, beside peers."""

from benchmarks.gpu.command import main

__all__ = ["main"]
