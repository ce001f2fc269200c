"""Generated C of whole models: compiled strictly, run under sanitizers, compared."""

import ctypes
import shutil
import subprocess
import tarfile

import numpy as np
import pytest
from aot_models import build, check_program, keyword_net, quantized_net, residual_net

import slipway as tvm
from slipway import relay
from slipway.compiler.memory_plan import check_plan
from slipway.errors import LoweringError
from slipway.ir.memory_pools import (
    ConstantMemoryPools,
    ConstantPoolInfo,
    PoolInfoProperties,
    WorkspaceMemoryPools,
    WorkspacePoolInfo,
)

CORTEX_M4 = "c -keys=arm_cpu -mcpu=cortex-m4"
STRICT = [
    "-O2",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wno-sign-conversion",
    "-Werror",
]


def write(lib, folder):
    sources = lib.sources
    (folder / sources.header_name).write_text(sources.header)
    (folder / sources.source_name).write_text(sources.source)
    return folder / sources.source_name


def compile_shared(lib, folder, *flags):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    source = write(lib, folder)
    if lib.is_llvm:
        source = lib.export_library(folder / "model.o")
    out = folder / "model.so"
    command = ["gcc", "-std=c99", *STRICT, *flags, "-shared", "-fPIC", "-o", out, source]
    subprocess.run([*map(str, command)], check=True)
    return ctypes.CDLL(str(out))


def run(library, lib, inputs, offset=0):
    """Call the run function with arrays `offset` bytes away from aligned memory."""

    def aligned(size):
        raw = np.zeros(size + 80, np.uint8)
        start = -raw.ctypes.data % 16 + offset
        return raw[start : start + size]

    program = lib.program
    ins = [aligned(p.type.size_bytes) for p in program.inputs]
    outs = [aligned(p.type.size_bytes) for p in program.outputs]
    for memory, port in zip(ins, program.inputs, strict=True):
        memory[:] = np.frombuffer(inputs[port.name].tobytes(), np.uint8)
    pointers = [
        (ctypes.c_void_p * max(1, len(side)))(*(m.ctypes.data for m in side))
        for side in (ins, outs)
    ]
    status = getattr(library, f"tvmgen_{program.name}_run")(*pointers)
    results = [
        np.frombuffer(m.tobytes(), p.type.dtype).reshape(p.type.shape)
        for m, p in zip(outs, program.outputs, strict=True)
    ]
    return status, results


def reference(model, inputs):
    mod, params = model
    from slipway.contrib import graph_executor

    with tvm.transform.PassContext(opt_level=0):
        lib = relay.build(mod, target="llvm", params=params)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    for name, value in inputs.items():
        module.set_input(name, value)
    module.run()
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


def random_inputs(lib):
    rng = np.random.default_rng(7)
    return {p.name: rng.standard_normal(p.type.shape).astype("float32") for p in lib.program.inputs}


