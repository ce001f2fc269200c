"""A decoder in NumPy, in float64 and without caches: what compiled models are held against."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
