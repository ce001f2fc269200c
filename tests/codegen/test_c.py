"""Generated C: accepted by the compilers people have, and free of surprises."""

import re
import shutil
import subprocess

import kernels
import numpy as np
import pytest
from tests.codegen import test_math, test_numeric

import slipway as tvm
from slipway import te
from slipway.codegen.c import backend
from slipway.codegen.math.table import functions
from slipway.compiler.emit import build_module
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.target import Target

FLAGS = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-c"]
COMPILERS = {
    "gcc": ["gcc", "-Wpedantic", "-Wno-overlength-strings"],
    "clang": ["clang"],
    "arm-none-eabi-gcc": ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard",
                          "-mfpu=fpv4-sp-d16"],
    "arm-none-eabi-gcc m0": ["arm-none-eabi-gcc", "-mcpu=cortex-m0", "-mthumb"],
}  # fmt: skip


def everything():
    cases = {case.name: test_numeric.function(case) for case in test_numeric.CASES[::6]}
    maths = {f"math_{op}": test_math.function(op, "float32") for op in functions()}
    tile = kernels.vector_add(kind="parallel")
    return {**cases, **maths, "vector_add": tile}


@pytest.fixture(scope="module")
def text():
    return build_module(everything(), Target("c")).get_source()


@pytest.mark.parametrize("name", list(COMPILERS))
def test_compilers_accept_it_without_warnings(text, name, tmp_path):
    command = COMPILERS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]}")
    (tmp_path / "all.c").write_text(text)
    done = subprocess.run(
        [*command, *FLAGS, "all.c", "-o", "all.o"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[:3000]


def test_a_store_that_reads_its_own_memory_elsewhere():
    """Shift a vector within one buffer: all lanes are read before any is written."""
    a = decl_buffer((16,), "int32", "A")
    value = a[kernels.ramp(0, 8)]
    body = S.BufferStore(a, value, (kernels.ramp(1, 8),))
    for target in ("c -opt-level=1", "llvm"):
        run, _, _ = kernels.load(kernels.prim_func("shift", [a], body), target)
        import numpy as np

        data = np.arange(16, dtype="int32")
        run["shift"](data)
        assert data.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15]


def test_a_condition_of_equality_has_one_pair_of_parentheses():
    """Clang takes two for an assignment that was meant, and Slipway treats warnings as errors."""
    x = decl_buffer((1,), "int32", "x")
    store = S.BufferStore(x, ops.const(2, "int32"), (ops.const(0, "int32"),))
    zero = E.BufferLoad(x, (ops.const(0, "int32"),))
    body = S.IfThenElse(E.EQ(zero, ops.const(0, "int32")), store)
    function = PrimFunc((x.data,), body, ((x.data, x),), (("global_symbol", "main"),))
    text = build_module({"main": function}, Target("c")).get_source()
    assert re.search(r"if \(\w+\[0\] == 0\) \{", text)


def test_what_is_converted_to_an_integer_is_computed_once():
    """The conversion compares the value three times; what is inlined there may be long."""
    x = te.placeholder((8,), "float32", "x")
    ceiling = te.compute((8,), lambda i: te.ceil(x[i] * 3.0), "ceiling")
    whole = te.compute((8,), lambda i: te.to_integer(ceiling[i], "int16"), "whole")
    schedule = te.create_schedule(whole.op)
    schedule[ceiling].compute_inline()
    text = tvm.build(schedule, [x, whole], "c").get_source()
    assert len(re.findall(r"\* 3\.0f", text)) == 1


def doubled(target, size=8):
    a = te.placeholder((size,), name="A")
    out = te.compute((size,), lambda i: a[i] * 2.0, name="B")
    return tvm.build(te.create_schedule(out.op), [a, out], target=target)


def test_argument_checks_are_compiled_once_for_a_target(cache_folder, monkeypatch):
    """They are most of a small module: a second one compiles a fraction of the text."""
    compiled = []

    def counted(command, text, *others):
        compiled.append(len(text))
        return run(command, text, *others)

    run = backend._run
    monkeypatch.setattr(backend, "_run", counted)
    for size in (8, 9):
        module = doubled("c", size)
        assert len(module.get_source("c")) > 10_000, "the text is whole: others compile it"
        x, y = tvm.nd.array(np.ones(size, "float32")), tvm.nd.array(np.zeros(size, "float32"))
        module(x, y)
        assert y.numpy().sum() == 2 * size
        with pytest.raises(ValueError, match=r"argument 1 \(B\) has shape\[0\] = 3"):
            module(x, tvm.nd.array(np.zeros(3, "float32")))
    code, checks, second = compiled
    assert max(code, second) < checks


def test_objects_that_cannot_be_joined_here_hold_all(tmp_path):
    doubled("c -mtriple=arm64-apple-macos").save(tmp_path / "a.o")
    assert b"expected" in (tmp_path / "a.o").read_bytes()  # a word of the checks
