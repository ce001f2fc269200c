"""Boards: those that are only built, one of a user's own, and what a wrong description says."""

import re
import struct
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from aot_models import build, keyword_net
from firmware_tools import needs

import slipway as tvm
from slipway import micro, te
from slipway.errors import FileError, SlipwayError
from slipway.micro.board import DEVICES, BootPart, Memory, board_toml, find_board
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
        pytest.param("nrf5340", "example_project", marks=pytest.mark.long),
        ("teensy41", "host_driven"),
        ("esp32c3", "example_project"),
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
    flash = board.memory("FLASH")
    regions = [(m.origin, m.size) for m in board.memories]
    if board.read_at:
        regions.append((board.read_at, flash.size))
    for segment in loaded:
        assert any(
            origin <= segment.address and segment.address + segment.memory_bytes <= origin + size
            for origin, size in regions
        ), hex(segment.address)
    assert any(s.address == flash.origin for s in loaded)  # the vectors
    content = (tmp_path / "p/build/firmware.map").read_text()
    assert re.search(rf"\.vectors\s+0x0*{flash.origin:x}\b", content)


def image_bytes(folder, board):
    """The image as it lies in flash, from its first byte."""
    objcopy = board.compiler.replace("gcc", "objcopy")
    subprocess.run(
        [objcopy, "-O", "binary", folder / "build/firmware.elf", folder / "image"], check=True
    )
    return (folder / "image").read_bytes()


def test_image_of_esp32c3_is_one_that_its_rom_starts(tmp_path):
    """Direct boot: the magic number twice, then code; constants where the data bus sees them."""
    board = find_board("esp32c3")
    needs(board)
    make("esp32c3", "example_project", tmp_path / "p").close()
    image = image_bytes(tmp_path / "p", board)
    assert image[:8] == struct.pack("<2I", 0xAEDB041D, 0xAEDB041D)
    elf = ElfFile((tmp_path / "p/build/firmware.elf").read_bytes(), "the firmware")
    assert struct.unpack("<I", elf.data[24:28]) == (0x42000008,)  # where the ROM jumps to
    (constants,) = (s for s in elf.segments if s.address >> 24 == 0x3C)
    assert constants.address - 0x3C000000 == constants.load_address - 0x42000000
    at = constants.address - 0x3C000000
    content = elf.data[constants.offset : constants.offset + constants.file_bytes]
    assert image[at : at + len(content)] == content
    assert any(content)


def test_image_of_teensy_has_the_tables_that_its_rom_reads(tmp_path):
    """i.MX RT1060: the flash's configuration, then the image vector table at 0x1000."""
    board = find_board("teensy41")
    needs(board)
    make("teensy41", "example_project", tmp_path / "p").close()
    image = image_bytes(tmp_path / "p", board)
    assert image[:4] == b"FCFB"
    assert struct.unpack_from("<I", image, 0x50) == (8 << 20,)
    header, entry, _, _, data, this = struct.unpack_from("<6I", image, 0x1000)
    assert header == 0x402000D1  # tag 0xD1, 32 bytes, version 4.0
    assert (this, data, entry) == (0x60001000, 0x60001020, 0x60002000)
    begin, size = struct.unpack_from("<2I", image, 0x1020)
    assert begin == 0x60000000
    assert len(image) <= size <= 8 << 20
    stack, reset = struct.unpack_from("<2I", image, 0x2000)
    assert 0x20200000 < stack <= 0x20280000
    assert reset & 1
    assert 0x60002000 < reset < 0x60000000 + len(image)


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


def test_caches_and_a_boot_rom_of_ones_own(tmp_path):
    """What only Teensy's description uses: the data cache, and a start with another's stack."""
    needs("mps2-an500")
    board = find_board("mps2-an500")
    flash = board.memory("FLASH")
    table = BootPart(flash.origin + flash.size - 0x100, 0x100, ((0x10, 0xCAFE),))
    memories = [replace(m, size=m.size - 0x100) if m is flash else m for m in board.memories]
    path = tmp_path / "ours.toml"
    path.write_text(board_toml(replace(
        board, data_cache=True, instruction_cache=True, boot=(table,),
        memories=(*memories, Memory("BOOT", table.at, table.size)),
    )))  # fmt: skip
    firmware = micro.generate_firmware(
        "baremetal", tmp_path / "f", {"board": str(path), "heap_bytes": 16384}
    )
    firmware.build()
    image = ElfFile((tmp_path / "f/build/firmware.elf").read_bytes(), "the firmware")
    (boot,) = (s for s in image.segments if s.load_address == table.at and s.file_bytes)
    content = image.data[boot.offset : boot.offset + boot.file_bytes]
    assert content == bytes(0x10) + struct.pack("<I", 0xCAFE) + bytes(0x100 - 0x14)
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