@pytest.mark.parametrize("make", [keyword_net, residual_net])
@pytest.mark.parametrize("interface", ["c", "packed"])
@pytest.mark.parametrize("target", [CORTEX_M4, "llvm"])
def test_generated_code_gives_the_models_outputs(make, interface, target, tmp_path):
    lib = build(make(), target=target, interface=interface)
    check_plan(lib.program.plan)
    check_program(lib)
    inputs = random_inputs(lib)
    status, outputs = run(compile_shared(lib, tmp_path), lib, inputs)
    assert status == 0
    for ours, theirs in zip(outputs, reference(make(), inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6)


def test_source_calls_nothing_from_outside(tmp_path):
    lib = build(keyword_net())
    source = write(lib, tmp_path)
    out = tmp_path / "model.o"
    subprocess.run(["gcc", "-O2", "-ffreestanding", "-c", "-o", out, source], check=True)
    undefined = subprocess.run(["nm", "-u", out], capture_output=True, text=True, check=True)
    assert set(undefined.stdout.split()) - {"U"} <= {"memcpy", "memset"}
    assert "malloc" not in lib.sources.source


@pytest.mark.parametrize("compiler", ["clang", "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"])
def test_other_compilers_take_the_source(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    source = write(build(residual_net()), tmp_path)
    flags = [
        "-std=c99",
        "-ffreestanding",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-c",
        "-o",
        tmp_path / "m.o",
    ]
    subprocess.run([compiler, *map(str, [*flags, source])], check=True)


CALL_WITH_EVERY_ALIGNMENT = """
#include "tvmgen_default.h"
#include <stdlib.h>
int main(void) {
  for (int shifts = 0; shifts < 64; ++shifts) {
    const int shift = shifts % 8, behind = shifts / 8;
    /* The memory ends where the tensors end. */
    unsigned char *in = calloc(1, TVMGEN_DEFAULT_DATA_SIZE + shift);
    unsigned char *out = malloc(TVMGEN_DEFAULT_OUTPUT_SIZE + behind);
    struct tvmgen_default_inputs inputs = {in + shift};
    struct tvmgen_default_outputs outputs = {out + behind};
    int fits = shift % TVMGEN_DEFAULT_DATA_ALIGNMENT == 0 &&
               behind % TVMGEN_DEFAULT_OUTPUT_ALIGNMENT == 0;
    int want = fits ? TVMGEN_DEFAULT_STATUS_OK : TVMGEN_DEFAULT_STATUS_MISALIGNED;
    if (tvmgen_default_run(&inputs, &outputs) != want) return 1;
    free(in);
    free(out);
  }
  return 0;
}
"""
FAMILIES = {
    "dsp": "c -keys=arm_cpu -mcpu=cortex-m4",
    "mve": "c -keys=arm_cpu -mcpu=cortex-m55",
    "scalar": "c -mtriple=riscv32-unknown-none-elf -mattr=+m",
}


@pytest.mark.parametrize("kernels", ["generated", *FAMILIES])
def test_misaligned_callers_get_a_status_and_sanitizers_find_nothing(kernels, tmp_path):
    """With the portable forms of the kernels; their boards run the others."""
    if kernels == "generated":
        lib = build(keyword_net())
    else:
        lib = build(quantized_net(), FAMILIES[kernels])
        found = {k.family for k in lib.library.values()}
        assert found == ({"dsp_pairs", "dsp_folded"} if kernels == "dsp" else {kernels})
    program = tmp_path / "main.c"
    program.write_text(CALL_WITH_EVERY_ALIGNMENT)
    source = write(lib, tmp_path)
    exe = tmp_path / "main"
    subprocess.run(
        ["gcc", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I",
         tmp_path, "-o", exe, program, source],
        check=True,
    )  # fmt: skip
    subprocess.run([exe], check=True, env={"ASAN_OPTIONS": "detect_leaks=0"})


@pytest.mark.parametrize(
    ("family", "compiler", "flags"),
    [
        ("dsp", "arm-none-eabi-gcc", ["-mcpu=cortex-m4", "-mfloat-abi=hard"]),
        ("mve", "arm-none-eabi-gcc", ["-mcpu=cortex-m55", "-mfloat-abi=hard"]),
        ("scalar", "riscv64-unknown-elf-gcc", ["-march=rv32imac", "-mabi=ilp32"]),
    ],
)
def test_kernels_for_a_core_call_nothing_from_outside(family, compiler, flags, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    source = write(build(quantized_net(), FAMILIES[family]), tmp_path)
    out = tmp_path / "model.o"
    strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-ffreestanding"]
    subprocess.run([compiler, *flags, *strict, "-c", "-o", out, source], check=True)
    undefined = subprocess.run(
        [compiler.replace("gcc", "nm"), "-u", out], capture_output=True, text=True, check=True
    )
    assert set(undefined.stdout.split()) - {"U"} <= {"memcpy", "memset"}


def test_header_has_the_classic_names():
    header = build(residual_net()).sources.header
    for text in (
        "struct tvmgen_default_inputs {\n  const void *a; /* float32[4, 16] */\n  const void *b_1;",
        "struct tvmgen_default_outputs {\n  void *output0; /* float32[4, 16] */\n  void *output1;",
        "struct tvmgen_default_workspace_pools",
        "#define TVMGEN_DEFAULT_A_SIZE 256",
        "#define TVMGEN_DEFAULT_WORKSPACE_SIZE ",
        "int32_t tvmgen_default_run(",
    ):
        assert text in header


@pytest.mark.parametrize(
    "algorithm", ["hill_climb", "greedy_by_size", "greedy_by_conflicts", "linear_scan", "optimal"]
)
def test_usmp_options_choose_the_planner(algorithm):
    config = {"tir.usmp.enable": True, "tir.usmp.algorithm": algorithm}
    lib = build(keyword_net(), config=config)
    check_plan(lib.program.plan)
    assert lib.program.plan.size_bytes >= lib.program.plan.lower_bound_bytes
    best = build(keyword_net()).program.plan
    assert best.size_bytes <= lib.program.plan.size_bytes


@pytest.mark.parametrize("target", [CORTEX_M4, "llvm"])
def test_callers_pools_are_filled_and_shared(target, tmp_path):
    sizes = PoolInfoProperties(size_hint_bytes=2048)
    pools = WorkspaceMemoryPools(
        [WorkspacePoolInfo("dtcm", pool_info_properties=sizes), WorkspacePoolInfo("sram")]
    )
    lib = build(keyword_net(), target=target, workspace_memory_pools=pools)
    plan = lib.program.plan
    check_plan(plan)
    assert plan.pool_bytes(0) <= 2048
    assert "uint8_t *dtcm;\n  uint8_t *sram;" in lib.sources.header
    library = compile_shared(lib, tmp_path)
    inputs = random_inputs(lib)
    arena = [np.full(plan.pool_bytes(i) + 32, 0xAB, np.uint8) for i in range(2)]
    starts = [-a.ctypes.data % 16 for a in arena]
    pools_struct = (ctypes.c_void_p * 2)(
        *(a.ctypes.data + s for a, s in zip(arena, starts, strict=True))
    )
    data = np.ascontiguousarray(inputs["data"])
    out = np.zeros((1, 12), np.float32)
    status = library.tvmgen_default_run(
        (ctypes.c_void_p * 1)(data.ctypes.data),
        (ctypes.c_void_p * 1)(out.ctypes.data),
        pools_struct,
    )
    assert status == 0
    np.testing.assert_allclose(out, reference(keyword_net(), inputs)[0], rtol=2e-5, atol=1e-6)
    for index, (memory, start) in enumerate(zip(arena, starts, strict=True)):
        assert (memory[:start] == 0xAB).all()
        assert (memory[start + plan.pool_bytes(index) :] == 0xAB).all()


def test_pool_too_small_is_an_error_that_names_tensors():
    tiny = WorkspaceMemoryPools(
        [WorkspacePoolInfo("sram", pool_info_properties=PoolInfoProperties(size_hint_bytes=1000))]
    )
    with pytest.raises(LoweringError, match=r"sram 1000 B.*conv2d"):
        build(keyword_net(), workspace_memory_pools=tiny)


def test_same_model_runs_here_through_the_factory():
    from slipway.contrib import graph_executor

    mod, params = keyword_net()
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm", params=params, executor=relay.backend.Executor("aot"))
    module = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    data = np.random.default_rng(3).standard_normal((1, 1, 25, 10)).astype("float32")
    module.set_input("data", data)
    module.run()
    expected = reference(keyword_net(), {"data": data})[0]
    np.testing.assert_allclose(module.get_output(0).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_same_model_gives_the_same_text():
    assert build(keyword_net()).sources == build(keyword_net()).sources


def test_depthwise_lies_over_its_input_and_the_outputs_stay_right(tmp_path):
    """The plan needs less than both tensors of the depthwise layer, and the result is the same."""
    lib = build(keyword_net())
    size = 8 * 25 * 10 * 4
    assert lib.program.overlapping_kernels()
    assert size < lib.program.workspace_bytes < size + 200
    inputs = random_inputs(lib)
    status, outputs = run(compile_shared(lib, tmp_path), lib, inputs)
    assert status == 0
    np.testing.assert_allclose(
        outputs[0], reference(keyword_net(), inputs)[0], rtol=2e-5, atol=1e-6
    )


def test_object_of_a_program_needs_nothing_and_is_written_in_each_format(tmp_path):
    from slipway.toolchain.ar import read_archive
    from slipway.toolchain.elf import ElfFile

    lib = build(keyword_net(), target="llvm -mtriple=thumbv7em-none-eabihf -mcpu=cortex-m4")
    elf = ElfFile(lib.object_bytes, "the program")
    assert elf.exported == ["tvmgen_default_run"]
    assert elf.undefined == []
    paths = [lib.export_library(tmp_path / f"model{end}") for end in (".o", ".a", ".tar")]
    assert paths[0].read_bytes() == lib.object_bytes
    archived = read_archive(paths[1].read_bytes(), "model.a")
    assert archived == {"default_lib0.o": lib.object_bytes}
    with tarfile.open(paths[2]) as archive:
        assert archive.getnames() == ["default_lib0.o", "tvmgen_default.h"]
    assert "define i32 @tvmgen_default_run(" in lib.get_source()
    again = build(keyword_net(), target="llvm -mtriple=thumbv7em-none-eabihf -mcpu=cortex-m4")
    assert again.object_bytes == lib.object_bytes


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_packed_entry_takes_tensors(target, tmp_path):
    """The exported function is called as the runtime calls it: values, tensors, a result."""
    lib = build(residual_net(), target=target, interface="packed")
    objects = lib.export_library(tmp_path / "model.o")
    library = tvm.runtime.load_module(objects)
    inputs = random_inputs(lib)
    outputs = [np.zeros(p.type.shape, "float32") for p in lib.program.outputs]
    tensors = [tvm.nd.array(x) for x in (*inputs.values(), *outputs)]
    library["tvmgen_default_run"](*tensors)
    for ours, theirs in zip(tensors[2:], reference(residual_net(), inputs), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_packed_entry_cannot_give_the_callers_pools(target, tmp_path):
    pools = WorkspaceMemoryPools([pool(WorkspacePoolInfo, "sram")])
    lib = build(residual_net(), target=target, interface="packed", workspace_memory_pools=pools)
    library = tvm.runtime.load_module(lib.export_library(tmp_path / "model.o"))
    ports = [*lib.program.inputs, *lib.program.outputs]
    tensors = [tvm.nd.array(np.zeros(p.type.shape, "float32")) for p in ports]
    with pytest.raises(RuntimeError, match="only the C interface can give"):
        library["tvmgen_default_run"](*tensors)


def pool(kind, name, size=-1):
    return kind(name, pool_info_properties=PoolInfoProperties(size_hint_bytes=size))


@pytest.mark.parametrize("make", [keyword_net, residual_net])
@pytest.mark.parametrize("target", [CORTEX_M4, "llvm"])
@pytest.mark.parametrize("of_caller", [False, True])
def test_inputs_and_outputs_can_live_in_the_workspace(make, target, of_caller, tmp_path):
    config = {"tir.usmp.enable": True, "tir.usmp.use_workspace_io": True}
    given = {}
    if of_caller:
        infos = [pool(WorkspacePoolInfo, "tcm", 800), pool(WorkspacePoolInfo, "sram")]
        given["workspace_memory_pools"] = WorkspaceMemoryPools(infos)
    lib = build(make(), target=target, config=config, **given)
    program = lib.program
    check_plan(program.plan)
    check_program(lib)
    library = compile_shared(lib, tmp_path)
    if of_caller:
        arenas = [np.zeros(program.plan.pool_bytes(i) + 16, np.uint8) for i in range(2)]
        starts = [a.ctypes.data + -a.ctypes.data % 16 for a in arenas]
        arguments = [(ctypes.c_void_p * 2)(*starts)]
    else:
        symbol = ctypes.c_char.in_dll(library, "tvmgen_default_workspace_workspace")
        starts, arguments = [ctypes.addressof(symbol)], []
    inputs = random_inputs(lib)
    for port in program.inputs:
        data = np.ascontiguousarray(inputs[port.name]).tobytes()
        ctypes.memmove(starts[port.location.index] + port.location.offset, data, len(data))
    assert library.tvmgen_default_run(*arguments) == 0
    for port, wanted in zip(program.outputs, reference(make(), inputs), strict=True):
        at = starts[port.location.index] + port.location.offset
        found = np.frombuffer(ctypes.string_at(at, port.type.size_bytes), port.type.dtype)
        np.testing.assert_allclose(found.reshape(port.type.shape), wanted, rtol=2e-5, atol=1e-6)


def test_workspace_io_is_refused_with_the_packed_interface():
    with pytest.raises(LoweringError, match="use_workspace_io needs interface-api 'c'"):
        build(residual_net(), interface="packed", config={"tir.usmp.use_workspace_io": True})


@pytest.mark.parametrize("target", [CORTEX_M4, "llvm"])
def test_constants_go_to_the_memories_that_have_room(target):
    infos = [pool(ConstantPoolInfo, "fast", 700), pool(ConstantPoolInfo, "flash")]
    lib = build(keyword_net(), target=target, constant_memory_pools=ConstantMemoryPools(infos))
    placed = lib.constant_pools
    assert set(placed) == set(lib.program.constants)
    assert set(placed.values()) == {"fast", "flash"}
    in_fast = [lib.constants[n].nbytes for n, where in placed.items() if where == "fast"]
    assert sum(-(-size // 16) * 16 for size in in_fast[:-1]) + in_fast[-1] <= 700
    left = 700 - sum(-(-size // 16) * 16 for size in in_fast)
    assert all(lib.constants[n].nbytes > left for n, where in placed.items() if where == "flash")
    word = "TVMGEN_DEFAULT_FAST_CONSTANT_ATTRIBUTE"
    assert ('section ".slipway.constant.fast"' if target == "llvm" else word) in lib.sources.source
    with pytest.raises(LoweringError, match=r"constants need \d+ B .*\(fast 700 B\)"):
        build(keyword_net(), constant_memory_pools=ConstantMemoryPools(infos[:1]))


@pytest.mark.parametrize("target", [CORTEX_M4, "llvm", "c"])
def test_attention_in_one_kernel_or_in_its_parts(target, tmp_path):
    q, k, v = (relay.var(name, shape=(1, 2, 20, 8)) for name in "qkv")
    flat = [relay.reshape(x, (2, 20, 8)) for x in (q, k, v)]
    scores = relay.nn.softmax(relay.nn.batch_matmul(flat[0], flat[1]))
    body = relay.nn.batch_matmul(scores, flat[2], transpose_b=False)
    lib = build((tvm.IRModule.from_expr(body), {}), target)
    assert ("attention" in lib.get_source()) == (target != CORTEX_M4)
    inputs = random_inputs(lib)
    status, (found,) = run(compile_shared(lib, tmp_path), lib, inputs)
    assert status == 0
    x, y, z = (inputs[name][0] for name in "qkv")
    powers = np.exp(x @ y.transpose(0, 2, 1))
    wanted = (powers / powers.sum(-1, keepdims=True)) @ z
    np.testing.assert_allclose(found.reshape(2, 20, 8), wanted, rtol=2e-5, atol=2e-6)


def test_a_target_with_vectors_carries_channels_in_blocks():
    def kernels_of(target):
        return " ".join(build(keyword_net(), target).graph.kernels)

    assert "nchwc" in kernels_of("llvm -mcpu=x86-64-v3")
    for target in (CORTEX_M4, "llvm -mtriple=thumbv7em-none-eabihf -mcpu=cortex-m4", "c"):
        assert "nchwc" not in kernels_of(target)
