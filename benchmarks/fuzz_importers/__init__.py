"""Damaged files for what reads them: ``python -m benchmarks fuzz_importers``."""

from benchmarks.fuzz_importers.command import main as main
