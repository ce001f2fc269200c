"""The recipes of docs/architecture.md, followed to the letter in a copy of the sources.

Each test makes the edits that its section of the page lists, in those files and no others, and runs
a script on the copy that uses the new thing.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
START = """
import numpy as np
import slipway as tvm
from slipway import relay, te
from slipway.target import Target
"""


class Copy:
    """A copy of src/slipway, and which of its files were edited."""

    def __init__(self, folder):
        self.package = folder / "src" / "slipway"
        shutil.copytree(
            ROOT / "src" / "slipway", self.package, ignore=shutil.ignore_patterns("__pycache__")
        )
        self.edited = set()

    def add(self, path, text):
        """Write a new file, or add to the end of one."""
        file = self.package / path
        file.parent.mkdir(exist_ok=True)
        file.write_text((file.read_text() if file.exists() else "") + text)
        self.edited.add(path)

    def insert(self, path, after, text):
        """Put `text` after where `after` stands first."""
        file = self.package / path
        before = file.read_text()
        assert after in before, f"{path} has no {after!r} any more: mend the recipe"
        file.write_text(before.replace(after, after + text, 1))
        self.edited.add(path)

    def run(self, script):
        environment = {**os.environ, "PYTHONPATH": str(self.package.parent)}
        done = subprocess.run(
            [sys.executable, "-c", START + script], env=environment, cwd=self.package.parent,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def follows(self, recipe):
        """Check that the recipe's section names every file that was edited."""
        section = PAGE.split(f"\n### {recipe}\n")[1].split("\n### ")[0].split("\n## ")[0]
        named = [re.sub(r"<\w+>", r".+", re.escape(n).replace(r"\<", "<").replace(r"\>", ">"))
                 for n in re.findall(r"`([\w/.<>*-]+)`", section)]  # fmt: skip
        missing = [
            path for path in self.edited if not any(re.fullmatch(f"{n}/?", path) for n in named)
        ]
        assert not missing, f"the recipe for {recipe!r} does not name {missing}"


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path)


OPERATOR = '''

SOFT_STEP = register_op(
    "nn.soft_step", "data", pattern=OpPattern.ELEMWISE, flops_per_element=3,
    doc="data / (1 + |data|).",
)  # fmt: skip


@SOFT_STEP.type_relation
def _soft_step_type(attrs: Any, data: TensorType) -> Type:
    need_float("data", data)
    return data


@SOFT_STEP.reference
def _soft_step_reference(attrs: Any, data: Any) -> Any:
    return data / (1 + np.abs(data))


@SOFT_STEP.compute
def _soft_step_compute(attrs: Any, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    (x,) = inputs
    return [elementwise("T_soft", x.shape, lambda *i: x(*i) / (te().abs(x(*i)) + 1.0))]


@SOFT_STEP.make
def soft_step(data: Any) -> Call:
    """Return data / (1 + |data|)."""
    return SOFT_STEP(data)


SOFT_STEP.sample_case((2, 3))
'''
USE_OPERATOR = """
x = relay.var("x", shape=(2, 9))
y = relay.nn.soft_step(relay.nn.relu(x) - relay.const(np.float32(1)))
module = tvm.IRModule.from_expr(relay.Function([x], y))
data = np.random.default_rng(0).normal(size=(2, 9)).astype("float32")
run = relay.create_executor("graph", module, tvm.cpu(), "llvm").evaluate()
want = np.maximum(data, 0) - 1
np.testing.assert_allclose(run(data).numpy(), want / (1 + abs(want)), rtol=1e-6)
assert "nn.soft_step" in relay.fromtext(module.astext()).astext()
from slipway.relay.op_registry import load_ops
definition = load_ops()["nn.soft_step"]
(case,) = definition.cases
definition.evaluate(case.attrs, *case.arrays())
"""


def test_an_operator(copy):
    copy.add("relay/ops/nn/activation.py", OPERATOR)
    copy.run(USE_OPERATOR)
    copy.follows("An operator")


@pytest.mark.long
def test_a_family_of_operators(copy):
    imports = (copy.package / "relay/ops/nn/activation.py").read_text().split("RELU = ")[0]
    imports = imports[imports.index("from __future__") :].rstrip()
    copy.add("relay/ops/nn/soft.py", f'"""Soft steps."""\n\n{imports}\n{OPERATOR}')
    copy.insert("relay/op_registry.py", "FAMILIES = (\n", '    "nn.soft",\n')
    copy.run(USE_OPERATOR)
    copy.follows("An operator")


