"""The hand-written kernels are compiled by whatever flags a project has.

Their loops take nearly every register.  A debugging build keeps one for a frame pointer, and gcc
without optimisation gives away fewer still.
"""

import shutil
import subprocess

import pytest

from slipway.backends.micro.kernels.library import helper_text

CORES = {
    "dsp": ("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb"),
    "dsp_folded": ("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb"),
    "dsp_pairs": ("arm-none-eabi-gcc", "-mcpu=cortex-m7", "-mthumb"),
    "dsp_wide": ("arm-none-eabi-gcc", "-mcpu=cortex-m33", "-mthumb"),
    "mve": ("arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"),
    "scalar": ("arm-none-eabi-gcc", "-mcpu=cortex-m0", "-mthumb"),
    "riscv": ("riscv64-unknown-elf-gcc", "-march=rv32imac", "-mabi=ilp32", "-ffreestanding"),
}
LEVELS = ("-O0", "-O1", "-Og", "-O2", "-O3", "-Os")


@pytest.mark.parametrize("frame", ["-fomit-frame-pointer", "-fno-omit-frame-pointer"])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("core", CORES)
def test_all_functions_find_their_registers(core, level, frame, tmp_path):
    compiler, *flags = CORES[core]
    if not shutil.which(compiler):
        pytest.skip(f"apt-get install gcc-{compiler.removesuffix('-gcc')}")
    family = core if core != "riscv" else "scalar"
    text = helper_text((family, "addition", "grouped", "product"))
    (tmp_path / "k.c").write_text("#include <stdint.h>\n#include <stddef.h>\n" + text)
    keep = "-fkeep-static-functions"  # those that nothing calls are compiled too
    subprocess.run(
        [compiler, *flags, "-std=c11", keep, level, frame, "-c", "k.c", "-o", "k.o"],
        cwd=tmp_path, check=True,
    )  # fmt: skip


# Two layers whose rows need no memory: gcc then compiles the function for a null pointer there.
ROWS = """
#define LAYER(n, m) {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, -128, -128, 127, n, m, 0, 0, 1}
static const struct slw_layer first = LAYER(640, 128), second = LAYER(128, 10);
void rows(const int8_t *x, const uint32_t *a, const uint32_t *b, int8_t *y, int8_t *z);
void rows(const int8_t *x, const uint32_t *a, const uint32_t *b, int8_t *y, int8_t *z) {
  const struct slw_scales none = {NULL, NULL, NULL};
  slw_dense_folded(&first, x, a, &none, y, NULL);
  slw_dense_folded(&second, y, b, &none, z, NULL);
}
"""


@pytest.mark.parametrize("level", ["-O2", "-O3"])
@pytest.mark.parametrize("compiler", [CORES["dsp_folded"], ("gcc",)], ids=["arm", "host"])
def test_rows_without_memory_of_their_own_compile_without_a_warning(compiler, level, tmp_path):
    if not shutil.which(compiler[0]):
        pytest.skip(f"apt-get install {compiler[0]}")
    text = helper_text(("dsp_folded",)) + ROWS
    (tmp_path / "k.c").write_text("#include <stdint.h>\n#include <stddef.h>\n" + text)
    strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
    subprocess.run([*compiler, *strict, level, "-c", "k.c", "-o", "k.o"], cwd=tmp_path, check=True)
