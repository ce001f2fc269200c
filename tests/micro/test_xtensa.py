"""The generated C on an Xtensa core (ESP32-S3, ESP32-S2 and ESP8266 are such), emulated by QEMU.

ESP32-S3's own core and window registers are in no compiler of Debian's; the core here is the
ESP8266's, with the other calling convention.  The C is the same for all.
"""

import shutil
import subprocess
from pathlib import Path

import pytest
from aot_models import build, quantized_net

from slipway.micro.model_library_format import export_model_library_format
from slipway.toolchain.unpack import unpack_tar

HERE = Path(__file__).parent
MEMORY = """
MEMORY {
  CODE (rx) : ORIGIN = 0x50000000, LENGTH = 0x100000
  DATA (rw) : ORIGIN = 0x60000000, LENGTH = 0x400000
}
ENTRY(_start)
SECTIONS {
  .text : { KEEP(*(.reset)) *(.start) *(.literal .literal.* .text .text.*) } > CODE
  .data : { *(.rodata .rodata.* .data .data.*) } > DATA
  .bss : { *(.bss .bss.* COMMON) } > DATA
  __stack = 0x603FFFF0;
}
"""


@pytest.mark.parametrize("target", ["c", "c -mcpu=cortex-m4"])
def test_int8_model_has_the_bytes_of_this_machine(target, tmp_path):
    """The second target's kernels are for other cores: here they are compiled as portable C."""
    for tool in ("xtensa-lx106-elf-gcc", "qemu-system-xtensa", "gcc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: apt-get install gcc-xtensa-lx106 and QEMU")
    lib = build(quantized_net(), mod_name="kws", target=target)
    unpack_tar(export_model_library_format(lib, tmp_path / "m.tar"), tmp_path / "m")
    host = tmp_path / "m/codegen/host"
    sources = [HERE / "xtensa_main.c", *host.glob("src/*.c")]
    (tmp_path / "memory.ld").write_text(MEMORY)
    flags = ["-O2", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{host / 'include'}"]
    subprocess.run(["gcc", *flags, *sources, "-o", tmp_path / "here"], check=True)
    there = ["-ffreestanding", "-nostdlib", "-mtext-section-literals", "-T", tmp_path / "memory.ld"]
    subprocess.run(
        ["xtensa-lx106-elf-gcc", *flags, *there, *sources, "-o", tmp_path / "there"], check=True
    )
    wanted = subprocess.run([tmp_path / "here"], capture_output=True, check=True).stdout
    emulate = ["qemu-system-xtensa", "-M", "sim", "-cpu", "lx106", "-semihosting", "-nographic",
               "-monitor", "none", "-kernel", tmp_path / "there"]  # fmt: skip
    got = subprocess.run(emulate, capture_output=True, check=True, timeout=60).stdout
    assert len(wanted) == 10
    assert got == wanted
