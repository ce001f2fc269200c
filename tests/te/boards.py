"""Run a compiled te function on an emulated processor that has no RPC server of its own.

The function is linked with a program of a few lines and no library: the inputs are constants of
the program, the results are printed in hexadecimal. Microcontrollers run as QEMU boards and speak
through semihosting, the others under QEMU's user mode with system calls.
"""

import shutil
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

ZIG = [sys.executable, "-m", "ziglang"]
CORTEX_M = """
static long call(int op, const void* arg) {
  register int r0 __asm__("r0") = op;
  register const void* r1 __asm__("r1") = arg;
  __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}
static void print(char* text, int length) { (void)length; call(4, text); }
static void leave(int code) {
  const unsigned block[2] = {0x20026, (unsigned)code};
  call(0x20, block);
  for (;;) {}
}
extern unsigned stack_top[];
static int run(void);
void start(void) {
  *(volatile unsigned*)0xE000ED88 |= 0xFu << 20; /* the coprocessors that FPU and MVE are */
  __asm__ volatile("dsb\\n isb" ::: "memory");
  leave(run());
}
static void fault(void) { leave(100); }
__attribute__((section(".vectors"), used)) void (*const vectors[16])(void) = {
    (void (*)(void))stack_top, start, fault, fault, fault, fault, fault, fault,
    fault, fault, fault, fault, fault, fault, fault, fault};
"""
LINUX = """
static int run(void);
static void print(char* text, int length) { call(64, 1, (long)text, length); }
void _start(void) { call(93, run(), 0, 0); for (;;) {} }
"""
RISCV = (
    """
static long call(long number, long x, long y, long z) {
  register long a0 __asm__("a0") = x, a1 __asm__("a1") = y, a2 __asm__("a2") = z;
  register long a7 __asm__("a7") = number;
  __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
  return a0;
}
"""
    + LINUX
)
HEXAGON = (
    """
static long call(long number, long x, long y, long z) {
  register long r0 __asm__("r0") = x, r1 __asm__("r1") = y, r2 __asm__("r2") = z;
  register long r6 __asm__("r6") = number;
  __asm__ volatile("trap0(#1)" : "+r"(r0) : "r"(r1), "r"(r2), "r"(r6) : "memory");
  return r0;
}
"""
    + LINUX
)
MAIN = """
typedef struct { int type, padding; union { long long i; void* p; } v; } Any;
typedef struct {
  void* data; int device_type, device_id, ndim; unsigned char code, bits; unsigned short lanes;
  long long *shape, *strides; unsigned long long byte_offset;
} Tensor;
int __tvm_ffi_kernel(void*, const Any*, int, Any*);
%s
static int run(void) {
  static Tensor tensors[] = {%s};
  static char line[3];
  Any args[%d], result;
  unsigned i;
  for (i = 0; i < %d; ++i) {
    args[i].type = 7; args[i].padding = 0; args[i].v.i = 0; args[i].v.p = &tensors[i];
  }
  result.type = 0; result.padding = 0; result.v.i = 0;
  if (__tvm_ffi_kernel(0, args, %d, &result) != 0) return 3;
  for (i = 0; i < sizeof(%s); ++i) {
    const unsigned char byte = ((const unsigned char*)%s)[i];
    line[0] = "0123456789abcdef"[byte >> 4];
    line[1] = "0123456789abcdef"[byte & 15];
    print(line, 2);
  }
  return 0;
}
"""
SCRIPT = """
ENTRY(start)
SECTIONS {
  . = %s;
  .text : { KEEP(*(.vectors)) *(.text .text.* .rodata .rodata.*) }
  . = %s;
  .data : { *(.data .data.*) } .bss : { *(.bss .bss.* COMMON) }
  . = ALIGN(16); . = . + 0x4000; stack_top = .;
  /DISCARD/ : { *(.ARM.exidx* .ARM.extab* .comment .note* .eh_frame*) }
}
"""


@dataclass(frozen=True)
class Board:
    """How programs for a processor are compiled, linked and run."""

    triple: str  # Zig's
    cpu: str
    flags: tuple[str, ...]
    runtime: str
    emulator: tuple[str, ...]
    addresses: tuple[str, str] = ("", "")  # of code and data; empty for a Linux program
    gcc: tuple[str, ...] = ()  # another compiler for the same processor


