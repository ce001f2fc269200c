"""``python -m benchmarks NAME [options]``: run one of the benchmarks of this folder.

Without a name it lists them.  Each takes ``--help``.
"""

import importlib
import sys
from pathlib import Path


def main() -> int:
    here = Path(__file__).parent
    files = [*here.glob("*.py"), *(p.parent for p in here.glob("*/__init__.py"))]
    names = sorted(
        p.stem for p in files if not p.stem.startswith("_") and not p.stem.endswith("_worker")
    )
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        print(__doc__.strip().splitlines()[0])
        print("benchmarks:", ", ".join(names))
        return 2
    name = sys.argv.pop(1)
    sys.argv[0] = f"python -m benchmarks {name}"
    return importlib.import_module(f"benchmarks.{name}").main() or 0


if __name__ == "__main__":
    sys.exit(main())
