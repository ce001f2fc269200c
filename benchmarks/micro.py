"""int8 models on emulated microcontrollers: flash, RAM, instructions, beside TFLM with CMSIS-NN.

python -m benchmarks.micro [--board mps2-an386 ...] [--model kws_ref_model ...] [--json OUT]

Without options: every model on a Cortex-M4, M7, M33, M55 and on RISC-V.

Each model is compiled to C, linked into the bench firmware, and run on pseudo-random inputs in
QEMU, where one instruction takes one nanosecond.  Outputs are compared with this machine's (target
llvm), which for the first inputs must be the bytes that TFLM gave (golden_tflm.json).  Flash and
RAM are what the model adds to the same firmware without a model: code without start-up and
printing, arena, stack below the run function.  Inputs and outputs lie in the arena, as TFLM's do.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

import numpy as np

import slipway as tvm
from slipway import micro, relay
from slipway.micro.board import find_board
from slipway.micro.emulator import run_image
from slipway.micro.image_size import read_map, stack_bound
from slipway.micro.model_library import only_model, unpack_model_library
from slipway.runtime.graph.graph_executor import GraphModule

# As in TFLM, whose arena holds them; an input's bytes serve other tensors after its last use.
ONE_ARENA = {"tir.usmp.enable": True, "tir.usmp.use_workspace_io": True}
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
BOARDS = ("mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547", "riscv32-virt")
# TFLM 90b983c2 with CMSIS-NN: instructions on the M4, M7 and M55; code flash and RAM on the M4.
# The M33 runs the M4's code.  There is no figure for RISC-V, where CMSIS-NN does not exist.
PEERS = {
    "kws_ref_model": (7_697_709, 7_640_000, 1_810_000, 52_216, 24_212),
    "vww_96_int8": (24_101_516, 24_000_000, 6_560_000, 52_216, 102_100),
    "pretrainedResnet_quant": (29_863_913, 30_000_000, 4_910_000, 50_020, 56_388),
    "ad01_int8": (582_890, 580_000, 150_000, 26_880, 3_400),
    "str_ww_ref_model": (2_226_936, 2_190_000, 410_000, 49_680, 17_800),
    "micro_speech_quantized": (1_495_351, 1_490_000, 1_010_000, 42_988, 8_196),
    "person_detect": (22_928_049, 22_700_000, 6_510_000, 42_472, 83_704),
}
_INSTRUCTIONS_OF = {"mps2-an386": 0, "mps2-an505": 0, "mps2-an500": 1, "mps3-an547": 2}
# Parts of the bench firmware that are not the model's.
HARNESS = ("board_", "Reset_Handler", "fault", "systick", "main", "startup", "bench_", "print")


def import_model(name):
    return relay.frontend.from_tflite((SHARED / f"{name}.tflite").read_bytes())


def compile_model(name, target, config=None):
    mod, params = import_model(name)
    with tvm.transform.PassContext(opt_level=3, config=config or {}):
        return relay.build(
            mod,
            target=tvm.target.Target(target),
            params=params,
            executor=relay.backend.Executor("aot", {"unpacked-api": True, "interface-api": "c"}),
            runtime=relay.backend.Runtime("crt"),
        )


def input_bytes(seed, count):
    """Return what the bench firmware feeds the model for a seed."""
    state = seed
    for _ in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        yield state >> 24


def reference_outputs(name, golden, count=10):
    """Return the output for seed 1, 2, ... in hexadecimal digits, computed on this machine."""
    mod, params = import_model(name)
    with tvm.transform.PassContext(opt_level=3):
        host = GraphModule(relay.build(mod, "llvm", params=params)["default"](tvm.cpu(0)))
    (param,) = mod["main"].params
    kind = param.type_annotation
    found = []
    for seed in range(1, count + 1):
        raw = bytes(input_bytes(seed, int(np.prod(kind.shape))))
        host.set_input(0, np.frombuffer(raw, kind.dtype).reshape(kind.shape))
        host.run()
        found.append(host.get_output(0).numpy().tobytes().hex())
    recorded = golden.get(name, [])
    if found[: len(recorded)] != recorded:
        raise SystemExit(f"{name}: this machine's outputs are not TFLM's")
    return found


def measure(name, board_name, folder, expected):
    board = find_board(board_name)
    lib = compile_model(name, board.target, ONE_ARENA)
    archive = micro.export_model_library_format(lib, folder / f"{name}.tar")
    options = {"board": board_name, "project_type": "bench"}
    built = folder / f"{name}-{board.name}"
    project = micro.generate_project_from_mlf("baremetal", built, archive, options)
    project.build()
    project.close()
    status, text = run_image(board, built / "build/firmware.elf", timeout_s=300)
    outputs = re.findall(r"OUT (\w+)", text)
    counts = [int(n) for n in re.findall(r"NS (\d+)", text)]
    model = only_model(unpack_model_library(archive, folder / "unpacked"))
    code = sum(
        p.size_bytes
        for p in read_map(built / "build/firmware.map", model)
        if p.kind == "code" and not p.owner.startswith(HARNESS)
    )
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
        "outputs_checked": len(outputs),
        "bit_exact": outputs == expected,
    }


def peer_of(row):
    """Return TFLM's (instructions, code, RAM) for a row; code and RAM are the M4's."""
    peer = PEERS.get(row["model"])
    column = _INSTRUCTIONS_OF.get(row["board"])
    if peer is None or column is None:
        return None, None, None
    is_m4 = row["board"] == "mps2-an386"
    return peer[column], *(peer[3:] if is_m4 else (None, None))


def table(rows):
    lines = [
        "| model | board | instructions | TFLM | ratio | code | TFLM | ratio | weights | arena "
        "| RAM | TFLM | ratio | exact |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [row["model"], row["board"]]
        values = (row["instructions"], row["code_bytes"], row["ram_bytes"])
        compared = []
        for value, peer in zip(values, peer_of(row), strict=True):
            shown = f"{value:,}" if value is not None else "none"
            ratio = f"{value / peer:.2f}x" if peer and value is not None else ""
            compared.append([shown, f"{peer:,}" if peer else "", ratio])
        cells += [*compared[0], *compared[1]]
        cells += [f"{row['weights_bytes']:,}", f"{row['arena_bytes']:,}", *compared[2]]
        cells.append(str(row["outputs_checked"]) if row["bit_exact"] else "NO")
        lines.append("| " + " | ".join(cells) + " |")
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
        expected = reference_outputs(name, golden)
        for board in args.board or BOARDS:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(measure(name, board, Path(folder), expected))
            print(f"{name} on {board}: {rows[-1]['instructions']}", file=sys.stderr, flush=True)
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
