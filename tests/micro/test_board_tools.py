"""Programming boards with the tools that their descriptions name, and what a silent board says."""

import os
import pty
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from firmware_tools import needs
from typer.testing import CliRunner

from slipway import micro
from slipway.cli.app import app
from slipway.cli.exit_codes import MISSING, UNREACHABLE, code_of
from slipway.errors import ArgumentValueError, RPCConnectionError, ToolchainError
from slipway.libinfo import find_crt_include_path
from slipway.micro import board_tools
from slipway.micro.baremetal import BaremetalHandler
from slipway.micro.board import DEVICES, find_board
from slipway.micro.board_tools import flash_board, need_tools, only_port, uf2_image
from slipway.micro.model_library import ModelLibrary
from slipway.micro.model_library_format import export_model_library_format
from slipway.micro.project_api.server import TransportClosedError


def image_of(*segments):
    """A 32-bit ARM program of segments: where each is loaded, where it runs, and its bytes."""
    offset = 52 + 32 * len(segments)
    head = struct.pack(
        "<16sHHIIIIIHHHHHH",
        *(b"\x7fELF\1\1\1", 2, 40, 1, 0, 52, 0, 0, 52, 32, len(segments), 0, 0, 0),
    )
    table, data = b"", b""
    for load, address, content in segments:
        at = offset + len(data)
        table += struct.pack("<8I", 1, at, address, load, len(content), len(content), 5, 4)
        data += content
    return head + table + data


SEGMENTS = [
    (0x10000000, 0x10000000, bytes(range(250)) * 3),
    (0x100002F0, 0x20000000, b"initial values of data"),
]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tools")
    library = ModelLibrary("tiny", {"executors": [], "memory": {}, "style": "full-model"})
    archive = export_model_library_format(library, folder / "m.tar")
    options = {"board": "pico2", "project_type": "example_project"}
    template = Path(micro.get_microtvm_template_projects("baremetal"))
    crt = Path(find_crt_include_path()[0])
    BaremetalHandler(template).generate_project(archive, crt, folder / "p", options)
    (folder / "p/build").mkdir()
    (folder / "p/build/firmware.elf").write_bytes(image_of(*SEGMENTS))
    return folder / "p"


def fake_tool(folder, name, status=0):
    path = folder / name
    path.write_text(
        f'#!/bin/sh\necho "$0 $*" >> {folder}/called\necho no probe >&2\nexit {status}\n'
    )
    path.chmod(0o755)


def run(*words):
    done = CliRunner().invoke(app, ["micro", *map(str, words)])
    return (code_of(done.exception) if done.exception else 0), done


def test_image_as_uf2_blocks():
    image = uf2_image(image_of(*SEGMENTS), 0xE48BFF59)
    assert len(image) == 4 * 512
    memory = {}
    for number in range(4):
        block = image[512 * number : 512 * number + 512]
        head = struct.unpack("<8I", block[:32])
        assert head[:3] == (0x0A324655, 0x9E5D5157, 0x2000)
        assert head[4:] == (256, number, 4, 0xE48BFF59)
        assert struct.unpack("<I", block[-4:]) == (0x0AB16F30,)
        memory |= {head[3] + i: byte for i, byte in enumerate(block[32 : 32 + 256])}
    for load, _, content in SEGMENTS:
        assert bytes(memory[load + i] for i in range(len(content))) == content


def test_flashing_copies_to_the_drive_or_calls_the_tool(project, tmp_path, monkeypatch):
    (tmp_path / "INFO_UF2.TXT").write_text("UF2 Bootloader\n")
    BaremetalHandler(project).flash({"drive": str(tmp_path)})
    assert (tmp_path / "firmware.uf2").stat().st_size % 512 == 0
    handler = BaremetalHandler(project)
    with pytest.raises(RPCConnectionError, match=r"INFO_UF2\.TXT"):
        handler.flash({"drive": str(project)})
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    fake_tool(tmp_path, "openocd")
    handler.flash({"flash_command": "openocd -c 'program {elf}; exit'"})
    called = (tmp_path / "called").read_text()
    assert called == f"{tmp_path}/openocd -c program {project}/build/firmware.elf; exit\n"
    fake_tool(tmp_path, "openocd", status=3)
    code, done = run("flash", project, "--option", "flash_command=openocd")
    assert code == MISSING
    assert "no probe" in str(done.exception)
    assert "Traceback" not in str(done.exception)


