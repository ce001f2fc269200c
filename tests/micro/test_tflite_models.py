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
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import make
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


# Sums that no kernel by hand takes.

RNG = np.random.default_rng(8)


def weights(*shape):
    return relay.const(RNG.integers(-127, 128, shape).astype("int8"))


def sixteen_bits():
    """3x3 over a border of an image of int16, as files with 16-bit activations have it."""
    x = relay.var("x", shape=(1, 8, 7, 6), dtype="int16")
    conv = make("qnn.conv2d_nhwc")
    sums = conv(x, weights(3, 3, 6, 10), padding=(1, 1, 1, 1), out_dtype="int64")
    return x, sums, 8 * 7 * 10 * 9 * 6


def groups():
    x = relay.var("x", shape=(1, 9, 8, 12), dtype="int8")
    conv = make("qnn.conv2d_nhwc")
    sums = conv(x, weights(3, 3, 4, 9), padding=(1, 1, 1, 1), groups=3, pad_value=-5)
    return x, sums, 9 * 8 * 9 * 9 * 4


PLAIN = {"sixteen bits": (sixteen_bits, 10), "groups": (groups, 12)}


@pytest.mark.parametrize("name", PLAIN)
def test_a_product_takes_few_instructions(name, tmp_path):
    """It took 20 and 17 where each one asked whether it is inside, and two registers held sums."""
    board = find_board("mps2-an386")
    needs(board)
    made, most = PLAIN[name]
    x, sums, products = made()
    shifted = relay.right_shift(sums, relay.const(11, sums.checked_type.dtype))
    function = relay.Function([x], relay.cast(relay.clip(shifted, -128, 127), "int8"))
    mod = tvm.IRModule.from_expr(function)
    executor = relay.backend.Executor("aot", {"interface-api": "c"})
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(
            mod, target=board.target, executor=executor, runtime=relay.backend.Runtime("crt")
        )
    options = {"board": board.name, "project_type": "bench"}
    project = micro.generate_project("baremetal", lib, tmp_path / "p", options)
    project.build()
    project.close()
    status, text = run_image(board, tmp_path / "p/build/firmware.elf", timeout_s=250)
    assert status == 0, text[-500:]
    outputs = re.findall(r"OUT (\w+)", text)
    assert len(outputs) == 10
    kind = lib.program.inputs[0].type
    for seed, output in enumerate(outputs, 1):
        given = np.frombuffer(bytes(bench_bytes(seed, kind.size_bytes)), kind.dtype)
        want = interpret(mod, given.reshape(kind.shape))
        assert want.tobytes().hex() == output, f"input {seed}"
    assert min(map(int, re.findall(r"NS (\d+)", text))) <= most * products
