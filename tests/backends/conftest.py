"""Packages of this folder can be imported as any other."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
