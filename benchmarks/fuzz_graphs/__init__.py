"""Differential fuzzing of whole graphs: ``python -m benchmarks fuzz_graphs``."""

from benchmarks.fuzz_graphs.command import main as main
