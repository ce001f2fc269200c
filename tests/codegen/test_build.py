"""Compiling and calling functions: the packed interface, cross objects, errors."""

import ctypes
import json
import subprocess
import sys

import kernels
import numpy as np
import pytest

from slipway.codegen.compiled import merge_objects
from slipway.codegen.llvm.data import data_object
from slipway.compiler.emit import build_module
from slipway.errors import CodegenError, TargetError
from slipway.ir.function import IRModule
from slipway.target import Target

CROSS = [
    "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64",
    "llvm -mtriple=aarch64-linux-gnu",
    "llvm -mtriple=armv7l-linux-gnueabihf",
    "llvm -mtriple=riscv64-linux-gnu",
]


def undefined_symbols(objects, tmp_path):
    """Link a shared library of `objects`; return its undefined symbols."""
    obj, lib = tmp_path / "m.o", tmp_path / "m.so"
    obj.write_bytes(merge_objects(objects))
    link = [sys.executable, "-m", "ziglang", "ld.lld", "-shared", "--gc-sections"]
    subprocess.run([*link, "-o", str(lib), str(obj)], check=True)
    done = subprocess.run(
        ["nm", "-D", "--undefined-only", str(lib)], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_vector_add_on_the_host(kind):
    functions, module, _ = kernels.load(kernels.vector_add(kind=kind))
    a, b = kernels.random(1024, seed=1), kernels.random(1024, seed=2)
    out = np.zeros(1024, "float32")
    functions["vector_add"](a, b, out)
    np.testing.assert_array_equal(out, a + b)
    assert module.entry == "vector_add"


def test_arguments_are_checked():
    functions, _, _ = kernels.load(kernels.vector_add())
    f = functions["vector_add"]
    a, b, out = (np.zeros(1024, "float32") for _ in range(3))
    cases = [
        ((a, b), TypeError, "vector_add: got 2 arguments, expected 3"),
        ((a, b, out.astype("int8")), TypeError, "argument 2 (C) has dtype int8, expected float32"),
        ((a, b[:10], out), ValueError, "argument 1 (B) has shape[0] = 10, expected 1024"),
        ((a, b, out.reshape(32, 32)), ValueError, "has 2 dimensions, expected 1"),
        ((np.zeros(2048, "float32")[::2], b, out), ValueError, "strides[0] = 2, expected 1"),
        ((a, 3, out), TypeError, "argument 1 (B) must be a tensor"),
    ]
    for args, error, words in cases:
        with pytest.raises(error) as caught:
            f(*args)
        assert words in str(caught.value)


def test_metadata_names_functions_and_features():
    _, module, library = kernels.load(kernels.vector_add(), "llvm -mcpu=x86-64")
    text = ctypes.string_at(library.address("__slipway_metadata"))
    found = json.loads(text)
    assert found == json.loads(module.metadata)
    assert found["functions"] == ["vector_add"]
    assert found["entry"] == "vector_add"
    assert "sse2" in found["isa"]
    assert "avx" not in found["isa"]


@pytest.mark.parametrize("target", CROSS)
def test_cross_libraries_need_nothing(target, tmp_path):
    module = build_module(kernels.vector_add(), Target(target))
    assert undefined_symbols(module.objects, tmp_path) == []


def test_sources_and_files(tmp_path):
    module = build_module(kernels.vector_add(), Target(CROSS[1]))
    assert "fadd" in module.get_source("ll")
    assert "fadd" in module.get_source("asm")
    module.save(tmp_path / "x.s")
    module.save(tmp_path / "x.o")
    assert (tmp_path / "x.o").read_bytes()[:4] == b"\x7fELF"
    with pytest.raises(CodegenError, match="no source in format"):
        module.get_source("cl")


def test_same_input_gives_the_same_bytes():
    first, second = (
        build_module(kernels.vector_add(kind="parallel"), Target("llvm")) for _ in range(2)
    )
    assert first.objects == second.objects


def test_empty_module_and_other_kinds_are_errors():
    with pytest.raises(CodegenError, match="nothing to compile"):
        build_module(IRModule(()), Target("llvm"))
    with pytest.raises(TargetError, match="no code generator for kernels on nvptx"):
        build_module(kernels.vector_add(), Target("nvptx"))


@pytest.mark.parametrize("target", CROSS)
def test_data_objects_link(target, tmp_path):
    blobs = {"__slipway_graph": b"abc", "__slipway_params": bytes(range(256)) * 1000}
    goal = Target(target)
    code = build_module(kernels.vector_add(), goal).objects
    assert undefined_symbols((*code, data_object(blobs, goal)), tmp_path) == []
    library = (tmp_path / "m.so").read_bytes()
    assert blobs["__slipway_params"] in library
    names = subprocess.run(
        ["nm", "-D", str(tmp_path / "m.so")], capture_output=True, text=True, check=True
    ).stdout
    assert "__slipway_params_size" in names


@pytest.mark.parametrize("target", ["arm/cortex-m4", "arm/cortex-m7", "arm/cortex-m33"])
def test_microcontrollers_use_their_fpu(target):
    """Zig's descriptions of these have none: sums of floats were calls of __aeabi_fadd."""
    objects = build_module({"add": kernels.vector_add()}, Target(target)).objects
    assert b"__tvm_ffi_add" in b"".join(objects)
    assert b"__aeabi_f" not in b"".join(objects)
