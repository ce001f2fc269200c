"""Mutators (classic): how a search changes what was sampled; the engine changes one step at a time.

They are taken where scripts give their probabilities, and change nothing.
"""

from __future__ import annotations


class Mutator:
    """Changes what was sampled."""


class MutateTileSize(Mutator):
    """Moves a factor from one loop of a tile to another."""


class MutateUnroll(Mutator):
    """Takes another number of steps to unroll."""


class MutateParallel(Mutator):
    """Takes another number of threads' jobs."""

    def __init__(self, max_jobs_per_core: int = 16) -> None:
        self.max_jobs_per_core = max_jobs_per_core


class MutateComputeLocation(Mutator):
    """Computes a block elsewhere."""
