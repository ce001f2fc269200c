"""Models from relay to firmware: archive, project, emulated board, outputs compared."""

import json
import re
import subprocess

import numpy as np
import pytest
from aot_models import build, check_program, keyword_net, residual_net
from firmware_tools import needs

import slipway as tvm
from slipway import micro, relay
from slipway.errors import ArtifactError
from slipway.ir.memory_pools import (
    ConstantMemoryPools,
    ConstantPoolInfo,
    PoolInfoProperties,
    WorkspaceMemoryPools,
    WorkspacePoolInfo,
)
from slipway.micro.board import find_board
from slipway.micro.emulator import run_image
from slipway.micro.model_library import ports_of, unpack_model_library
from slipway.relay.op_registry import get
from slipway.relay.ops.qnn.conv import IntegerConvAttrs, IntegerDenseAttrs
from slipway.relay.ops.qnn.rescale import rescale
from slipway.runtime.graph.graph_executor import GraphModule


def bench_inputs(lib, seed):
    """The bytes that main_bench.c fills the inputs with; as floats they may be anything."""
    state = seed
    inputs = {}
    for port in lib.program.inputs:
        data = bytearray()
        for _ in range(port.type.size_bytes):
            state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
            data.append(state >> 24)
        inputs[port.name] = np.frombuffer(bytes(data), port.type.dtype).reshape(port.type.shape)
    return inputs


def int8_net():
    """Integer arithmetic only, so that any bytes are an input and every core gives the same."""
    rng = np.random.default_rng(5)
    data = relay.var("data", shape=(1, 3, 12, 12), dtype="int8")
    w1 = relay.const(rng.integers(-8, 8, (8, 3, 3, 3)).astype("int8"))
    x = relay.nn.conv2d(data, w1, padding=(1, 1), channels=8, kernel_size=(3, 3), out_dtype="int32")
    x = relay.cast(relay.clip(relay.right_shift(x, relay.const(np.int32(6))), -128, 127), "int8")
    w2 = relay.const(rng.integers(-8, 8, (8, 1, 3, 3)).astype("int8"))
    x = relay.nn.conv2d(
        x, w2, padding=(1, 1), channels=8, groups=8, kernel_size=(3, 3), out_dtype="int32"
    )
    x = relay.cast(relay.clip(relay.right_shift(x, relay.const(np.int32(5))), -128, 127), "int8")
    x = relay.nn.batch_flatten(relay.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2)))
    w3 = relay.const(rng.integers(-8, 8, (10, 288)).astype("int8"))
    return tvm.IRModule.from_expr(relay.nn.dense(x, w3, out_dtype="int32")), {}


LLVM = {
    "mps2-an386": "llvm -mtriple=thumbv7em-none-eabihf -mcpu=cortex-m4",
    "riscv64-virt": "llvm -mtriple=riscv64-unknown-none-elf -mattr=+m,+a,+c,-f,-d",
}
BOARDS = ["mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547", "riscv32-virt", "riscv64-virt"]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *((name, None) for name in BOARDS),
        ("mps2-an386", LLVM["mps2-an386"]),
        pytest.param("riscv64-virt", LLVM["riscv64-virt"], marks=pytest.mark.long),
    ],
)
def test_integer_model_is_bit_exact_on_the_board(name, target, tmp_path):
    board = find_board(name)
    needs(board)
    lib = build(int8_net(), target=target or board.target)
    project = micro.generate_project(
        "baremetal", lib, tmp_path / "p", {"board": name, "project_type": "bench"}
    )
    project.build()
    project.flash()
    project.close()
    status, text = run_image(board, tmp_path / "p/build/firmware.elf")
    assert status == 0, text
    assert outputs_of_host(lib) == re.findall(r"OUT (\w+)", text)


def outputs_of_host(lib):
    """The outputs for the ten inputs of main_bench.c, as it prints them."""
    host = GraphModule(relay.build(int8_net()[0], target="llvm")["default"](tvm.cpu(0)))
    found = []
    for seed in range(1, 11):
        host.set_input("data", bench_inputs(lib, seed)["data"])
        host.run()
        found.append(host.get_output(0).numpy().tobytes().hex())
    return found


def symbols_of(elf):
    """The address of each symbol of an image."""
    text = subprocess.run(["nm", elf], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in text.splitlines())
    return {row[2]: int(row[0], 16) for row in rows if len(row) == 3}


