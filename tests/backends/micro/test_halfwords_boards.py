"""Layers with 16 bits in their data or results, with the instructions of each core."""

import re

import pytest
from aot_models import build
from firmware_tools import needs
from tests.compiler.aot.test_aot_halfwords import every_layer
from tests.micro.test_aot_boards import bench_inputs

import slipway as tvm
from slipway import micro, relay
from slipway.micro.board import find_board
from slipway.micro.emulator import run_image
from slipway.runtime.graph.graph_executor import GraphModule


@pytest.mark.parametrize("name", ["mps2-an386", "mps3-an547", "riscv32-virt"])
def test_layers_are_bit_exact_on_the_board(name, tmp_path):
    board = find_board(name)
    needs(board)
    mod, _, _ = every_layer()
    lib = build((mod, {}), target=board.target)
    assert len(lib.library) == len(lib.prim_funcs)
    options = {"board": name, "project_type": "bench"}
    project = micro.generate_project("baremetal", lib, tmp_path / "p", options)
    project.build()
    project.close()
    status, text = run_image(board, tmp_path / "p/build/firmware.elf")
    assert status == 0, text
    host = GraphModule(relay.build(mod, target="llvm")["default"](tvm.cpu(0)))
    outputs = re.findall(r"OUT (\w+)", text)
    for seed in range(1, 11):
        for port, value in bench_inputs(lib, seed).items():
            host.set_input(port, value)
        host.run()
        count = host.get_num_outputs()
        expected = [host.get_output(i).numpy().tobytes().hex() for i in range(count)]
        assert outputs[(seed - 1) * count : seed * count] == expected
