"""Hardware intrinsics of microcontrollers, RISC-V V and Hexagon HVX, run on emulators."""

import numpy as np
import pytest
from boards import BOARDS, run_on
from intrinsic_products import operands, product

import slipway as tvm
from slipway.ir.hardware import HARDWARE
from slipway.te.hardware import hardware_intrinsic

TARGETS = {
    "cortex-m4": "-mtriple=thumbv7em-none-eabi -mcpu=cortex-m4",
    "cortex-m55": "-mtriple=thumbv8.1m.main-none-eabi -mcpu=cortex-m55",
    "riscv64": "-mtriple=riscv64-linux-gnu -mattr=+m,+a,+f,+d,+v",
    "riscv64-v256": "-mtriple=riscv64-linux-gnu -mattr=+m,+a,+f,+d,+v,+zvl256b",
    "hexagon": "-mtriple=hexagon-unknown-linux-musl -mcpu=hexagonv67 "
    "-mattr=+hvxv67,+hvx-length128b",
}
FAMILIES = {"arm": ["cortex-m4"], "mve": ["cortex-m55"], "rvv": ["riscv64"], "hvx": ["hexagon"]}


def _cases():
    """Every intrinsic by every compiler; by default the first of each family."""
    seen = set()
    for name in HARDWARE:
        boards = FAMILIES.get(name.partition(".")[0], [])
        for board in ["riscv64-v256"] if name.startswith("rvv.") and "256" in name else boards:
            for how in ["llvm", "c", "gcc"] if BOARDS[board].gcc else ["llvm", "c"]:
                marks = [pytest.mark.long] if (board, how) in seen else []
                seen.add((board, how))
                yield pytest.param(board, how, name, marks=marks)


@pytest.mark.parametrize(("board", "how", "name"), list(_cases()))
def test_hardware_intrinsics_on_boards(board, how, name, tmp_path):
    entry = HARDWARE[name]
    target = tvm.target.Target(f"{'llvm' if how == 'llvm' else 'c'} {TARGETS[board]}")
    s, args = product(entry, hardware_intrinsic(name, target))
    module = tvm.build(s, args, target, name="kernel").compiled
    a, b, want = operands(entry, args)
    arrays = [a.astype(entry.a_dtype), b.astype(entry.b_dtype), np.zeros(want.shape, entry.c_dtype)]
    got = run_on(board, module, arrays, tmp_path, use_gcc=how == "gcc")
    np.testing.assert_array_equal(got, want)