def test_pools_and_constants_lie_in_the_memories_of_the_board(tmp_path):
    """Tensors in RAM and external memory, constants in FLASH and copied ones, bit-exact."""
    board = find_board("mps2-an386")
    needs(board)

    def size(kind, name, limit=-1):
        return kind(name, pool_info_properties=PoolInfoProperties(size_hint_bytes=limit))

    lib = build(
        int8_net(),
        target=board.target,
        config={"tir.usmp.enable": True, "tir.usmp.use_workspace_io": True},
        workspace_memory_pools=WorkspaceMemoryPools(
            [size(WorkspacePoolInfo, "ram", 1200), size(WorkspacePoolInfo, "psram")]
        ),
        constant_memory_pools=ConstantMemoryPools(
            [size(ConstantPoolInfo, "psram", 3000), size(ConstantPoolInfo, "flash")]
        ),
    )
    check_program(lib)
    assert all(lib.program.plan.pool_bytes(i) for i in range(2))
    assert not lib.program.io_bytes  # inputs and outputs are counted once, in the pools
    assert set(lib.constant_pools.values()) == {"psram", "flash"}
    project = micro.generate_project(
        "baremetal", lib, tmp_path / "p",
        {"board": board.name, "project_type": "bench", "warning_as_error": True},
    )  # fmt: skip
    project.build()
    project.close()
    elf = tmp_path / "p/build/firmware.elf"
    address = symbols_of(elf)
    constants = [
        (address[f"constant_{i}"], lib.constant_pools[name])
        for i, name in enumerate(lib.program.constants)
    ]
    pools = [(address["model_pool_ram"], "ram"), (address["model_pool_psram"], "psram")]
    for at, name in (*constants, *pools):
        memory = board.memory(name.upper())
        assert memory.origin <= at < memory.origin + memory.size
    status, text = run_image(board, elf)
    assert status == 0, text
    assert outputs_of_host(lib) == re.findall(r"OUT (\w+)", text)


TWO_MODELS = """
#include <string.h>
#include <tvmgen_one.h>
#include <tvmgen_two.h>
#include "board.h"
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
static uint8_t arena[LARGER(TVMGEN_ONE_SRAM_WORKSPACE_POOL_SIZE,
                            TVMGEN_TWO_SRAM_WORKSPACE_POOL_SIZE)] __attribute__((aligned(16)));
static float x[250], a[64], b[64], y[12], z[64], w[64];
int main(void) {
  struct tvmgen_one_workspace_pools one = {arena};
  struct tvmgen_two_workspace_pools two = {arena};
  for (int i = 0; i < 250; ++i) x[i] = (float)(i % 7) * 0.25f;
  for (int i = 0; i < 64; ++i) { a[i] = (float)(i % 5); b[i] = (float)i * 0.125f; }
  for (int round = 0; round < 2; ++round) {
    struct tvmgen_one_inputs in1 = {x};
    struct tvmgen_one_outputs out1 = {y};
    struct tvmgen_two_inputs in2 = {a, b};
    struct tvmgen_two_outputs out2 = {z, w};
    memset(arena, 0xA5, sizeof arena);
    if (tvmgen_one_run(&in1, &out1, &one) != 0 || tvmgen_two_run(&in2, &out2, &two) != 0) return 1;
    board_print("OUT "); board_print_hex(y, sizeof y);
    board_print(" "); board_print_hex(z, sizeof z); board_print("\\n");
  }
  return 0;
}
"""


def test_two_models_of_one_image_share_an_arena(tmp_path):
    board = find_board("mps2-an386")
    needs(board)
    pools = {"workspace_memory_pools": WorkspaceMemoryPools([WorkspacePoolInfo("sram")])}
    one = build(keyword_net(), target=board.target, mod_name="one", **pools)
    two = build(residual_net(), target=board.target, mod_name="two", **pools)
    archive = micro.export_model_library_format([one, two], tmp_path / "two.tar")
    project = micro.generate_project_from_mlf(
        "baremetal", tmp_path / "p", archive,
        {"board": board.name, "project_type": "example_project"},
    )  # fmt: skip
    (tmp_path / "p/board/main_example.c").write_text(TWO_MODELS)
    project.build()
    project.close()
    status, text = run_image(board, tmp_path / "p/build/firmware.elf")
    assert status == 0, text
    inputs = {
        "data": np.array([i % 7 * 0.25 for i in range(250)], "float32").reshape(1, 1, 25, 10),
        "a": np.array([i % 5 for i in range(64)], "float32").reshape(4, 16),
        "b.1": np.array([i * 0.125 for i in range(64)], "float32").reshape(4, 16),
    }
    lines = re.findall(r"OUT (\w+) (\w+)", text)
    assert len(lines) == 2
    models = ((keyword_net(), ["data"]), (residual_net(), ["a", "b.1"]))
    for position, ((mod, params), names) in enumerate(models):
        host = GraphModule(relay.build(mod, target="llvm", params=params)["default"](tvm.cpu(0)))
        for name in names:
            host.set_input(name, inputs[name])
        host.run()
        for found in lines:
            ours = np.frombuffer(bytes.fromhex(found[position]), "float32")
            wanted = host.get_output(0).numpy().reshape(-1)
            np.testing.assert_allclose(ours, wanted, rtol=2e-5, atol=1e-6)
    with pytest.raises(ArtifactError, match=r"unique names.* one, one"):
        micro.export_model_library_format([one, one], tmp_path / "same.tar")


