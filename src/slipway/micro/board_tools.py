"""What a board's firmware needs on this machine: compiler, C library, emulator, a way to flash."""

from __future__ import annotations

import shutil
import struct
import subprocess
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
    drive that the board's boot loader shows; ``teensy MODEL`` runs teensy_loader_cli on the image
    as Intel HEX; ``esptool CHIP OFFSET`` writes the image's bytes by esptool.
    Raises ToolchainError or RPCConnectionError.
    """
    tool, _, what = board.flash_tool.partition(" ")
    if tool == "pyocd":
        command = [find_tool("pyocd"), "flash", "--target", what, str(elf)]
        run_tool(command, f"programming {board.name}", timeout_s=FLASH_TIMEOUT_S)
    elif tool == "uf2":
        image = uf2_image(elf.read_bytes(), int(what, 0))
        (_uf2_drive(board, drive) / "firmware.uf2").write_bytes(image)
    elif tool == "teensy":
        image_file = _converted(board, elf, "ihex", ".hex")
        command = [find_tool("teensy_loader_cli"), f"--mcu={what}", "-w", "-v", str(image_file)]
        run_tool(command, f"programming {board.name}", timeout_s=FLASH_TIMEOUT_S)
    elif tool == "esptool":
        chip, offset = what.split()
        at = ["--port", port] if port else []
        image_file = _converted(board, elf, "binary", ".bin")
        older = "esptool.py" if shutil.which("esptool") is None else "esptool"
        name = older if shutil.which(older) else "esptool"
        command = [find_tool(name), "--chip", chip, *at, "write_flash", offset]
        run_tool(
            [*command, str(image_file)], f"programming {board.name}", timeout_s=FLASH_TIMEOUT_S
        )
    else:
        raise ArgumentValueError(
            f"{board.title}: say how to program it with the option flash_command, for "
            "example 'openocd -f board/st_nucleo_l4.cfg -c \"program {elf} verify reset exit\"'"
        )


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


def _uf2_drive(board: Board, given: str | None) -> Path:
    """Return the drive of a boot loader: the one given, or the only one that is mounted."""
    if given is not None:
        drives = [Path(given)]
    else:
        roots = [Path("/media"), Path("/run/media"), Path("/Volumes")]
        drives = [
            p.parent for r in roots for d in ("*", "*/*") for p in r.glob(f"{d}/INFO_UF2.TXT")
        ]
    if len(drives) == 1 and (drives[0] / "INFO_UF2.TXT").is_file():
        return drives[0]
    found = f"drives: {', '.join(map(str, drives))}" if drives else "no drive is mounted"
    raise RPCConnectionError(
        f"{board.title}: its boot loader shows a drive with a file INFO_UF2.TXT ({found}). Hold "
        "BOOTSEL while it is plugged in, mount the drive, or name its folder with the option drive"
    )


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
