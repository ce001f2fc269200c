"""The C++ of the seeds: a model without Python, a function registered and called."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import slipway as tvm
from slipway import libinfo, relay

TEXT_WITHOUT_PYTHON = "C++ Deployment (No Python Required)"


@pytest.fixture(params=["g++", "clang++"])
def build(request):
    """Return a function (source, out, *flags) that compiles against the runtime."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    library = Path(libinfo.find_lib_path()[0]).parent
    flags = ["-std=c++14", "-Wall", "-Wextra", "-I", libinfo.find_include_path()[0]]
    link = [f"-L{library}", "-lslipway_runtime", f"-Wl,-rpath,{library}"]

    def compile_program(source, out, *more):
        command = [request.param, *flags, *more, str(source), "-o", str(out), *link]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return out

    return compile_program


def test_seed_002_deployment(shared, build, tmp_path):
    """The snippet as it stands: its includes above main, its statements inside."""
    text = (shared / "seeds" / "002_e117202ba09fac4f.txt").read_text()
    snippet = text[text.index(TEXT_WITHOUT_PYTHON) + len(TEXT_WITHOUT_PYTHON) :]
    snippet = snippet[: snippet.index("run(input);") + len("run(input);")]
    includes = "\n".join(re.findall(r"^#include .*$", snippet, re.MULTILINE))
    statements = re.sub(r"^#include .*$", "", snippet, flags=re.MULTILINE)
    program = tmp_path / "deploy.cc"
    program.write_text(
        f"#include <cstdio>\n{includes}\nint main() {{\n{statements}\n"
        "  tvm::runtime::NDArray result = run(input);\n"
        '  std::printf("%g", static_cast<float *>(result->data)[0]);\n}\n'
    )
    x = relay.var("input", shape=(1, 3, 224, 224))
    body = relay.nn.softmax(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(x)))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), target="llvm")
    lib.export_library(str(tmp_path / "model.so"))
    built = build(program, tmp_path / "deploy")
    done = subprocess.run([built], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "0.333333"), done.stderr


REGISTRATION = """
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

using namespace tvm::runtime;

void MyAdd(TVMArgs args, TVMRetValue* rv) {
  // automatically convert arguments to desired type.
  int a = args[0];
  int b = args[1];
  // automatically assign value return to rv
  *rv = a + b;
}

extern "C" int CallPacked() {
  PackedFunc myadd = PackedFunc(MyAdd);
  // get back 3
  int c = myadd(1, 2);
  return c;
}

// register a global packed function in c++
TVM_REGISTER_GLOBAL("myadd").set_body(MyAdd);
"""

CALL = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
import slipway as tvm
assert library.CallPacked() == 3
addTwoVectors = tvm.get_global_func("myadd")
print(addTwoVectors(1, 2))
"""


def test_seed_003_registration(build, tmp_path):
    """What C++ registers is called from C++, and from Python as the seed does."""
    source = tmp_path / "myadd.cc"
    source.write_text(REGISTRATION)
    library = build(source, tmp_path / "libmyadd.so", "-shared", "-fPIC")
    done = subprocess.run([sys.executable, "-c", CALL, library], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr
