"""Arena sizes by planning algorithm for every TFLite model.

python -m benchmarks.memory    prints the table of docs/memory.md
"""

from __future__ import annotations

import time

from benchmarks.micro import SHARED, compile_model
from slipway.executor.memory_plan import ALGORITHMS, check_plan, plan

TARGET = "c -keys=arm_cpu -mcpu=cortex-m4"


def rows():
    for path in sorted(SHARED.glob("*.tflite")):
        try:
            lib = compile_model(path.stem, TARGET)
        except Exception as error:
            print(f"<!-- {path.stem}: {type(error).__name__}: {error} -->")
            continue
        made = lib.program.plan
        cells = []
        for algorithm in ALGORITHMS:
            begin = time.perf_counter()
            result = plan(made.blocks, algorithm, shares=made.shares)
            check_plan(result)
            mark = "*" if result.proven else ""
            cells.append(f"{result.size_bytes:,}{mark} ({time.perf_counter() - begin:.2f} s)")
        apart = plan(made.blocks, "best")
        yield path.stem, made, apart, cells


def main():
    heads = ["model", "lower bound", "best", "best without overlaps", *ALGORITHMS]
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for name, made, apart, cells in rows():
        best = f"{made.size_bytes:,}{'*' if made.proven else ''} ({made.algorithm})"
        print(
            f"| {name} | {made.lower_bound_bytes:,} | {best} | {apart.size_bytes:,} | "
            + " | ".join(cells)
            + " |",
            flush=True,
        )


if __name__ == "__main__":
    main()
