"""What editors and type checkers see: facades, functions, the types of parameters."""

import ast
import importlib
import subprocess
import sys
import typing

import pytest

import slipway

RIGHT = '''
"""A user's program, with every facade of the package."""

import numpy as np

import slipway as tvm
from slipway import micro, relay, rpc, te, tir, topi
from slipway.contrib import graph_executor
from slipway.transform import PassContext


def model() -> tvm.IRModule:
    data = relay.var("data", shape=(1, 3, 32, 32), dtype="float32")
    weight = relay.const(np.ones((8, 3, 3, 3), "float32"))
    conv = relay.nn.conv2d(data, weight, padding=(1, 1), channels=8, kernel_size=(3, 3))
    pooled = relay.nn.global_avg_pool2d(relay.nn.relu(conv))
    flat = relay.nn.batch_flatten(pooled)
    out = relay.nn.softmax(relay.add(relay.multiply(flat, relay.const(2.0)), 1.0))
    return tvm.IRModule.from_expr(relay.Function(tuple(relay.visit.free_vars(out)), out))


def kernel() -> tvm.runtime.Module:
    n = te.var("n")
    a = te.placeholder((n, 16), name="A", dtype="float32")
    b = te.compute((n, 16), lambda i, j: te.exp(a[i, j]) + 1.0, name="B")
    c = topi.nn.relu(b)
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[1], factor=8)
    s[c].vectorize(inner)
    s[c].parallel(outer)
    builder = tir.ir_builder.create()
    assert builder is not None
    assert str(tvm.lower(s, [a, c], simple_mode=True))
    return tvm.build(s, [a, c], target="llvm", name="f")


def run() -> None:
    with PassContext(opt_level=3, disabled_pass=["FoldScaleAxis"]):
        library = relay.build(model(), target="llvm", params=None)
    library.export_library("model.tar")
    module = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    module.set_input("data", np.zeros((1, 3, 32, 32), "float32"))
    module.run()
    print(module.get_output(0).numpy().shape, kernel())
    remote = rpc.connect("127.0.0.1", 9090)
    remote.upload("model.tar")
    mod = relay.transform.Sequential([relay.transform.FoldConstant()])(model())
    print(mod["main"], micro.__name__, tir.call_extern("int32", "f", 1), relay.Any())


run()
'''
# A line with a mistake, and what is said to it.
WRONG = {
    'tvm.buid(None)': 'has no attribute "buid"',
    'relay.nn.conv3(x, x)': 'has no attribute "conv3"',
    'relay.nn.conv2d(x, x, paddings=(1, 1))': 'Unexpected keyword argument "paddings"',
    'relay.nn.softmax(x, axis="last")': 'incompatible type "str"',
    'relay.exponential(x)': 'has no attribute "exponential"',
    'relay.transform.FoldConst()': 'has no attribute "FoldConst"',
    'relay.build(x, tagret="llvm")': 'Unexpected keyword argument "tagret"',
    'relay.frontend.from_onx("m.onnx")': 'has no attribute "from_onx"',
    'relay.qnn.op.requantise(x)': 'has no attribute "requantise"',
    'te.placehold((4,))': 'has no attribute "placehold"',
    'te.placeholder((4,), nam="A")': 'Unexpected keyword argument "nam"',
    'tir.call_externs("int32", "f")': 'has no attribute "call_externs"',
    'tir.np.zeros(4)': 'has no attribute "np"',
    'topi.nn.rely(x)': 'has no attribute "rely"',
    'rpc.connect("localhost", prot=9090)': 'Unexpected keyword argument "prot"',
    'rpc.conect("localhost", 9090)': 'has no attribute "conect"',
    'micro.Sesion()': 'has no attribute "Sesion"',
    'PassContext(opt_levl=3)': 'Unexpected keyword argument "opt_levl"',
    'tvm.cpu("first")': 'incompatible type "str"',
    'tvm.runtime.load_modul("lib.so")': 'has no attribute "load_modul"',
    'graph_executor.GraphModul(x)': 'has no attribute "GraphModul"',
}  # fmt: skip
HEAD = """
import slipway as tvm
from slipway import micro, relay, rpc, te, tir, topi
from slipway.contrib import graph_executor
from slipway.transform import PassContext
x = relay.var("x", shape=(1, 2))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory, repository):
    """What mypy says, by (file, line)."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "right.py").write_text(RIGHT, encoding="utf-8")
    (folder / "wrong.py").write_text(HEAD + "\n".join(WRONG) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--show-error-codes"]
    command += ["--config-file", str(repository / "pyproject.toml"), "--cache-dir", str(folder)]
    command += [str(folder / "right.py"), str(folder / "wrong.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=repository)
    assert not done.stderr, done.stderr
    found: dict[tuple[str, int], str] = {}
    for line in done.stdout.splitlines():
        file, number, text = line.split(":", 2)
        key = (file.rpartition("/")[2], int(number))
        found[key] = found.get(key, "") + text
    return found


def test_a_right_program_is_clean(said):
    assert not {location: text for location, text in said.items() if location[0] != "wrong.py"}


@pytest.mark.parametrize("line", WRONG)
def test_a_mistake_is_found(said, line):
    number = HEAD.count("\n") + list(WRONG).index(line) + 1
    assert WRONG[line] in said.get(("wrong.py", number), "nothing")


def test_stubs_are_in_step(repository):
    """Run ``python tools/stubs.py`` where this fails."""
    command = [sys.executable, str(repository / "tools/stubs.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("facade", ["slipway.tir", "slipway.relay.transform", "slipway.relay.nn"])
@pytest.mark.parametrize(
    "name", ["Callable", "E", "LoweringError", "Mapping", "Sequence", "np", "typed"]
)
def test_what_a_module_works_with_is_not_offered(facade, name):
    module = importlib.import_module(facade)
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        getattr(module, name)


def test_any_is_an_open_dimension():
    """In tir and relay; `te.any` of truth values is another one."""
    assert slipway.tir.Any is slipway.relay.Any
    assert slipway.tir.Any is not typing.Any
    assert str(slipway.relay.TensorType((slipway.tir.Any(), 4))) == "Tensor[(?, 4), float32]"
    with pytest.raises(AttributeError, match="no attribute 'Any'"):
        slipway.relay.transform.Any  # noqa: B018


def parameters(body, outer=""):
    """Yield (function, parameter) of the public functions and methods among statements."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name.startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            yield from parameters(node.body, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            a = node.args
            given = [*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg]
            for parameter in given:
                if parameter is not None and parameter.arg not in ("self", "cls"):
                    yield f"{outer}{node.name}", parameter


def test_types_of_parameters_are_written_down(repository):
    """`Any` is left for what nothing is known about: at most 7 of 100 parameters."""
    source = repository / "src/slipway"
    count, anything = 0, []
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source)
        if name.parts[0] == "boards":
            continue
        for function, parameter in parameters(ast.parse(path.read_text(encoding="utf-8")).body):
            hint = parameter.annotation and ast.unparse(parameter.annotation)
            count += 1
            if hint in (None, "Any", "typing.Any"):
                anything.append(f"{name}:{parameter.lineno}: {function}({parameter.arg})")
    assert count > 6000
    assert len(anything) <= 0.07 * count, "\n".join(anything)
