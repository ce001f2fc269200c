"""What a board's firmware needs on this machine: compiler, C library, emulator, a way to flash."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

from slipway.errors import ArgumentValueError, RPCConnectionError, ToolchainError
from slipway.micro.board import Board
from slipway.micro.toolchain import find_tool, run_tool
from slipway.toolchain.elf import ElfFile

FLASH_TIMEOUT_S = 300.0

_LIBRARY_SPECS = {
    "arm-none-eabi-gcc": ("nano.specs", "libnewlib-arm-none-eabi"),
    "riscv64-unknown-elf-gcc": ("picolibc.specs", "picolibc-riscv64-unknown-elf"),
}


def missing_for(board: Board, *, emulate: bool = False) -> str:
    """Return the Debian package that is missing to build (and emulate) for a board, else ""."""
    for tool in (board.compiler, "make"):
        if shutil.which(tool) is None:
            return tool.replace("arm-none-eabi-gcc", "gcc-arm-none-eabi").replace(
                "riscv64-unknown-elf-gcc", "gcc-riscv64-unknown-elf"
            )
    specs, package = _LIBRARY_SPECS.get(board.compiler, ("", ""))
    if specs:
        found = subprocess.run(
            [board.compiler, f"-print-file-name={specs}"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        ).stdout.strip()
        if found == specs:  # gcc repeats the name of what it does not find
            return package
    if emulate and board.emulator is not None and shutil.which(board.emulator.program) is None:
        return "qemu-system-arm" if board.is_arm else "qemu-system-misc"
    return ""


def need_tools(board: Board) -> None:
    """Raise ToolchainError with the install line when firmware cannot be built for a board."""
    for tool in (board.compiler, "make"):
        find_tool(tool)
    package = missing_for(board)
    if package:
        raise ToolchainError(
            f"building for {board.name} needs {package}. On Debian and Ubuntu: "
            f"sudo apt-get install {package}"
        )


def flash_board(board: Board, elf: Path, drive: str | None = None, port: str | None = None) -> None:
    """Program a board with an image by the tool that its description names.

    ``pyocd CHIP`` runs pyOCD, which knows most debuggers; ``uf2 FAMILY`` copies the image to the
    drive that the board's boot loader shows, or without a drive runs picotool; ``teensy MODEL``
    runs teensy_loader_cli on the image as Intel HEX; ``esptool CHIP OFFSET`` writes the image's
    bytes by esptool.
    Raises ToolchainError or RPCConnectionError.
    """
    tool, _, what = board.flash_tool.partition(" ")
    if tool == "pyocd":
        # Without a probe pyOCD waits for one, for ever.
        _program(board, [find_tool("pyocd"), "flash", "--no-wait", "--target", what, str(elf)])
    elif tool == "uf2":
        family = int(what, 0)
        image = uf2_image(elf.read_bytes(), family)
        if (folder := _uf2_drive(board, family, drive)) is not None:
            _copied_to(folder / "firmware.uf2", image)
            return
        image_file = elf.with_suffix(".uf2")
        image_file.write_bytes(image)
        _program(board, [find_tool("picotool"), "load", "-v", "-x", str(image_file)])
    elif tool == "teensy":
        image_file = _converted(board, elf, "ihex", ".hex")
        loader = find_tool("teensy_loader_cli")
        print(f"{board.title}: press the button on the board", file=sys.stderr, flush=True)
        _program(board, [loader, f"--mcu={what}", "-w", "-v", str(image_file)])
    elif tool == "esptool":
        chip, offset = what.split()
        at = ["--port", port] if port else []
        image_file = _converted(board, elf, "binary", ".bin")
        older = "esptool.py" if shutil.which("esptool") is None else "esptool"
        name = older if shutil.which(older) else "esptool"
        command = [find_tool(name), "--chip", chip, *at, "write_flash", offset]
        _program(board, [*command, str(image_file)])
    else:
        raise ArgumentValueError(
            f"{board.title}: say how to program it with the option flash_command, for "
            "example 'openocd -f board/st_nucleo_l4.cfg -c \"program {elf} verify reset exit\"'"
        )


def _program(board: Board, command: list[str]) -> None:
    try:
        run_tool(command, f"programming {board.name}", timeout_s=FLASH_TIMEOUT_S)
    except ToolchainError as error:
        if "pyocd" in command[0] and "not recognized" in str(error):
            pack = f"pyocd pack install {board.flash_tool.partition(' ')[2]}"
            raise ToolchainError(
                f"{error}\nWhat pyOCD lacks of the chip is brought by: {pack}"
            ) from error
        raise


def _copied_to(path: Path, image: bytes) -> None:
    """Write an image to a boot loader's drive; OSError if it is not all there."""
    with path.open("wb") as file:
        file.write(image)
        file.flush()
        # Before this the bytes may be in the page cache only, and a cable that is pulled takes
        # them along.  The board restarts with the last block, so that its drive may be gone.
        with contextlib.suppress(OSError):
            os.fsync(file.fileno())


