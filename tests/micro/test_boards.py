"""Boards: those that are only built, one of a user's own, and what a wrong description says."""

import re

import numpy as np
import pytest
from aot_models import build, keyword_net
from firmware_tools import needs

import slipway as tvm
from slipway import micro, te
from slipway.errors import SlipwayError
from slipway.micro.board import DEVICES, find_board
from slipway.micro.emulator import run_image
from slipway.toolchain.elf import ElfFile

PT_LOAD = 1


def make(board, kind, folder, target=None, **options):
    lib = build(keyword_net(), target=target or find_board(board).target)
    project = micro.generate_project(
        "baremetal", lib, folder, {"board": board, "project_type": kind, **options}
    )
    project.build()
    return project


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param("nucleo-l4r5zi", "example_project", marks=pytest.mark.long),
        pytest.param("nrf52840", "example_project", marks=pytest.mark.long),
        ("stm32f746", "example_project"),
        ("nucleo-u575zi", "example_project"),
        ("rp2040", "host_driven"),
    ],
)
def test_firmware_of_real_boards_links_and_lies_in_their_memories(name, kind, tmp_path):
    board = find_board(name)
    needs(board)
    project = make(name, kind, tmp_path / "p", warning_as_error=True)
    with pytest.raises(Exception, match="option port"):
        project.transport().open()
    project.close()
    elf = ElfFile((tmp_path / "p/build/firmware.elf").read_bytes(), "the firmware")
    loaded = [s for s in elf.segments if s.type == PT_LOAD and s.memory_bytes]
    for segment in loaded:
        assert any(
            m.origin <= segment.address
            and segment.address + segment.memory_bytes <= m.origin + m.size
            for m in board.memories
        ), hex(segment.address)
    flash = board.memory("FLASH")
    assert any(s.address == flash.origin for s in loaded)  # the vectors
    content = (tmp_path / "p/build/firmware.map").read_text()
    assert re.search(rf"\.vectors\s+0x0*{flash.origin:x}\b", content)


OWN_BOARD = """
title = "A board of our own: a Cortex-M4 with little memory"
core = "cortex-m4"
startup = "cortex_m"
compiler = "arm-none-eabi-gcc"
cflags = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
target = "c -keys=arm_cpu -mcpu=cortex-m4"
clock_hz = 25000000
uart = { kind = "cmsdk", base = 0x40004000 }
exit = "semihosting"

[[memory]]
name = "FLASH"
origin = 0x00000000
size = 0x20000

[[memory]]
name = "RAM"
origin = 0x20000000
size = 0x20000

[emulator]
program = "qemu-system-arm"
args = ["-M", "mps2-an386"]
"""


def test_board_of_a_data_file_outside_of_the_package(tmp_path):
    """The recipe of docs/micro.md: describe it, generate, build, run, drive."""
    needs("mps2-an386")
    path = tmp_path / "ours.toml"
    path.write_text(OWN_BOARD)
    board = find_board(str(path))
    assert (board.name, board.flash_bytes, board.ram_bytes) == ("ours", 131072, 131072)
    project = make(str(path), "bench", tmp_path / "p", board.target)
    project.close()
    path.rename(tmp_path / "moved.toml")  # a project keeps the description it was made from
    status, text = run_image(board, tmp_path / "p/build/firmware.elf")
    assert status == 0, text
    assert text.count("OUT ") == 10
    firmware = micro.generate_firmware(
        "baremetal", tmp_path / "f", {"board": str(tmp_path / "moved.toml"), "heap_bytes": 16384}
    )
    firmware.build()
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="b")
    kernel = tvm.build(te.create_schedule(b.op), [a, b], board.target, name="more")
    with micro.Session(firmware.transport()) as session:
        module = session.load(kernel)
        x = tvm.nd.array(np.arange(8, dtype="float32"), session.device)
        y = tvm.nd.array(np.zeros(8, "float32"), session.device)
        module["more"](x, y)
        assert y.numpy().tolist() == list(range(1, 9))
    firmware.close()


def test_what_a_wrong_description_says(tmp_path):
    path = tmp_path / "ours.toml"
    path.write_text(OWN_BOARD.replace("clock_hz", "clock"))
    with pytest.raises(SlipwayError, match=r"ours\.toml does not describe a board: .*clock_hz"):
        find_board(str(path))
    path.write_text(OWN_BOARD.replace('"FLASH"', '"ROM"'))
    with pytest.raises(SlipwayError, match="needs a memory FLASH"):
        find_board(str(path))
    path.write_text(OWN_BOARD.replace('"cmsdk"', '"pl012"'))
    with pytest.raises(SlipwayError, match=r"'pl012'.* cmsdk"):
        find_board(str(path))
    with pytest.raises(SlipwayError, match="there is no file"):
        find_board(str(tmp_path / "none.toml"))
    with pytest.raises(SlipwayError, match="Did you mean 'rp2040'"):
        find_board("rp2400")
    for name in DEVICES.glob("*.toml"):
        assert find_board(str(name)).name == name.stem
