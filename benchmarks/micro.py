"""int8 models on emulated microcontrollers: flash, RAM, instructions, beside TFLM with CMSIS-NN.

python -m benchmarks.micro [--board mps2-an386 ...] [--model kws_ref_model ...] [--json OUT]

Each model is compiled to C, linked into the bench firmware, and run on pseudo-random inputs in
QEMU, where one instruction takes one nanosecond.  Outputs are compared with the bytes that TFLM
gave for the same inputs (golden_tflm.json).  Flash and RAM are what the model adds to the same
firmware without a model: code without start-up and printing, arena, stack below the run function.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from pathlib import Path

import slipway as tvm
from slipway import micro, relay
from slipway.micro.board import find_board
from slipway.micro.emulator import run_image
from slipway.micro.image_size import read_map, stack_bound
from slipway.micro.model_library import only_model, unpack_model_library

SHARED = Path(__file__).resolve().parents[2] / "shared" / "models" / "tflite"
MODELS = (
    "kws_ref_model",
    "vww_96_int8",
    "pretrainedResnet_quant",
    "ad01_int8",
    "str_ww_ref_model",
    "micro_speech_quantized",
    "person_detect",
    "hello_world_int8",
)
# TFLM 90b983c2 with CMSIS-NN on the Cortex-M4: instructions, code flash, RAM, activation peak.
PEERS = {
    "kws_ref_model": (7_697_709, 52_216, 24_212, 16_000),
    "vww_96_int8": (24_101_516, 52_216, 102_100, 55_296),
    "pretrainedResnet_quant": (29_863_913, 50_020, 56_388, 49_152),
    "ad01_int8": (582_890, 26_880, 3_400, 768),
    "str_ww_ref_model": (2_226_936, 49_680, 17_800, 6_656),
    "micro_speech_quantized": (1_495_351, 42_988, 8_196, 5_960),
    "person_detect": (22_928_049, 42_472, 83_704, 55_296),
}
# Parts of the bench firmware that are not the model's.
HARNESS = ("board_", "Reset_Handler", "fault", "systick", "main", "startup", "bench_", "print")


def compile_model(name, target):
    data = (SHARED / f"{name}.tflite").read_bytes()
    mod, params = relay.frontend.from_tflite(data)
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(
            mod,
            target=tvm.target.Target(target),
            params=params,
            executor=relay.backend.Executor("aot", {"unpacked-api": True, "interface-api": "c"}),
            runtime=relay.backend.Runtime("crt"),
        )


def measure(name, board_name, folder, golden):
    board = find_board(board_name)
    lib = compile_model(name, board.target)
    archive = micro.export_model_library_format(lib, folder / f"{name}.tar")
    options = {"board": board.name, "project_type": "bench"}
    project = micro.generate_project_from_mlf(
        "baremetal", folder / f"{name}-{board_name}", archive, options
    )
    project.build()
    project.close()
    built = folder / f"{name}-{board_name}"
    status, text = run_image(board, built / "build/firmware.elf", timeout_s=300)
    outputs = re.findall(r"OUT (\w+)", text)
    counts = [int(n) for n in re.findall(r"NS (\d+)", text)]
    model = only_model(unpack_model_library(archive, folder / "unpacked"))
    code = sum(
        p.size_bytes
        for p in read_map(built / "build/firmware.map", model)
        if p.kind == "code" and not p.owner.startswith(HARNESS)
    )
    expected = golden.get(name, [])
    stack = stack_bound(built / "build", "tvmgen_default_run") or 0
    return {
        "model": name,
        "board": board_name,
        "exit": status,
        "instructions": min(counts) if counts else None,
        "code_bytes": code,
        "weights_bytes": model["memory"]["functions"]["main"][0]["constants_size_bytes"],
        "arena_bytes": lib.program.workspace_bytes,
        "lower_bound_bytes": lib.program.plan.lower_bound_bytes,
        "io_bytes": lib.program.io_bytes,
        "stack_bytes": stack,
        "ram_bytes": lib.program.workspace_bytes + lib.program.io_bytes + stack,
        "outputs_checked": min(len(outputs), len(expected)),
        "bit_exact": bool(expected)
        and all(a == b for a, b in zip(outputs, expected, strict=False)),
    }


def table(rows):
    lines = [
        "| model | board | instructions | vs TFLM | code | vs TFLM "
        "| weights | arena | RAM | vs TFLM | exact |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        peer = PEERS.get(row["model"]) if row["board"] == "mps2-an386" else None

        def ratio(value, index, peer=peer):
            return f"{value / peer[index]:.2f}x" if peer and value else ""

        lines.append(
            f"| {row['model']} | {row['board']} | {row['instructions']:,} "
            f"| {ratio(row['instructions'], 0)} | {row['code_bytes']:,} "
            f"| {ratio(row['code_bytes'], 1)} | {row['weights_bytes']:,} | {row['arena_bytes']:,} "
            f"| {row['ram_bytes']:,} | {ratio(row['ram_bytes'], 2)} "
            f"| {row['outputs_checked'] if row['bit_exact'] else 'NO'} |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--board", action="append")
    parser.add_argument("--model", action="append")
    parser.add_argument("--json")
    args = parser.parse_args()
    golden = read_golden()
    rows = []
    for name in args.model or MODELS:
        for board in args.board or ["mps2-an386"]:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(measure(name, board, Path(folder), golden))
            print(rows[-1], flush=True)
    print(table(rows))
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1))


def read_golden():
    """Return {model: [hex bytes of the output for seed 1, 2, ...]}."""
    models = json.loads((SHARED / "golden_tflm.json").read_text())["models"]
    return {
        name.removesuffix(".tflite"): [
            model["outputs"][str(i + 1)] for i in range(len(model["outputs"]))
        ]
        for name, model in models.items()
        if all(isinstance(value, str) for value in model["outputs"].values())
    }


if __name__ == "__main__":
    main()
