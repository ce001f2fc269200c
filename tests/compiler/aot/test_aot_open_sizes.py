"""Programs with open dimensions: one run function for every size, in C and as LLVM's object."""

import ctypes
import re
import subprocess

import numpy as np
import pytest
from tests.compiler.aot.test_aot import compile_shared
from tests.compiler.test_open_sizes import attention, cnn, mlp, values, var, weights

from slipway import relay
from slipway.errors import ExecutionError
from slipway.ir.function import IRModule
from slipway.relay.dims import Dim, at
from slipway.relay.interpret import interpret
from slipway.runtime.devices import cpu
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.runtime.load import load_module
from slipway.runtime.ndarray import array
from slipway.toolchain import emulators, musl, zig


def compiled(mod, target, api="c"):
    return relay.build(
        mod,
        target=target,
        executor=relay.backend.Executor("aot", {"interface-api": api}),
        runtime=relay.backend.Runtime("crt"),
    )


def pointers(arrays):
    return (ctypes.c_void_p * max(1, len(arrays)))(*(a.ctypes.data for a in arrays))


class Program:
    """A program as a shared library, with memory of the largest sizes around it."""

    def __init__(self, lib, folder):
        self.lib, self.program = lib, lib.program
        self.library = compile_shared(lib, folder)

    def run(self, sizes, **inputs):
        """Return (status, outputs), each output in memory of exactly its size."""
        table = {size.name: sizes[size.name] for size in self.program.sizes}
        known = {v: table[str(v.name)] for v in self._variables()}
        given = [np.ascontiguousarray(inputs[p.name]) for p in self.program.inputs]
        made = [
            np.zeros([at(d, known) for d in p.type.shape], p.type.dtype)
            for p in self.program.outputs
        ]
        words = (ctypes.c_int32 * len(table))(*table.values())
        run = getattr(self.library, f"tvmgen_{self.program.name}_run")
        return run(pointers(given), pointers(made), words), made

    def _variables(self):
        types = [p.type for p in (*self.program.inputs, *self.program.outputs)]
        return {v for t in types for d in t.shape if hasattr(d, "variables") for v in d.variables}


def small():
    x = relay.nn.relu(relay.nn.dense(var("x", Dim("n", 1, 3), 8), weights(6, 8)))
    return IRModule.from_expr(relay.nn.softmax(x))


SLOW = pytest.mark.long
EVERY = [
    (small, (8,), "n", (3, 1)),
    pytest.param(mlp, (32,), "n", (8, 1, 3), marks=SLOW),
    pytest.param(cnn, (3, 8, 8), "n", (5, 1), marks=SLOW),
    pytest.param(attention, (32,), "s", (4, 17), marks=SLOW),
]


@pytest.mark.parametrize("target", ["c", "llvm"])
@pytest.mark.parametrize(("make", "shape", "name", "sizes"), EVERY)
def test_a_program_runs_every_size(target, make, shape, name, sizes, tmp_path):
    mod = make()
    program = Program(compiled(mod, target), tmp_path)
    for size in sizes:
        x = values(size, *shape)
        status, (found,) = program.run({name: size}, x=x)
        assert status == 0
        np.testing.assert_allclose(found, interpret(mod, x=x), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["c", "llvm"])
def test_formulas_copies_and_two_sizes(target, tmp_path):
    """Shapes that are formulas, an input that is returned, and sizes outside of their ranges."""
    n, h = Dim("n", 1, 3), Dim("h", 5, 12)
    x, y = var("x", n, 2, h, 6), var("y", h)
    pooled = relay.nn.max_pool2d(x, (3, 3), (2, 2), padding=(1, 1))
    mod = IRModule.from_expr(relay.Function([x, y], relay.Tuple([pooled, y])))
    program = Program(compiled(mod, target), tmp_path)
    for sizes in ({"n": 2, "h": 5}, {"n": 3, "h": 12}, {"n": 1, "h": 8}):
        given = {"x": values(sizes["n"], 2, sizes["h"], 6), "y": values(sizes["h"])}
        status, found = program.run(sizes, **given)
        assert status == 0
        for one, wanted in zip(found, interpret(mod, **given), strict=True):
            np.testing.assert_array_equal(one, wanted)
    for sizes in ({"n": 0, "h": 5}, {"n": 3, "h": 13}):
        assert program.run({**sizes}, x=values(3, 2, 12, 6), y=values(12))[0] == -3
    header = program.lib.sources.header
    assert "int32_t h; /* 5..12 */" in header
    assert "#define TVMGEN_DEFAULT_X_SIZE 1728" in header


