"""Lets the tests of this folder import what lies beside them and the models of tests/compiler."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "compiler"))
sys.path.insert(0, str(Path(__file__).parent))