WRONG = [
    ("title =", "title = 7 #", "title: 7 is no text"),
    ("core =", "kern = 'x'\ncore = ", "it has 'kern', which says nothing"),
    ('startup = "cortex_m"', 'startup = "cortex-m"', "no startup 'cortex-m'; .* 'cortex_m'"),
    ("compiler =", "#", "it has no 'compiler'"),
    ('cflags = ["-mcpu=cortex-m4",', 'cflags = "-mcpu=cortex-m4" #', "cflags: .* is no list"),
    ('cflags = ["-mcpu=cortex-m4"', "cflags = [4", "cflags: 4 is no text"),
    ("clock_hz = 25000000", 'clock_hz = "25 MHz"', 'clock_hz: "25 MHz" is no whole number'),
    ("clock_hz = 25", "clock_hz = -25", "clock_hz: -25000000 is no number from 0"),
    ("clock_hz = 25000000", "clock_hz = 0", "clock_hz is 0"),
    ("clock_hz =", "clok = ['']\nclock_hz = ", "'clok', which says nothing. Did you mean 'clock'"),
    ("base = 0x40004000", "bas = 1", "uart: it has 'bas', which says nothing. .* 'base'"),
    ("uart = { kind", "uart = 'cmsdk' # ", 'uart: "cmsdk" is no table'),
    ('exit = "semihosting"', 'exit = "semihost"', "no exit 'semihost'; .* 'semihosting'"),
    ("exit", "flash_tool = 'pyocd'\nexit", "flash_tool is 'pyocd', where 'pyocd CHIP'"),
    ("exit", "flash_tool = 'openocd x'\nexit ", "no flash_tool 'openocd'; .* 'pyocd'"),
    ("exit =", "data_cache = 1\nexit =", "data_cache: 1 is no true or false"),
    ("exit =", "clock = ['write zz 1']\nexit = ", "clock: 'write zz 1' has a word that is no"),
    ("size = 0x20000", "size = 0x30000000", "memory FLASH .* reaches into RAM, .* 0x20000000"),
    ("size = 0x2000", "size = 0x0000", "the memory FLASH: it has no bytes"),
    ("origin = 0x00000000", "", "memory: it has no 'origin'"),
    ('name = "RAM"', 'name = "FLASH"', "the memory FLASH: there are two|needs a memory RAM"),
    ("[[memory]]", "[memory]", "does not describe a board: Cannot overwrite"),
    ("args = [", "args = 1 # ", "emulator: args: 1 is no list"),
]


@pytest.mark.parametrize(("right", "wrong", "told"), WRONG)
def test_a_mistake_in_each_entry_of_a_description(right, wrong, told, tmp_path):
    path = tmp_path / "ours.toml"
    assert right in OWN_BOARD
    path.write_text(OWN_BOARD.replace(right, wrong, 1))
    with pytest.raises(FileError, match=rf"ours\.toml.*({told})") as found:
        find_board(str(path))
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"\xff", "it is no text in UTF-8, from byte 0"), (b"x = " + b"[" * 9000, "nested too deep")],
)
def test_a_file_that_is_no_description(content, told, tmp_path):
    path = tmp_path / "ours.toml"
    path.write_bytes(content)
    with pytest.raises(FileError, match=rf"ours\.toml does not describe a board: .*{told}"):
        find_board(str(path))


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
    path.write_text(OWN_BOARD.replace('"cmsdk", base', '"pl011", interrupt = 1, base'))
    with pytest.raises(SlipwayError, match=r"'pl011' does not sleep .* leave uart.interrupt out"):
        find_board(str(path))
    with pytest.raises(SlipwayError, match="there is no file"):
        find_board(str(tmp_path / "none.toml"))
    with pytest.raises(SlipwayError, match="Did you mean 'rp2040'"):
        find_board("rp2400")
    for name in DEVICES.glob("*.toml"):
        assert find_board(str(name)).name == name.stem