def test_pyocd_is_told_the_chip(tmp_path, monkeypatch):
    board = find_board("nucleo-f446re")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="pip install pyocd"):
        flash_board(board, tmp_path / "x.elf")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    fake_tool(tmp_path, "pyocd")
    flash_board(board, tmp_path / "x.elf")
    called = (tmp_path / "called").read_text()
    # Without --no-wait pyOCD waits for a probe for ever.
    assert called.endswith(f"pyocd flash --no-wait --target stm32f446retx {tmp_path}/x.elf\n")
    with pytest.raises(ArgumentValueError, match="flash_command"):
        flash_board(find_board("mps2-an386"), tmp_path / "x.elf")


def test_what_pyocd_lacks_of_a_chip_is_told(tmp_path, monkeypatch):
    """Its own words name a page; what is missing is one command."""
    tool = tmp_path / "pyocd"
    tool.write_text("#!/bin/sh\necho Target type stm32u575zitx not recognized. >&2\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(ToolchainError, match=r"not recognized(.|\n)*pack install stm32u575zitx"):
        flash_board(find_board("nucleo-u575zi"), tmp_path / "x.elf")


def drive_of(folder, board_id):
    folder.mkdir()
    (folder / "INFO_UF2.TXT").write_text(
        f"UF2 Bootloader v3.0\r\nModel: X\r\nBoard-ID: {board_id}\r\n"
    )
    return folder


def test_the_drive_of_the_other_pico_is_not_written_to(project, tmp_path, monkeypatch):
    """A boot ROM takes the image of another family without a word and does nothing with it."""
    pico, pico2 = drive_of(tmp_path / "a", "RPI-RP2"), drive_of(tmp_path / "b", "RP2350")
    named = drive_of(tmp_path / "c", "MAKERS-OWN")
    handler = BaremetalHandler(project)  # of a Pico 2
    with pytest.raises(RPCConnectionError, match=r"Pico 2.*/a is that of RPI-RP2.*BOOTSEL"):
        handler.flash({"drive": str(pico)})
    assert not (pico / "firmware.uf2").exists()
    monkeypatch.setattr(board_tools, "_mounted_drives", lambda: [pico, pico2])
    handler.flash({})
    assert (pico2 / "firmware.uf2").exists()
    assert not (pico / "firmware.uf2").exists()
    handler.flash({"drive": str(named)})
    assert (named / "firmware.uf2").exists()
    monkeypatch.setattr(board_tools, "_mounted_drives", lambda: [named, pico2])
    with pytest.raises(RPCConnectionError, match=r"MAKERS-OWN.*RP2350"):
        handler.flash({})


def test_a_pico_without_a_drive_is_programmed_by_picotool(project, tmp_path, monkeypatch):
    monkeypatch.setattr(board_tools, "_mounted_drives", list)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    handler = BaremetalHandler(project)
    with pytest.raises(RPCConnectionError, match=r"no drive is mounted.*picotool"):
        handler.flash({})
    fake_tool(tmp_path, "picotool")
    handler.flash({})
    image = project / "build/firmware.uf2"
    assert (tmp_path / "called").read_text().endswith(f"picotool load -v -x {image}\n")
    assert image.read_bytes() == uf2_image(
        (project / "build/firmware.elf").read_bytes(), 0xE48BFF59
    )


@pytest.mark.parametrize(
    ("name", "tool", "words", "form"),
    [
        ("teensy41", "teensy_loader_cli", "--mcu=TEENSY41 -w -v {}.hex", "ihex"),
        ("esp32c3", "esptool", "--chip esp32c3 --port /dev/x write_flash 0x0 {}.bin", "binary"),
    ],
)
def test_other_loaders_get_the_image_in_their_form(name, tool, words, form, tmp_path, monkeypatch):
    board, stem = find_board(name), str(tmp_path / "firmware")
    elf = tmp_path / "firmware.elf"
    elf.write_bytes(image_of(*SEGMENTS))
    objcopy = board.compiler.replace("gcc", "objcopy")
    monkeypatch.setenv("PATH", str(tmp_path))
    fake_tool(tmp_path, objcopy)
    with pytest.raises(ToolchainError, match=rf"{tool} is not installed.*install "):
        flash_board(board, elf)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    fake_tool(tmp_path, tool)
    flash_board(board, elf, port="/dev/x")
    converted, called = (tmp_path / "called").read_text().splitlines()[-2:]
    assert converted.endswith(f"{objcopy} -O {form} {elf} {words.format(stem).split()[-1]}")
    assert called.endswith(f"{tool} {words.format(stem)}")


def test_a_board_that_is_silent_is_an_error(project):
    master, slave = pty.openpty()
    try:
        code, done = run("run", project, "--port", os.ttyname(slave), "--timeout", "0.3")
        assert code == UNREACHABLE
        assert "sent nothing within 0.3 s" in str(done.exception)
    finally:
        os.close(master)
        os.close(slave)


def test_a_port_that_goes_away_is_an_error(project, monkeypatch):
    """An emulator's end is the end of a run; a board has none, and this ended with 0."""
    rest = [b"hello\n"]

    class Gone:
        def __enter__(self):
            return self

        def __exit__(self, *what):
            pass

        transport = close = __enter__

        def read(self, count, timeout):
            if not rest:
                raise TransportClosedError
            return rest.pop()

    monkeypatch.setattr(micro.GeneratedProject, "from_directory", lambda *given: Gone())
    code, done = run("run", project, "--port", "/dev/ttyACM9")
    assert (code, done.stdout) == (UNREACHABLE, "hello\n")
    assert "/dev/ttyACM9 is gone" in str(done.exception)


def test_the_only_port_is_found(monkeypatch):
    monkeypatch.setattr(board_tools, "serial_ports", lambda: ["/dev/ttyACM3"])
    assert only_port("a board") == "/dev/ttyACM3"
    monkeypatch.setattr(board_tools, "serial_ports", lambda: ["/dev/ttyACM3", "/dev/ttyACM4"])
    with pytest.raises(ArgumentValueError, match=r"option port.*ttyACM3, /dev/ttyACM4"):
        only_port("a board")


def test_an_emulator_that_does_not_start_is_told_in_its_words(tmp_path):
    needs("mps2-an386")
    description = (DEVICES / "mps2-an386.toml").read_text()
    path = tmp_path / "ours.toml"
    path.write_text(description.replace('"mps2-an386"]', '"mps2-an999"]'))
    model = Path(board_tools.__file__).parents[1] / "models/digits/digits.onnx"
    assert run("create", model, tmp_path / "p", "--board", path)[0] == 0
    assert run("build", tmp_path / "p")[0] == 0
    code, done = run("run", tmp_path / "p")
    assert code == MISSING
    assert "emulator ended before the board sent anything: qemu-system-arm" in str(done.exception)


@pytest.mark.parametrize(("tool", "told"), [("arm-none-gcc", "Did you mean 'arm-none-eabi-gcc'"),
                                            ("xt-clang", "put its folder on PATH")])  # fmt: skip
def test_a_tool_that_nobody_packs_is_not_said_to_be_a_package(tool, told):
    with pytest.raises(ToolchainError, match=f"{tool} is not installed. .*{told}") as found:
        need_tools(replace(find_board("mps2-an386"), compiler=tool))
    assert "apt-get" not in str(found.value)