def test_session_runs_a_float_model_with_two_outputs(tmp_path):
    board = find_board("mps2-an500")
    needs(board)
    lib = build(residual_net(), target=board.target, mod_name="skip")
    project = micro.generate_project(
        template_dir="baremetal",
        module=lib,
        generated_project_dir=tmp_path / "p",
        options={"board": board.name, "project_type": "host_driven"},
    )
    project.build()
    project.flash()
    host = GraphModule(relay.build(residual_net()[0], target="llvm")["default"](tvm.cpu(0)))
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((4, 16)).astype("float32") for _ in range(2))
    with micro.Session(project.transport()) as session:
        module = GraphModule(session.create_aot_executor())
        for each in (module, host):
            each.set_input(0, a)
            each.set_input(1, b)
            each.run()
        for index in range(2):
            np.testing.assert_allclose(
                module.get_output(index).numpy(), host.get_output(index).numpy(), rtol=1e-5,
                atol=1e-6,
            )  # fmt: skip
    project.close()


def test_archive_describes_memory_per_function_and_is_reproducible(tmp_path):
    lib = build(keyword_net(), mod_name="kws")
    path = micro.export_model_library_format(lib, tmp_path / "a.tar")
    again = micro.export_model_library_format(build(keyword_net(), mod_name="kws"), tmp_path / "b")
    assert path.read_bytes() == again.read_bytes()
    metadata = unpack_model_library(path, tmp_path / "x")
    main = metadata["modules"]["kws"]["memory"]["functions"]["main"][0]
    assert metadata["memory"]["functions"]["main"][0] == main
    assert main["workspace_size_bytes"] == lib.program.workspace_bytes
    assert main["io_size_bytes"] == 1000 + 48
    assert main["inputs"] == {"data": {"dtype": "float32", "size": 1000}}
    described = {"dtype": "float32", "size": 1000, "shape": [1, 1, 25, 10], "name": "data"}
    assert ports_of(metadata, "inputs") == {"data": described}
    operators = metadata["memory"]["functions"]["operator_functions"]
    assert {o["function_name"] for o in operators} == set(lib.graph.kernels)
    assert (tmp_path / "x/codegen/host/src/kws_lib0.c").is_file()
    assert (tmp_path / "x/codegen/host/include/tvmgen_kws.h").is_file()
    assert (tmp_path / "x/parameters/kws.params").stat().st_size > 0
    assert "conv2d" in (tmp_path / "x/src/kws.relay").read_text()
    assert metadata["version"] == 7
    assert metadata["modules"]["kws"]["style"] == "full-model"
    assert "#include" in (tmp_path / "x/runtime/src/graph.c").read_text()
    assert (tmp_path / "x/runtime/include/slipway/image.h").is_file()


def test_archives_of_graph_executor_and_of_single_operators(tmp_path):
    mod, params = keyword_net()
    lib = relay.build(mod, target="c", params=params)
    micro.export_model_library_format(lib, tmp_path / "graph.tar")
    metadata = unpack_model_library(tmp_path / "graph.tar", tmp_path / "g")
    assert metadata["executors"] == ["graph"]
    assert metadata["memory"]["sids"]
    graph = json.loads((tmp_path / "g/executor-config/graph/default.graph").read_text())
    assert graph["nodes"]
    x = tvm.te.placeholder((8,), name="x")
    y = tvm.te.compute((8,), lambda i: x[i] + 1.0, name="y")
    operator = tvm.build(tvm.te.create_schedule(y.op), [x, y], "c", name="add_one")
    micro.export_model_library_format(operator, tmp_path / "op.tar")
    assert unpack_model_library(tmp_path / "op.tar", tmp_path / "o")["style"] == "operator"
    assert "add_one" in (tmp_path / "o/codegen/host/src/add_one_lib0.c").read_text()


