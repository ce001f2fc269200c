"""Quantised TFLite models on emulated boards: ten inputs, every output byte."""

import json
import re

import numpy as np
import pytest
from firmware_tools import needs

import slipway as tvm
from slipway import micro, relay
from slipway.micro.board import find_board
from slipway.micro.emulator import run_image
from slipway.runtime.graph.graph_executor import GraphModule

QUICK = [
    ("kws_ref_model", "mps2-an386"),
    ("kws_ref_model", "mps3-an547"),
    ("str_ww_ref_model", "riscv32-virt"),
]
MODELS = (
    "kws_ref_model", "vww_96_int8", "pretrainedResnet_quant", "ad01_int8", "str_ww_ref_model",
    "micro_speech_quantized", "person_detect", "hello_world_int8",
)  # fmt: skip
BOARDS = ("mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547", "riscv32-virt", "riscv64-virt")
# Multiply-adds of one inference, dead channels included (../shared/notes/peers.md).
MACS = {
    "kws_ref_model": 2_656_768,
    "vww_96_int8": 7_489_664,
    "pretrainedResnet_quant": 12_501_632,
    "ad01_int8": 264_192,
    "str_ww_ref_model": 826_368,
    "micro_speech_quantized": 336_000,
    "person_detect": 7_157_888,
}
SLOW = [(m, b) for m in MODELS for b in BOARDS if (m, b) not in QUICK]


def bench_bytes(seed, count):
    state = seed
    for _ in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        yield state >> 24


def check(model, board_name, shared, folder):
    board = find_board(board_name)
    needs(board)
    data = (shared / "models" / "tflite" / f"{model}.tflite").read_bytes()
    mod, params = relay.frontend.from_tflite(data)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(
            mod,
            target=board.target,
            params=params,
            executor=relay.backend.Executor("aot", {"interface-api": "c"}),
            runtime=relay.backend.Runtime("crt"),
        )
        host = GraphModule(relay.build(mod, "llvm", params=params)["default"](tvm.cpu(0)))
    options = {"board": board_name, "project_type": "bench"}
    project = micro.generate_project("baremetal", lib, folder / "p", options)
    project.build()
    project.close()
    status, text = run_image(board, folder / "p/build/firmware.elf", timeout_s=250)
    assert status == 0, text[-500:]
    outputs = re.findall(r"OUT (\w+)", text)
    assert len(outputs) == 10
    if "riscv" in board_name and model in MACS:
        assert min(map(int, re.findall(r"NS (\d+)", text))) <= 3.5 * MACS[model]
    (port,) = lib.program.inputs
    for seed, output in enumerate(outputs, 1):
        raw = bytes(bench_bytes(seed, port.type.size_bytes))
        host.set_input(0, np.frombuffer(raw, port.type.dtype).reshape(port.type.shape))
        host.run()
        assert host.get_output(0).numpy().tobytes().hex() == output, f"input {seed}"
    golden = json.loads((shared / "models" / "tflite" / "golden_tflm.json").read_text())
    for seed, expected in golden["models"][f"{model}.tflite"]["outputs"].items():
        assert outputs[int(seed) - 1] == expected, f"TFLM's output for input {seed}"


@pytest.mark.parametrize(("model", "board"), QUICK)
def test_model_is_bit_exact_on_the_board(model, board, shared, tmp_path):
    check(model, board, shared, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("model", "board"), SLOW)
def test_every_model_is_bit_exact_on_every_board(model, board, shared, tmp_path):
    check(model, board, shared, tmp_path)
