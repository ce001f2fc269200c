"""The numeric cases in C for cores without a floating point unit, and with one for float32 only.

There GCC's own functions do the arithmetic, and helpers that the C text brings along stand in for
instructions that other processors have.  One program runs all cases and prints the results.
"""

import shutil
import subprocess

import numpy as np
import pytest
from tests.codegen import test_math, test_numeric
from tests.te.boards import BOARDS, CORTEX_M, RISCV, SCRIPT

from slipway.codegen.math import ulp_bound
from slipway.codegen.math.table import functions
from slipway.compiler.emit import build_module
from slipway.target import Target

ARM = "arm-none-eabi-gcc"
RISCV_GCC = "riscv64-unknown-elf-gcc"
CORES = {
    "cortex-m3": (
        "-mtriple=thumbv7m-none-eabi -mcpu=cortex-m3",
        (ARM, "-mcpu=cortex-m3", "-mthumb", "-Wl,-Tscript.ld"),
        ("qemu-system-arm", "-M", "mps2-an385", *BOARDS["cortex-m4"].emulator[3:]),
    ),
    "cortex-m4": (  # its unit knows float32 alone
        "-mtriple=thumbv7em-none-eabi -mcpu=cortex-m4",
        (ARM, "-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard",
         "-Wl,-Tscript.ld"),
        BOARDS["cortex-m4"].emulator,
    ),
    "rv32imac": (
        "-mtriple=riscv32-unknown-none-elf -mattr=+m,+a,+c",
        (RISCV_GCC, "-march=rv32imac", "-mabi=ilp32", "-Wl,--no-relax"),
        ("qemu-riscv32-static",),
    ),
}  # fmt: skip
TYPES = {"i": 0, "u": 1, "f": 2, "b": 6}
MAIN = """
typedef struct { int type, padding; union { long long i; void* p; } v; } Any;
typedef struct {
  void* data; int device_type, device_id, ndim; unsigned char code, bits; unsigned short lanes;
  long long *shape, *strides; unsigned long long byte_offset;
} Tensor;
typedef int Kernel(void*, const Any*, int, Any*);
typedef struct { Kernel* kernel; int arguments, outputs, bytes; } Case;
void* memcpy(void* to, const void* from, unsigned long n) {
  char* out = to; const char* in = from; while (n--) *out++ = *in++; return to;
}
void* memset(void* to, int value, unsigned long n) {
  char* out = to; while (n--) *out++ = (char)value; return to;
}
extern unsigned char data[];
%(declared)s
static long long shape[] = {%(length)d};
static Tensor tensors[] = {%(tensors)s};
static const Case cases[] = {%(cases)s};
static int run(void) {
  static char text[2 * %(length)d * 8 + 1];
  Tensor* tensor = tensors;
  unsigned c;
  for (c = 0; c < sizeof cases / sizeof *cases; ++c) {
    Any args[4], result;
    int i, k;
    for (i = 0; i < cases[c].arguments; ++i) {
      args[i].type = 7; args[i].padding = 0; args[i].v.i = 0; args[i].v.p = tensor + i;
    }
    result.type = 0; result.padding = 0; result.v.i = 0;
    if (cases[c].kernel(0, args, cases[c].arguments, &result) != 0) return 3;
    tensor += cases[c].arguments;
    for (k = cases[c].outputs; k > 0; --k) {
      const unsigned char* bytes = tensor[-k].data;
      for (i = 0; i < cases[c].bytes; ++i) {
        text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
      }
      text[2 * i] = 0;
      print(text, 2 * i);
    }
  }
  return 0;
}
"""
DATA = '.section .data\n.balign 64\n.globl data\ndata: .incbin "data.bin"\n'


def run_all(core, funcs, inputs, outputs, folder):
    """Run functions of vectors in one program; return the arrays that each of them leaves.

    `inputs` and `outputs` hold a list of arrays for each function, by name.
    """
    options, compiler, emulator = CORES[core]
    for tool in (compiler[0], emulator[0]):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    source = build_module(funcs, Target(f"c {options}")).get_source("c")
    (folder / "kernels.c").write_text(source)
    blob, tensors, cases = bytearray(), [], []
    (length,) = {len(a) for arrays in inputs.values() for a in arrays}
    for name in funcs:
        arrays = [*inputs[name], *outputs[name]]
        for array in arrays:
            tensors.append(
                f"{{data + {len(blob)}, 1, 0, 1, {TYPES[array.dtype.kind]}, "
                f"{array.itemsize * 8}, 1, shape, 0, 0}}"
            )
            blob += array.tobytes()
            blob += bytes(-len(blob) % 64)
        out = outputs[name]
        cases.append(f"{{__tvm_ffi_{name}, {len(arrays)}, {len(out)}, {out[0].nbytes}}}")
    (folder / "data.bin").write_bytes(blob)
    (folder / "data.S").write_text(DATA)
    (folder / "script.ld").write_text(SCRIPT % BOARDS["cortex-m4"].addresses)
    runtime = CORTEX_M if compiler[0] == ARM else RISCV
    (folder / "main.c").write_text(runtime + MAIN % {
        "declared": "".join(f"Kernel __tvm_ffi_{name};\n" for name in funcs),
        "length": length, "tensors": ",\n".join(tensors), "cases": ",\n".join(cases),
    })  # fmt: skip
    command = [*compiler, "-O1", "-ffreestanding", "-nostdlib", "-fno-builtin", "-w",
               "main.c", "kernels.c", "data.S", "-lgcc", "-o", "program"]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(
        [*emulator, "./program"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stderr[-200:], done.stdout[-200:])
    printed = bytes.fromhex((done.stdout or done.stderr).decode())
    results, at = {}, 0
    for name in funcs:
        results[name] = []
        for like in outputs[name]:
            results[name].append(np.frombuffer(printed[at : at + like.nbytes], like.dtype))
            at += like.nbytes
    assert at == len(printed)
    return results


def check_cases(core, cases, folder):
    empty = {c.name: [np.zeros(test_numeric.N, c.out) for _ in range(2)] for c in cases}
    got = run_all(
        core, {c.name: test_numeric.function(c) for c in cases},
        {c.name: c.inputs for c in cases}, empty, folder,
    )  # fmt: skip
    wrong = []
    for case in cases:
        with np.errstate(all="ignore"):
            want = np.asarray(case.reference(*case.inputs)).astype(case.out)
        for out in got[case.name]:
            same = (out == want) | ((out != out) & (want != want))
            if not same.all():
                k = int(np.argmin(same))
                given = [v[k] for v in case.inputs]
                wrong.append(f"{case.name}: f({given}) = {out[k]}, not {want[k]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("core", CORES)
def test_some_cases(core, tmp_path):
    rare = ("sqrt_", "fma_", "Mod_float", "cast_float64", "through_")
    cases = [c for c in test_numeric.CASES if c.name.startswith(rare)]
    check_cases(core, list(dict.fromkeys([*cases, *test_numeric.CASES[::9]])), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("core", CORES)
def test_every_case(core, tmp_path):
    check_cases(core, test_numeric.CASES, tmp_path)


def check_functions(core, dtype, names, count, folder):
    arguments = {}
    for op in names:
        given = 2 if op in test_math.TWO_ARGUMENTS else 1
        with np.errstate(all="ignore"):
            arguments[op] = [test_math.samples(op, dtype, k)[:: test_math.N // count]
                             for k in range(given)]  # fmt: skip
            if op == "pow" and dtype == "float64":
                arguments[op][1] = arguments[op][1] / 100
    got = run_all(
        core, {op: test_math.function(op, dtype, count) for op in names},
        arguments, {op: [np.zeros(count, dtype)] for op in names}, folder,
    )  # fmt: skip
    for op in names:
        with np.errstate(all="ignore"):
            worst, where = test_math.error_in_ulp(op, got[op][0], arguments[op])
        bound = 0.5 if op == "sqrt" else ulp_bound(op, dtype)
        assert worst <= bound, (op, where)


@pytest.mark.parametrize("core", ["cortex-m3", pytest.param("rv32imac", marks=pytest.mark.long)])
def test_elementary_functions(core, tmp_path):
    check_functions(core, "float32", ["sqrt", *functions()], 512, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("core", CORES)
def test_elementary_functions_of_doubles(core, tmp_path):
    check_functions(core, "float64", ["sqrt", *functions()], 512, tmp_path)