SHAPES = {
    # data (height, width, channels), kernel, strides, dilation, padding (top, left, bottom, right)
    "depthwise": [
        ((7, 6, 8), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
        ((6, 7, 40), (3, 3), (2, 2), (1, 1), (0, 0, 1, 1)),
        ((9, 9, 3), (4, 2), (3, 4), (1, 1), (0, 3, 2, 0)),
        ((8, 8, 19), (3, 3), (1, 1), (2, 1), (2, 1, 2, 1)),
        ((8, 8, 19), (3, 2), (1, 1), (1, 3), (1, 3, 1, 3)),
        ((7, 7, 24), (5, 5), (1, 1), (1, 1), (2, 2, 2, 2)),
        ((12, 1, 33), (10, 1), (1, 1), (1, 1), (2, 0, 0, 0)),
        ((1, 20, 5), (1, 17), (1, 2), (1, 1), (0, 8, 0, 8)),
        ((5, 5, 16), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    ],
    "convolution": [
        ((5, 5, 16), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
        ((6, 5, 48), (1, 1), (2, 2), (1, 1), (0, 0, 0, 0)),
        ((6, 6, 3), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
        ((7, 9, 5), (3, 2), (2, 1), (1, 2), (0, 1, 2, 1)),
        ((9, 8, 1), (7, 8), (2, 2), (1, 1), (3, 3, 3, 3)),
    ],
    "product": [((1, 1, 1),), ((1, 1, 37),), ((1, 1, 128),)],
}
UNITS = (1, 4, 7, 10, 16)


def layer(kind, seed, shape, kernel=(1, 1), strides=(1, 1), dilation=(1, 1), padding=(0,) * 4):
    """A quantised layer as importers write it, of random weights, -128 among them."""
    rng = np.random.default_rng(seed)
    attrs = {"strides": strides, "dilation": dilation, "padding": padding, "pad_value": -7}
    data = relay.var("data", shape=(1, *shape), dtype="int8")
    units = shape[2] if kind == "depthwise" else UNITS[seed % len(UNITS)]
    size = (*kernel, units) if kind == "depthwise" else (*kernel, shape[2], units)
    weight = rng.integers(-128, 128, size[-2:] if kind == "product" else size).astype("int8")
    name = {"depthwise": "depthwise_conv2d_nhwc", "convolution": "conv2d_nhwc"}.get(kind)
    if name is None:
        data = relay.var("data", shape=(1, shape[2]), dtype="int8")
        x = get("qnn.dense_packed")(data, relay.const(weight), attrs=IntegerDenseAttrs())
    else:
        x = get(f"qnn.{name}")(data, relay.const(weight), attrs=IntegerConvAttrs(**attrs))
    count = units if seed % 3 else 1
    multiplier = rng.integers(1 << 30, (1 << 31) - 1, count).astype("int32")
    shift = rng.integers(-13, -6, count).astype("int32")
    if count == 1:
        multiplier, shift = multiplier.reshape(()), shift.reshape(())
    x = relay.add(x, relay.const(rng.integers(-30000, 30001, units).astype("int32")))
    x = rescale(x, relay.const(multiplier), relay.const(shift))
    x = relay.add(x, relay.const(np.int32(rng.integers(-128, 128))))
    low, high = ((-128, 127), (-100, 90))[seed % 2]
    return data, relay.cast(relay.clip(x, low, high), "int8")


def everything():
    """One model of all layers, each with an input of its own."""
    cases = [(kind, case) for kind, cases in SHAPES.items() for case in cases]
    inputs, outputs = [], []
    for seed, (kind, case) in enumerate(cases):
        data, x = layer(kind, seed, *case)
        named = relay.var(f"data{seed}", type_annotation=data.type_annotation)
        outputs.append(relay.bind(x, {data: named}))
        inputs.append(named)
    return tvm.IRModule.from_expr(relay.Function(inputs, relay.Tuple(outputs))), {}


def test_layers_of_all_forms_are_bit_exact_with_vectors(tmp_path):
    board = find_board("mps3-an547")
    needs(board)
    model = everything()
    lib = build(model, target=board.target)
    assert [k.family for k in lib.library.values()] == ["mve"] * len(lib.program.inputs)
    project = micro.generate_project(
        "baremetal", lib, tmp_path / "p", {"board": board.name, "project_type": "bench"}
    )
    project.build()
    project.close()
    status, text = run_image(board, tmp_path / "p/build/firmware.elf")
    assert status == 0, text
    found = re.findall(r"OUT (\w+)", text)
    with tvm.transform.PassContext(opt_level=0):
        host = GraphModule(relay.build(model[0], target="llvm")["default"](tvm.cpu(0)))
    count = len(lib.program.inputs)
    for seed in range(1, 11):
        for name, data in bench_inputs(lib, seed).items():
            host.set_input(name, data)
        host.run()
        for i in range(count):
            wanted = host.get_output(i).numpy().tobytes().hex()
            assert found[(seed - 1) * count + i] == wanted, (i, seed)
