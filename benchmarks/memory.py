"""Arena sizes by planning algorithm for every TFLite model.

python -m benchmarks.memory    prints the table of docs/memory.md
"""

from __future__ import annotations

import time

from benchmarks.micro import SHARED, compile_model
from slipway.compiler.memory_plan import ALGORITHMS, check_plan, plan

TARGET = "c -keys=arm_cpu -mcpu=cortex-m4"
# TFLM 90b983c2: most bytes of tensors, inputs and outputs too, that exist at one time.
ACTIVATION_PEAKS = {
    "kws_ref_model": 16_000,
    "vww_96_int8": 55_296,
    "pretrainedResnet_quant": 49_152,
    "ad01_int8": 768,
    "str_ww_ref_model": 6_656,
    "micro_speech_quantized": 5_960,
    "person_detect": 55_296,
}


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
        io = {"tir.usmp.enable": True, "tir.usmp.use_workspace_io": True}
        whole = compile_model(path.stem, TARGET, io).program.plan
        yield path.stem, made, apart, whole, cells


def main():
    heads = ["model", "lower bound", "best", "best without overlaps",
             "with inputs and outputs", "TFLM", *ALGORITHMS]  # fmt: skip
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for name, made, apart, whole, cells in rows():
        peak = f"{ACTIVATION_PEAKS[name]:,}" if name in ACTIVATION_PEAKS else ""
        best = f"{made.size_bytes:,}{'*' if made.proven else ''} ({made.algorithm})"
        print(
            f"| {name} | {made.lower_bound_bytes:,} | {best} | {apart.size_bytes:,} "
            f"| {whole.size_bytes:,} | {peak} | " + " | ".join(cells) + " |",
            flush=True,
        )


if __name__ == "__main__":
    main()