LOOP_PASS = '''"""Double by adding: ``x * 2f`` becomes ``x + x``."""

from slipway.ir import expr as E
from slipway.ir.function import PrimFunc
from slipway.ir.visit import rewrite_bottom_up


def double_by_adding(func: PrimFunc) -> PrimFunc:
    """Return `func` with doubled floats as sums."""

    def rule(node):
        two = isinstance(node, E.Mul) and isinstance(node.b, E.FloatImm) and node.b.value == 2
        return E.Add(node.a, node.a) if two else None

    return func.replace(body=rewrite_bottom_up(func.body, rule))
'''
GRAPH_PASS = '''"""DropTwice: ``negative(negative(x))`` is ``x``."""

from slipway.relay.expr import Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import rewrite


def drop_twice(function: Function) -> Function:
    """Return `function` without numbers that are negated twice."""

    def rule(expr):
        twice = is_call_of(expr, "negative") and is_call_of(expr.args[0], "negative")
        return expr.args[0].args[0] if twice else None

    return rewrite(function, rule)
'''


def test_a_pass_over_loops(copy):
    copy.add("transform/loop/double_by_adding.py", LOOP_PASS)
    table = "transform/loop/pipeline.py"
    copy.insert(
        table, "from slipway.transform.loop.cut_loops import cut_loops\n",
        "from slipway.transform.loop.double_by_adding import double_by_adding\n",
    )  # fmt: skip
    copy.insert(table, "    loop_pass(lower_custom_calls),\n", "    loop_pass(double_by_adding),\n")
    copy.insert("transform/names.py", 'NAMES = set(\n    """\n', "    double_by_adding\n")
    copy.run("""
with tvm.transform.PassContext(disabled_pass=["tir.DoubleByAdding"]):  # known before it is loaded
    pass
a = te.placeholder((8,), name="a")
b = te.compute((8,), lambda i: a[i] * 2.0, name="b")
s = te.create_schedule(b.op)
from slipway.transform.loop.pipeline import run_pipeline
for disabled, spelling in (([], "+"), (["double_by_adding"], "*")):
    with tvm.transform.PassContext(disabled_pass=disabled):
        assert f"a[i] {spelling} " in str(run_pipeline(te.lower(s, [a, b])))
out = tvm.nd.array(np.zeros(8, "float32"))
tvm.build(s, [a, b], "llvm")(tvm.nd.array(np.arange(8, dtype="float32")), out)
assert out.numpy().tolist() == [2 * n for n in range(8)]
""")
    copy.follows("A pass")


def test_a_pass_over_graphs(copy):
    copy.add("transform/graph/drop_twice.py", GRAPH_PASS)
    table = "transform/graph/pipeline.py"
    copy.insert(
        table, "from slipway.transform.graph.dead_code import DEAD_CODE_ELIMINATION\n"
        if "import DEAD_CODE_ELIMINATION\n" in (copy.package / table).read_text()
        else "from slipway.transform.graph.sink_reshape import sink_reshape\n",
        "from slipway.transform.graph.drop_twice import drop_twice\n",
    )  # fmt: skip
    copy.insert(
        table, '    graph_pass("InferType", infer_type),\n',
        '    graph_pass("DropTwice", drop_twice),\n',
    )  # fmt: skip
    copy.insert("transform/names.py", "OPT_LEVELS = {\n", '    "DropTwice": 2,\n')
    copy.run("""
x = relay.var("x", shape=(4,))
from slipway.compiler.optimize import optimize
body = relay.sigmoid(relay.negative(relay.negative(x)))
module = tvm.IRModule.from_expr(relay.Function([x], body))
for level, there in ((2, False), (0, True)):
    with tvm.transform.PassContext(opt_level=level):
        made = optimize(module, target=Target("llvm"))
    assert ("negative" in str(made)) == there, made
""")
    copy.follows("A pass")


def test_a_core(copy):
    copy.insert("target/cores.py", "] = {\n", '    "cortex-a510": (256, 4, 256, 32, 4, 256, 64),\n')
    copy.run("""
target = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a510")
assert target.core.fma_bits == target.core.load_bits == 256
assert target.core.l2_bytes == 256 << 10
slow = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a510 -fma-latency=9")
assert slow.core.fma_latency == 9
x, w = relay.var("x", shape=(16, 64)), relay.const(np.ones((64, 64), "float32"))
built = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, w))), target)
assert "fmla" in built.lib.get_source("asm")
""")
    copy.follows("A core")


