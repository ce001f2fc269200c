"""Formulas of open sizes in the languages of programs: C and LLVM's, beside their definition."""

import ctypes
import operator
import random
import re
import shutil
import subprocess

import pytest

from slipway.compiler.aot.sizes import bytes_formula, c_text, dim_formula, llvm_value
from slipway.relay.dims import Dim
from slipway.relay.types import TensorType
from slipway.runtime.graph.graph_sizes import OPERATORS, evaluate

VALUES = [{"n": n, "h": h} for n in (0, 1, 5, 8) for h in (1, 2, 7)]


def drawn(draw, depth):
    """A formula whose divisors are above 0, as those of dimensions are."""
    if depth == 0 or draw.random() < 0.2:
        return (draw.choice(["n", "h", 1, 2, 3, 17]),)
    symbol = draw.choice(sorted(OPERATORS))
    left, right = drawn(draw, depth - 1), drawn(draw, depth - 1)
    if symbol in ("//", "%"):
        right = (*right, 1, "max()")
    return (*left, *right, symbol)


DRAW = random.Random(4)
# Each operation alone, on negative numbers too, and 60 that are drawn.
ALONE = [("n", "h", symbol) for symbol in sorted(OPERATORS)]
SIGNED = [("n", 6, "-", "h", symbol) for symbol in sorted(OPERATORS)]
FORMULAS = [*ALONE, *SIGNED, (7,), ("h",), *(drawn(DRAW, 3) for _ in range(60))]


def test_in_c(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    texts = (
        c_text(formula, {"n": "sizes[0]", "h": "sizes[1]"}.__getitem__) for formula in FORMULAS
    )
    lines = "\n".join(f"  out[{number}] = {text};" for number, text in enumerate(texts))
    head = "#include <stdint.h>\nvoid f(const int64_t *sizes, int64_t *out) {"
    (tmp_path / "f.c").write_text(f"{head}\n{lines}\n}}\n")
    flags = ["-std=c99", "-Wall", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", tmp_path / "f.so", tmp_path / "f.c"], check=True)
    function = ctypes.CDLL(str(tmp_path / "f.so")).f
    for sizes in VALUES:
        given, out = (ctypes.c_int64 * 2)(*sizes.values()), (ctypes.c_int64 * len(FORMULAS))()
        function(given, out)
        assert list(out) == [evaluate(formula, sizes) for formula in FORMULAS]


def truncated(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


LLVM = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "sdiv": truncated,
    "srem": lambda a, b: a - b * truncated(a, b),
    "icmp slt": operator.lt, "icmp sgt": operator.gt,
}  # fmt: skip


class Machine:
    """Runs the few instructions of LLVM that formulas are written in."""

    def __init__(self, sizes):
        self.held = {f"%{name}": value for name, value in sizes.items()}

    def value(self, word):
        return self.held[word] if word.startswith("%") else int(word)

    def put(self, text):
        name = f"%{len(self.held)}"
        chosen = re.fullmatch(r"select i1 (\S+), i64 (\S+), i64 (\S+)", text)
        if chosen:
            test, one, other = map(self.value, chosen.groups())
            self.held[name] = one if test else other
        else:
            what, a, b = re.fullmatch(r"(\w+(?: s\wt)?) i64 (\S+), (\S+)", text).groups()
            self.held[name] = LLVM[what](self.value(a), self.value(b))
        return name


@pytest.mark.parametrize("sizes", VALUES, ids=str)
def test_in_llvm(sizes):
    for formula in FORMULAS:
        machine = Machine(sizes)
        found = llvm_value(formula, machine.put, lambda name: f"%{name}")
        assert machine.value(found) == evaluate(formula, sizes), formula


def test_bytes_of_a_tensor():
    n = Dim("n", 1, 9)
    assert dim_formula(3) == (3,)
    for shape, dtype in (((n, 4, n + 1), "float32"), ((), "int64"), ((2, 3), "int8")):
        formula = bytes_formula(TensorType(shape, dtype))
        elements = {(): 1, (2, 3): 6}.get(shape, 5 * 4 * 6)
        wide = {"float32": 4, "int64": 8, "int8": 1}[dtype]
        assert evaluate(formula, {"n": 5}) == elements * wide
