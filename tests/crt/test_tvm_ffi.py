"""Exported libraries where only apache-tvm-ffi is: its own loader, in C++ and in Python."""

import subprocess
import sys

import pytest

import slipway as tvm
from slipway import te

from . import foreign

PROGRAM = """
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/tvm_ffi.h>

#include <cstdio>
#include <cstring>

namespace ffi = tvm::ffi;

struct Zeros {
  void AllocData(DLTensor *tensor) { tensor->data = new float[8](); }
  void FreeData(DLTensor *tensor) { delete[] static_cast<float *>(tensor->data); }
};

ffi::Tensor zeros(int64_t size) {
  return ffi::Tensor::FromNDAlloc(Zeros(), ffi::Shape({size}), DLDataType{kDLFloat, 32, 1},
                                  DLDevice{kDLCPU, 0});
}

int main(int, char **arguments) {
  TVMFFIEnvModRegisterContextSymbol("__TVMFFIErrorSetRaisedFromCStr",
                                    reinterpret_cast<void *>(TVMFFIErrorSetRaisedFromCStr));
  ffi::Module library = ffi::Module::LoadFromFile(arguments[1]);
  ffi::Function add = library->GetFunction("add_one").value();
  ffi::Tensor x = zeros(4), y = zeros(4), wrong = zeros(3);
  add(x, y);
  add(y, x);
  std::printf("%.1f\\n", static_cast<float *>(x.data_ptr())[3]);
  try {
    add(x, wrong);
  } catch (const ffi::Error &error) {
    std::printf("%s: %s\\n", error.kind().c_str(), error.message().c_str());
  }
  try {
    add(x);
  } catch (const ffi::Error &error) {
    std::printf("%s: %s\\n", error.kind().c_str(), error.message().c_str());
  }
}
"""
ERRORS = (
    "ValueError: add_one: argument 1 (b) has shape[0] = 3, expected 4",
    "TypeError: add_one: got 1 arguments, expected 2",
)


@pytest.fixture
def library(tmp_path):
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1, name="b")
    built = tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="add_one")
    built.export_library(str(tmp_path / "add.so"))
    return tmp_path / "add.so"


@pytest.mark.parametrize("name", ["g++", "clang++"])
def test_its_loader_in_cpp(name, library, tmp_path):
    source = tmp_path / "program.cc"
    source.write_text(PROGRAM)
    program = foreign.build_with_tvm_ffi(foreign.needed(name), source, tmp_path / "program")
    assert foreign.run([program, library]).splitlines() == ["2.0", *ERRORS]


def test_its_loader_beside_slipway(library):
    script = (
        "import sys, numpy as np, slipway, tvm_ffi\n"
        "slipway.cpu(0)\n"
        "slipway.get_global_func('none', allow_missing=True)\n"
        "add = tvm_ffi.load_module(sys.argv[1]).get_function('add_one')\n"
        "x, y, wrong = (tvm_ffi.from_dlpack(np.zeros(n, 'float32')) for n in (4, 4, 3))\n"
        "add(x, y)\n"
        "print(np.from_dlpack(y)[3])\n"
        "for given in ((x, wrong), (x,)):\n"
        "    try:\n"
        "        print(add(*given))\n"
        "    except (ValueError, TypeError) as error:\n"
        "        print(f'{type(error).__name__}: {error}')\n"
    )
    command = [sys.executable, "-c", script, str(library)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines() == ["1.0", *ERRORS], done.stderr