_SYSTEM = ("-nographic", "-monitor", "none", "-serial", "null",
           "-semihosting-config", "enable=on,target=native")  # fmt: skip
BOARDS = {
    "cortex-m4": Board(
        "thumb-freestanding-eabi", "cortex_m4", ("-mthumb",), CORTEX_M,
        ("qemu-system-arm", "-M", "mps2-an386", *_SYSTEM, "-kernel"), ("0x0", "0x20000000"),
        ("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=soft"),
    ),
    "cortex-m55": Board(
        "thumb-freestanding-eabi", "cortex_m55", ("-mthumb",), CORTEX_M,
        ("qemu-system-arm", "-M", "mps3-an547", *_SYSTEM, "-kernel"),
        ("0x10000000", "0x30000000"),
        ("arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=softfp"),
    ),
    "riscv64": Board(
        "riscv64-freestanding", "generic_rv64+m+a+f+d+v", ("-mcmodel=medany",), RISCV,
        ("qemu-riscv64-static", "-cpu", "rv64,v=true,vlen=128"),
    ),
    "riscv64-v256": Board(
        "riscv64-freestanding", "generic_rv64+m+a+f+d+v+zvl256b", ("-mcmodel=medany",), RISCV,
        ("qemu-riscv64-static", "-cpu", "rv64,v=true,vlen=256"),
    ),
    "hexagon": Board(
        "hexagon-freestanding", "hexagonv67", (), HEXAGON,
        ("qemu-hexagon-static", "-cpu", "v67"),
    ),
}  # fmt: skip


def _array(name, data):
    """C definitions of an array's bytes and shape, and the Tensor that describes it."""
    raw = ",".join(str(b) for b in np.ascontiguousarray(data).tobytes())
    shape = ",".join(str(n) for n in data.shape)
    code = {"i": 0, "u": 1, "f": 2}[data.dtype.kind]
    text = (
        f"static unsigned char {name}[] __attribute__((aligned(128))) = {{{raw}}};\n"
        f"static long long {name}_shape[] = {{{shape}}};\n"
    )
    tensor = f"{{{name}, 1, 0, {data.ndim}, {code}, {data.itemsize * 8}, 1, {name}_shape, 0, 0}}"
    return text, tensor


def run_on(name, module, arrays, folder, use_gcc=False):
    """Run the function "kernel" of a CompiledModule; return what it leaves in the last array."""
    board = BOARDS[name]
    emulator = shutil.which(board.emulator[0])
    if emulator is None:
        pytest.skip(f"{board.emulator[0]} is not installed")
    texts, tensors = zip(*(_array(f"data{i}", a) for i, a in enumerate(arrays)), strict=True)
    last, count = f"data{len(arrays) - 1}", len(arrays)
    main = MAIN % ("".join(texts), ", ".join(tensors), count, count, count, last, last)
    (folder / "main.c").write_text(board.runtime + main)
    command = [*ZIG, "cc", "-target", board.triple, f"-mcpu={board.cpu}", *board.flags]
    quiet = ["-O1", "-ffreestanding", "-fno-builtin", "-fno-sanitize=all", "-fno-stack-protector"]
    _run([*command, *quiet, "-c", "main.c", "-o", "main.o"], folder)
    objects = ["main.o"]
    if use_gcc:
        if shutil.which(board.gcc[0]) is None:
            pytest.skip(f"{board.gcc[0]} is not installed")
        (folder / "kernel.c").write_text(module.get_source("c"))
        _run([*board.gcc, "-O2", "-ffreestanding", "-c", "kernel.c", "-o", "kernel.o"], folder)
        objects.append("kernel.o")
    else:
        for number, data in enumerate(module.objects):
            (folder / f"part{number}.o").write_bytes(data)
            objects.append(f"part{number}.o")
    link = [*ZIG, "ld.lld", *objects, "-o", "program", "--gc-sections", "-static"]
    if board.addresses[0]:
        (folder / "script.ld").write_text(SCRIPT % board.addresses)
        link += ["-T", "script.ld"]
    _run(link, folder)
    done = subprocess.run(
        [emulator, *board.emulator[1:], "./program"],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stderr, done.stdout[-200:])
    like = arrays[-1]
    printed = done.stdout if done.stdout else done.stderr  # semihosting's console may be either
    return np.frombuffer(bytes.fromhex(printed.decode()), like.dtype).reshape(like.shape)


def _run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