@pytest.mark.parametrize("architecture", ["aarch64", "arm"])
def test_a_program_runs_every_size_on_a_device(architecture, tmp_path):
    """One executable, on an emulated processor, for the size that its arguments say."""
    emulator = emulators.find(architecture)
    if emulator is None or zig.find_zig() is None:
        pytest.skip(f"{emulators.install_hint(architecture)}, and ziglang")
    mod = small()
    sources = compiled(mod, "c").sources
    (tmp_path / sources.header_name).write_text(sources.header)
    (tmp_path / sources.source_name).write_text(sources.source)
    (tmp_path / "main.c").write_text(MAIN)
    cpu = ["-mcpu=cortex_a7"] if architecture == "arm" else []
    target, program = zig.musl_target(architecture), tmp_path / "program.o"
    words = ["cc", "-target", target, *cpu, "-Os", "-r", "-o", str(program)]
    files = [str(tmp_path / name) for name in ("main.c", sources.source_name)]
    zig.run_zig([*words, *files], purpose="a program")
    musl.link_static(target, tmp_path / "program", [program], cpu)
    for size in (1, 3):
        x = values(size, 8)
        command = [*emulator, tmp_path / "program", str(size)]
        out = subprocess.run(command, input=x.tobytes(), capture_output=True, check=True).stdout
        found = np.frombuffer(out, "float32").reshape(size, 6)
        np.testing.assert_allclose(found, interpret(mod, x=x), rtol=2e-5, atol=1e-5)


MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "tvmgen_default.h"
static _Alignas(16) float x[TVMGEN_DEFAULT_X_SIZE / 4], y[TVMGEN_DEFAULT_OUTPUT_SIZE / 4];
int main(int argc, char **argv) {
  struct tvmgen_default_sizes sizes = {argc > 1 ? atoi(argv[1]) : 0};
  struct tvmgen_default_inputs in = {x};
  struct tvmgen_default_outputs out = {y};
  size_t rows = (size_t)sizes.n;
  if (fread(x, 32, rows, stdin) != rows || tvmgen_default_run(&in, &out, &sizes) != 0) return 1;
  return fwrite(y, 24, rows, stdout) == rows ? 0 : 2;
}
"""


def test_the_calling_convention_takes_sizes_from_shapes(tmp_path):
    mod = small()
    for target in ("llvm", "c"):
        lib = compiled(mod, target, "packed")
        folder = tmp_path / target
        folder.mkdir()
        compile_shared(lib, folder)
        run = load_module(folder / "model.so")[f"tvmgen_{lib.program.name}_run"]
        for size in (1, 3):
            x, out = values(size, 8), array(np.zeros((size, 6), np.float32))
            run(array(x), out)
            np.testing.assert_allclose(out.numpy(), interpret(mod, x=x), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_an_axis_of_some_times_a_size_tells_it(target, tmp_path):
    x = var("x", 4 * Dim("n", 1, 3), 2)
    mod = IRModule.from_expr(relay.Function([x], relay.sum(relay.reshape(x, (-1, 8)), 1)))
    lib = compiled(mod, target, "packed")
    compile_shared(lib, tmp_path)
    run = load_module(tmp_path / "model.so")[f"tvmgen_{lib.program.name}_run"]
    for size in (1, 3):
        given, out = values(4 * size, 2), array(np.zeros(size, np.float32))
        run(array(given), out)
        np.testing.assert_allclose(out.numpy(), interpret(mod, x=given), rtol=1e-5)
    refused = r"_run: argument 0 \(x\): shape\[0\] is not 4 times n, which is from 1 to 3"
    for rows in (6, 16, 0):  # no four times a size, or too large or small a size
        out = array(np.zeros(4, np.float32))
        with pytest.raises(ValueError, match=refused):
            run(array(values(rows, 2)), out)
        np.testing.assert_array_equal(out.numpy(), 0)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize(("times", "more", "text"), [(2, 1, "2 times n + 1"), (1, -2, "n - 2")])
def test_an_axis_of_a_number_more_tells_a_size(times, more, text, target, tmp_path):
    """The kernel inside speaks of n, which no tensor has for an axis."""
    n = Dim("n", 3, 6)
    x = var("x", times * n + more, 2)
    first = relay.strided_slice(x, [0], [1], axes=[0])
    y = relay.add(relay.sum(x, 0), relay.sum(relay.broadcast_to(first, (n, 2)), 0))
    mod = IRModule.from_expr(relay.Function([x], y))
    lib = compiled(mod, target, "packed")
    compile_shared(lib, tmp_path)
    run = load_module(tmp_path / "model.so")[f"tvmgen_{lib.program.name}_run"]
    graph = GraphModule(relay.build(mod, "llvm")["default"](cpu(0)))
    for size in (3, 6, 4):
        given, out = values(times * size + more, 2), array(np.zeros(2, np.float32))
        run(array(given), out)
        graph.run(x=given)
        want = given.sum(0) + size * given[0]
        for found in (out.numpy(), graph.get_output(0).numpy(), interpret(mod, x=given)):
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    refused = rf"_run: argument 0 \(x\): shape\[0\] is not {re.escape(text)}, n is from 3 to 6"
    wrong = [times * 7 + more, times * 2 + more, *([times * 4 + more - 1] if times > 1 else [])]
    for rows in wrong:
        with pytest.raises(ValueError, match=refused):
            run(array(values(rows, 2)), array(np.zeros(2, np.float32)))
        with pytest.raises(ExecutionError, match=r"has shape .*, got \(\d+, 2\)"):
            graph.set_input("x", values(rows, 2))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_the_calling_convention_refuses_with_errors(target, tmp_path):
    """Whatever a program refuses is raised in Python, and the process goes on."""
    n, h = Dim("n", 1, 3), Dim("h", 5, 12)
    x, y = var("x", n, 2, h, 6), var("y", h)
    pooled = relay.nn.max_pool2d(x, (3, 3), (2, 2), padding=(1, 1))
    lib = compiled(IRModule.from_expr(relay.Function([x, y], relay.Tuple([pooled, y]))), target,
                   "packed")  # fmt: skip
    compile_shared(lib, tmp_path)
    run = load_module(tmp_path / "model.so")[run_name(lib)]

    def call(x=(2, 2, 7, 6), y=(7,), pooled=(2, 2, 4, 3), out=(7,), dtype="float32"):
        shapes = (x, y, pooled, out)
        return run(*[array(np.zeros(shape, dtype)) for shape in shapes if shape is not None])

    for _ in range(2):  # an error leaves nothing behind
        call()
        for wrong, kind, message in (
            ({"x": (4, 2, 7, 6), "pooled": (4, 2, 4, 3)}, ValueError,
             r"argument 0 \(x\): shape\[0\] is not n, which is from 1 to 3"),
            ({"x": (2, 2, 13, 6), "y": (13,), "out": (13,)}, ValueError,
             r"shape\[2\] is not h, which is from 5 to 12"),
            ({"y": (8,)}, ValueError, r"argument 1 \(y\) has shape\[0\] = 8, expected 7"),
            ({"x": (2, 2, 7, 5)}, ValueError, r"argument 0 \(x\) has shape\[3\] = 5, expected 6"),
            ({"x": (2, 2, 7)}, ValueError, "has 3 dimensions, expected 4"),
            ({"pooled": (2, 2, 3, 3)}, ValueError, r"argument 2 .*shape\[2\] is not"),
            ({"dtype": "int32"}, TypeError, "has dtype int32, expected float32"),
            ({"out": None}, TypeError, "got 3 arguments, expected 4"),
        ):  # fmt: skip
            with pytest.raises(kind, match=message):
                call(**wrong)
    with pytest.raises(TypeError, match=r"argument 1 \(y\) must be a tensor"):
        run(array(np.zeros((2, 2, 7, 6), "float32")), 1, 2, 3)
    with pytest.raises(ValueError, match="make it contiguous"):
        run(*[np.zeros(shape, "float32").T for shape in ((6, 7, 2, 2), (7,), (3, 4, 2, 2), (7,))])


def run_name(lib):
    return f"tvmgen_{lib.program.name}_run"
