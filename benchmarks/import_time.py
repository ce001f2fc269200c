"""How long reading a model takes: parsing, conversion, constant folding and type inference.

    python -m benchmarks import_time MODEL.onnx [MODEL.tflite ...] [--repeat 5] [--limit 0.5]

Prints the first time, which loads the converters, and the best of the later ones, in seconds of
processor time.  With `--limit` the exit code is 1 where the best one is longer.
"""

import argparse
import sys
import time
from pathlib import Path


def seconds(path):
    from slipway import relay

    read = relay.frontend.from_tflite if path.suffix == ".tflite" else relay.frontend.from_onnx
    start = time.process_time()
    mod, _ = read(str(path))
    relay.transform.InferType()(mod)
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--limit", type=float, default=float("inf"))
    args = parser.parse_args()
    slow = 0
    print(f"{'model':32s} {'first':>8s} {'best':>8s}")
    for path in args.models:
        first, *later = (seconds(path) for _ in range(args.repeat + 1))
        best = min(later)
        slow += best > args.limit
        print(f"{path.name:32s} {first:8.3f} {best:8.3f}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