def _converted(board: Board, elf: Path, form: str, suffix: str) -> Path:
    """Return the image in another form, beside it."""
    path = elf.with_suffix(suffix)
    tool = find_tool(board.compiler.removesuffix("gcc") + "objcopy")
    run_tool([tool, "-O", form, str(elf), str(path)], f"writing {path.name}")
    return path


_PT_LOAD = 1
_UF2_BYTES = 256  # of one block's content


def uf2_image(elf: bytes, family: int) -> bytes:
    """Return the loaded bytes of an image as UF2 blocks for a family of chips."""
    pages: dict[int, bytearray] = {}
    image = ElfFile(elf, "the firmware")
    for segment in image.segments:
        if segment.type != _PT_LOAD:
            continue
        loaded = image.data[segment.offset : segment.offset + segment.file_bytes]
        for at, byte in enumerate(loaded, segment.load_address):
            page = pages.setdefault(at - at % _UF2_BYTES, bytearray(_UF2_BYTES))
            page[at % _UF2_BYTES] = byte
    blocks = []
    for number, address in enumerate(sorted(pages)):
        head = (0x0A324655, 0x9E5D5157, 0x2000, address, _UF2_BYTES, number, len(pages), family)
        content = bytes(pages[address]).ljust(476, b"\0")
        blocks.append(struct.pack("<8I", *head) + content + struct.pack("<I", 0x0AB16F30))
    return b"".join(blocks)


# What boot ROMs' drives say of themselves in INFO_UF2.TXT.  They take an image of another family
# without a word, and do nothing with it.  A maker of boards may have put a name of his own there.
_UF2_BOARDS = {0xE48BFF56: "RPI-RP2", 0xE48BFF59: "RP2350"}
_BOARD_ID = re.compile(r"^Board-ID:\s*(\S+)", re.MULTILINE)


def _uf2_drive(board: Board, family: int, given: str | None) -> Path | None:
    """Return the drive of a boot loader: the one given, or the only one that is mounted.

    None if none is mounted and picotool, which needs no drive, is installed.
    """
    drives = [Path(given)] if given is not None else _mounted_drives()
    others = {name for other, name in _UF2_BOARDS.items() if other != family}
    said = {drive: _board_of(drive) for drive in drives}
    fitting = [drive for drive, name in said.items() if name is not None and name not in others]
    if len(fitting) == 1:
        return fitting[0]
    if not drives and shutil.which("picotool"):
        return None
    found = [f"{drive} {_said_of(name)}" for drive, name in said.items()]
    raise RPCConnectionError(
        f"{board.title}: its boot loader shows a drive with a file INFO_UF2.TXT "
        f"({'; '.join(found) or 'no drive is mounted'}). Hold BOOTSEL while it is plugged in, "
        "mount the drive, name its folder with the option drive, or install picotool, which needs "
        "no drive"
    )


def _mounted_drives() -> list[Path]:
    roots = [Path("/media"), Path("/run/media"), Path("/Volumes")]
    return [p.parent for r in roots for d in ("*", "*/*") for p in r.glob(f"{d}/INFO_UF2.TXT")]


def _board_of(drive: Path) -> str | None:
    """Return what a drive's file says of its board: nothing as "", no such file as None."""
    try:
        text = (drive / "INFO_UF2.TXT").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = _BOARD_ID.search(text)
    return found[1] if found else ""


def _said_of(name: str | None) -> str:
    if name is None:
        return "has none"
    return f"is that of {name}" if name else "does not say of what"


def serial_ports() -> list[str]:
    """Return the serial ports that boards are on: pyserial's list, where that is installed."""
    try:
        from serial.tools import list_ports
    except ImportError:
        return sorted(str(p) for n in ("ttyACM*", "ttyUSB*") for p in Path("/dev").glob(n))
    return sorted(p.device for p in list_ports.comports() if p.vid is not None)


def only_port(title: str) -> str:
    """Return the serial port of the only board that is plugged in."""
    ports = serial_ports()
    if len(ports) != 1:
        raise ArgumentValueError(
            f"{title}: no emulator runs this board; name the serial port that the board is on with "
            f"the option port, --port /dev/ttyACM0 for example (there are "
            f"{', '.join(ports) or 'none'})"
        )
    return ports[0]
