"""Finds the models of tests/compiler and the tools of tests/micro for the tests of this folder."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]
sys.path[:0] = [str(TESTS / "compiler"), str(TESTS / "micro")]