def test_an_instruction(copy):
    copy.insert("ir/hardware.py", "    for entry in (\n", '''\
        HardwareIntrinsic(
            "neon.usdot", "llvm.aarch64.neon.usdot.v4i32.v16i8", "arm_neon.h",
            "vst1q_s32(c, vusdotq_s32(vld1q_s32(c), "
            "vreinterpretq_u8_s32(vdupq_n_s32(slw_word32(a))), vld1q_s8(b)));",
            _ARM64, ("i8mm",), 0, 4, 4, "uint8", "int8", "int32", "int8x16",
        ),
''')  # fmt: skip
    copy.run("""
from slipway.ir.interpreter.interpret import run
from slipway.transform.loop.pipeline import run_pipeline
from slipway.te.hardware import available, hardware_intrinsic
target = Target("llvm -mtriple=aarch64-linux-gnu -mattr=+neon,+i8mm")
assert "neon.usdot" in available(target)
assert "neon.usdot" not in available(Target("llvm -mtriple=x86_64-linux-gnu"))
a, b = te.placeholder((12,), "uint8", name="a"), te.placeholder((3, 4, 4), "int8", name="b")
k = te.reduce_axis((0, 12), "k")
product = lambda i: te.cast(a[k], "int32") * te.cast(b[k // 4, i, k % 4], "int32")
c = te.compute((4,), lambda i: te.sum(product(i), axis=k), name="c")
s = te.create_schedule(c.op)
outer, inner = s[c].split(k, 4)
s[c].reorder(outer, c.op.axis[0], inner)
s[c].tensorize(c.op.axis[0], hardware_intrinsic("neon.usdot", target))
assert "usdot" in tvm.build(s, [a, b, c], target).get_source("asm")
as_c = Target("c -mtriple=aarch64-linux-gnu -mattr=+neon,+i8mm")
assert "vusdotq_s32" in tvm.build(s, [a, b, c], as_c).get_source("c")
rng = np.random.default_rng(0)
x, y = rng.integers(0, 256, 12, "uint8"), rng.integers(-128, 128, (3, 4, 4), "int8")
got = np.zeros(4, "int32")
run(run_pipeline(te.lower(s, [a, b, c]), target), x, y, got)
np.testing.assert_array_equal(got, np.einsum("ok,oik->i", x.reshape(3, 4).astype(int), y))
""")
    copy.follows("An instruction")


def test_a_backend(copy):
    toy = ROOT / "tests" / "backends" / "toy_backend"
    for file in sorted(toy.rglob("*.py")):
        text = file.read_text().replace("toy_backend", "slipway.backends.toy")
        text = re.sub(r"^KIND = .*\n", "", text, flags=re.MULTILINE)
        text = text.replace("from slipway.target.kinds import TargetKind, cpu_options\n", "")
        copy.add(f"backends/toy/{file.relative_to(toy)}", text)
    kind = '    TargetKind("toy", 1, ("cpu", "toy"), {**_COMMON, **_LEGACY, **_CPU}),\n'
    copy.insert("target/kinds.py", "_KINDS = (\n", kind)
    copy.run("""
from slipway.backends.toy.backend import BACKEND
a = te.placeholder((5, 7), name="a")
b = te.compute((5, 7), lambda i, j: a[i, j] + 1.0, name="b")
function = tvm.build(te.create_schedule(b.op), [a, b], target="toy")
out = tvm.nd.array(np.zeros((5, 7), "float32"))
function(tvm.nd.array(np.ones((5, 7), "float32")), out)
assert (out.numpy() == 2).all()
x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.const(np.ones((4, 3, 3, 3), "float32"))
module = tvm.IRModule.from_expr(relay.Function([x], relay.nn.conv2d(x, w)))
run = relay.create_executor("graph", module, tvm.cpu(), "toy").evaluate()
assert (run(np.ones((1, 3, 8, 8), "float32")).numpy() == 27).all()
assert BACKEND.steps == {"graph", "loops"}, BACKEND.steps
assert BACKEND.used == ["relu_of_toy"], BACKEND.used
""")
    copy.follows("A backend")


BOARD = """title = "A bench board, Cortex-M4F"
aliases = ["the_bench"]
core = "cortex-m4"
startup = "cortex_m"
compiler = "arm-none-eabi-gcc"
cflags = ["-mcpu=cortex-m4", "-mthumb"]
target = "c -keys=arm_cpu -mcpu=cortex-m4"
clock_hz = 64000000

[[memory]]
name = "FLASH"
origin = 0x0
size = 0x80000

[[memory]]
name = "RAM"
origin = 0x20000000
size = 0x20000
"""


def test_a_board(copy):
    copy.add("boards/devices/bench-m4.toml", BOARD)
    copy.insert(
        "target/tags.py", "] = {\n",
        '    "bench/m4": _board("bench_m4", "cortex-m4", "armv7e-m", "fpv4-sp-d16"),\n',
    )  # fmt: skip
    copy.insert("target/models.py", "_MICRO_MODELS = {\n", '    "bench_m4": "bench/m4",\n')
    copy.run("""
from slipway.micro.board import find_board
board = find_board("bench-m4")
assert board.clock_hz == 64_000_000 and board.ram_bytes == 0x20000
assert find_board("the_bench").name == "bench-m4"
assert Target("bench/m4").attrs["mcpu"] == tvm.target.micro("bench_m4").attrs["mcpu"] == "cortex-m4"
a = te.placeholder((8,), name="a")
b = te.compute((8,), lambda i: a[i] + 1.0, name="b")
assert "float" in tvm.build(te.create_schedule(b.op), [a, b], board.target).get_source("c")
""")
    copy.follows("A board")
