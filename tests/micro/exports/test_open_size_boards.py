"""Firmware of models with open sizes: one program, static memory, every size on the board."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from aot_models import build, check_program
from firmware_tools import needs
from tests.micro.test_aot_boards import bench_inputs

import slipway as tvm
from slipway import micro, relay
from slipway.errors import SlipwayError
from slipway.micro.board import find_board
from slipway.micro.emulator import run_image
from slipway.micro.model_config import model_config
from slipway.micro.model_library import unpack_model_library
from slipway.relay.dims import Dim, at
from slipway.relay.types import TensorType
from slipway.runtime.graph.graph_executor import GraphModule

RNG = np.random.default_rng(3)


def small(x, shift):
    """Shift integers down to int8."""
    return relay.cast(relay.clip(relay.right_shift(x, relay.const(np.int32(shift))), -128, 127),
                      "int8")  # fmt: skip


def weights(*shape):
    return relay.const(RNG.integers(-8, 8, shape).astype("int8"))


def images():
    """Convolutions over images whose height and width are open, and the sum of each channel."""
    x = relay.var("data", shape=(1, 3, Dim("h", 4, 9), Dim("w", 5, 8)), dtype="int8")
    y = relay.nn.conv2d(
        x, weights(8, 3, 3, 3), padding=(1, 1), channels=8, kernel_size=(3, 3), out_dtype="int32"
    )
    y = relay.nn.conv2d(
        small(y, 6), weights(8, 1, 3, 3), padding=(1, 1), strides=(2, 2), channels=8, groups=8,
        kernel_size=(3, 3), out_dtype="int32",
    )  # fmt: skip
    y = small(y, 5)
    return relay.Function([x], relay.Tuple([y, relay.sum(relay.cast(y, "int32"), axis=(2, 3))]))


def rows():
    """Two layers for one to five rows."""
    x = relay.var("data", shape=(Dim("n", 1, 5), 24), dtype="int8")
    y = small(relay.nn.dense(x, weights(16, 24), out_dtype="int32"), 5)
    return relay.Function([x], relay.nn.dense(y, weights(10, 16), out_dtype="int32"))


def words():
    """Rows of a table for each letter of a text, their sum, and the positions of two texts."""
    n = Dim("length", 1, 7)
    text = relay.var("text", shape=(n,), dtype="uint8")
    other = relay.var("other", shape=(n, 4), dtype="int8")
    table = relay.const(RNG.integers(-90, 90, (256, 4)).astype("int8"))
    found = relay.cast(relay.take(table, relay.cast(text, "int32"), axis=0), "int32")
    both = relay.add(found, relay.cast(other, "int32"))
    added = relay.cumsum(both, axis=0)
    return relay.Function([text, other], relay.Tuple([added, relay.max(both, axis=0)]))


@pytest.mark.parametrize("make", [images, rows, words])
@pytest.mark.parametrize("name", ["mps2-an386", "riscv32-virt"])
def test_every_size_is_exact_on_the_board(name, make, tmp_path):
    board = find_board(name)
    needs(board)
    mod = tvm.IRModule.from_expr(make())
    lib = build((mod, {}), target=board.target)
    options = {"board": name, "project_type": "bench", "warning_as_error": True}
    project = micro.generate_project("baremetal", lib, tmp_path / "p", options)
    project.build()
    project.close()
    status, text = run_image(board, tmp_path / "p/build/firmware.elf")
    assert status == 0, text
    found = [bytes.fromhex(word) for word in re.findall(r"OUT (\w+)", text)]
    outputs = len(lib.program.outputs)
    host = GraphModule(relay.build(mod, target="llvm")["default"](tvm.cpu(0)))
    for seed in range(1, 11):
        sizes = {s.name: s.low + (seed - 1) % (s.high - s.low + 1) for s in lib.program.sizes}
        for port in lib.program.inputs:
            known = {v: sizes[v.name] for d in port.type.shape for v in getattr(d, "variables", ())}
            shape = [at(d, known) for d in port.type.shape]
            whole = filled(lib, seed)[port.name]
            host.set_input(port.name, whole[: np.prod(shape)].reshape(shape))
        host.run()
        for i in range(outputs):
            wanted = host.get_output(i).numpy().tobytes()
            assert found[(seed - 1) * outputs + i].startswith(wanted), (sizes, i)


def filled(lib, seed):
    """What main_bench.c writes into the inputs, which lie in memory of the largest size."""
    inputs = [
        SimpleNamespace(name=p.name, type=TensorType((most(p.type),), p.type.dtype))
        for p in lib.program.inputs
    ]
    return bench_inputs(SimpleNamespace(program=SimpleNamespace(inputs=inputs)), seed)


def most(type_):
    """The most elements of a tensor."""
    return int(np.prod([getattr(d, "high", d) for d in type_.shape]))


def test_an_archive_says_the_sizes_and_the_memory_of_the_largest(tmp_path):
    lib = build((tvm.IRModule.from_expr(images()), {}))
    check_program(lib)
    micro.export_model_library_format(lib, tmp_path / "model.tar")
    metadata = unpack_model_library(tmp_path / "model.tar", tmp_path / "model")
    interface = metadata["interface"]
    assert interface["sizes"] == [
        {"name": "h", "low": 4, "high": 9}, {"name": "w", "low": 5, "high": 8}
    ]  # fmt: skip
    assert interface["inputs"]["data"]["shape"] == [1, 3, 9, 8]
    assert metadata["memory"]["functions"]["main"][0]["inputs"]["data"]["size"] == 3 * 9 * 8
    text = model_config(metadata, {})
    assert "#define MODEL_FOR_EACH_SIZE(_x_) _x_(h, 4, 9) _x_(w, 5, 8)" in text
    assert "model_sizes = {9, 8};" in text
    assert "#define MODEL_CALL(in, out) (tvmgen_default_run(in, out, &model_sizes))" in text


def test_a_session_runs_the_largest_size(tmp_path):
    """Another one is refused, and the next run is as before."""
    mod = tvm.IRModule.from_expr(rows())
    lib = build((mod, {}), target="c")
    project = micro.generate_project("crt", lib, tmp_path / "p")
    project.build()
    project.flash()
    largest = RNG.integers(-128, 128, (5, 24)).astype("int8")
    wanted = relay.create_executor("graph", mod, tvm.cpu(0), "llvm").evaluate()(largest).numpy()
    try:
        with micro.Session(project.transport()) as session:
            module = GraphModule(session.create_aot_executor())
            module.run(data=largest)
            np.testing.assert_array_equal(module.get_output(0).numpy(), wanted)
            with pytest.raises(SlipwayError):
                module.set_input("data", largest[:2])
            module.run(data=largest)
            np.testing.assert_array_equal(module.get_output(0).numpy(), wanted)
    finally:
        project.close()
