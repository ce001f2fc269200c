"""The bare-metal template: firmware from generated C, a board's data file, and gcc.

A generated project stands on its own: ``make`` builds it, and the copied data says for which board.
An emulated board is "flashed" and run by starting its emulator; a real one is programmed by the
tool that its description names (`board_tools`), or by the command in the option ``flash_command``.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slipway.errors import ArgumentValueError
from slipway.micro.board import DEVICES, Board, RegisterStep, Uart, board_names, find_board
from slipway.micro.board_tools import flash_board, need_tools, only_port
from slipway.micro.emulator import EmulatorProcess, SerialProcess
from slipway.micro.exports.readme import project_readme
from slipway.micro.image_size import stack_bound
from slipway.micro.linker_script import copied_memories, linker_script
from slipway.micro.model_config import model_config, pool_attributes
from slipway.micro.model_library import unpack_into_project
from slipway.micro.program import write_program
from slipway.micro.project_api import server
from slipway.micro.serial_port import SerialPort
from slipway.micro.toolchain import make_project, run_tool
from slipway.toolchain.unpack import unpack_tar

PROJECT_TYPES = ("bench", "host_driven", "example_project")
MODEL_ARCHIVE = "model.tar"
IMAGE = "build/firmware.elf"
TEMPLATE_SOURCES = DEVICES.parent / "baremetal" / "src"
_STACK_BYTES = 16384  # where no bound is known: calls through pointers, as sessions make them
# An interrupt's frame and handler, and functions of the C library, whose frames no report holds.
_STACK_BESIDE = 512
_GENERATE = ["generate_project"]


class BaremetalHandler(server.ProjectAPIHandler):
    """Serves the template directory and the directories generated from it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.line: SerialProcess | SerialPort | None = None

    @property
    def is_template(self) -> bool:
        """Whether this is the template itself: a project holds its model's archive."""
        return not (self.folder / MODEL_ARCHIVE).exists()

    platform = "baremetal"

    def server_info_query(self, tvm_version: str) -> server.ServerInfo:
        """Describe the template or project."""
        return server.ServerInfo(
            platform_name=self.platform,
            is_template=self.is_template,
            model_library_format_path=None if self.is_template else self.folder / MODEL_ARCHIVE,
            project_options=self.options(),
        )

    def options(self) -> list[server.ProjectOption]:
        """Return what the template lets its user choose."""
        option = server.ProjectOption
        return [
            *server.default_project_options(
                project_type={"choices": list(PROJECT_TYPES)},
                board={"help": f"A board ({', '.join(board_names())}) or a .toml of your own."},
            ),
            option(
                "stack_bytes",
                optional=_GENERATE,
                type="int",
                help="Bytes of stack to reserve; without it what the build proves to be enough.",
            ),
            option(
                "heap_bytes",
                optional=_GENERATE,
                type="int",
                default=65536,
                help="Bytes for tensors and messages of a host_driven project.",
            ),
            option(
                "flash_command",
                optional=["flash"],
                type="str",
                help="Command that programs the board, instead of its own; {elf} is the image.",
            ),
            option(
                "drive",
                optional=["flash"],
                type="str",
                help="Folder of a board's UF2 drive; without it the one that is mounted.",
            ),
            option(
                "port",
                optional=["open_transport"],
                type="str",
                help="Serial port of the board; without it the only one there is.",
            ),
            option(
                "baudrate",
                optional=["open_transport"],
                type="int",
                default=115200,
                help="Its speed.",
            ),
            option("optimise", optional=_GENERATE, type="str", default="-O2", help="gcc's -O."),
        ]

    def generate_project(
        self,
        model_library_format_path: Path,
        standalone_crt_dir: Path,
        project_dir: Path,
        options: dict[str, Any],
    ) -> None:
        """Lay a project out: model, runtime, board support, linker script, Makefile."""
        board = find_board(options["board"])
        kind = options["project_type"]
        if kind not in PROJECT_TYPES:
            raise ArgumentValueError(
                f"project_type {kind!r}: the choices are {', '.join(PROJECT_TYPES)}"
            )
        project_dir.mkdir(parents=True, exist_ok=True)
        metadata = unpack_into_project(model_library_format_path, project_dir)
        shutil.copyfile(model_library_format_path, project_dir / MODEL_ARCHIVE)
        shutil.copyfile(
            self.folder / "microtvm_api_server.py", project_dir / "microtvm_api_server.py"
        )
        copy_board(self.folder / "src", project_dir / "board", board, kind)
        source = Path(options["board"])
        description = source if source.suffix == ".toml" else DEVICES / f"{board.name}.toml"
        shutil.copyfile(description, project_dir / f"{board.name}.toml")
        if kind == "host_driven":
            copy_runtime(Path(standalone_crt_dir), project_dir / "crt")
        (project_dir / "board" / "board_config.h").write_text(board_config(board))
        (project_dir / "firmware.ld").write_text(
            linker_script(board, int(options.get("stack_bytes") or _STACK_BYTES))
        )
        (project_dir / "board" / "model_config.h").write_text(
            model_config(metadata, options, board)
        )
        if kind == "host_driven":
            write_program(project_dir, metadata)
        (project_dir / "README.md").write_text(
            project_readme(self.platform, metadata, {"board": board.name}, board.title + ".")
        )
        attributes = pool_attributes(metadata, board)
        (project_dir / "Makefile").write_text(
            makefile(board, project_dir, kind, options, attributes)
        )
        (project_dir / "project.json").write_text(
            json.dumps({"board": f"{board.name}.toml", "options": options}, indent=2)
        )
        extra = options.get("extra_files_tar")
        if extra:
            unpack_tar(extra, project_dir)

    def _board(self) -> Board:
        project = json.loads((self.folder / "project.json").read_text())
        return find_board(str(self.folder / project["board"]))

    def _chosen(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options of generation, overridden by those of this call."""
        return {**self._stored(), **{k: v for k, v in options.items() if v is not None}}

    def _stored(self) -> dict[str, Any]:
        """Return the options that the project was made with."""
        stored: dict[str, Any] = json.loads((self.folder / "project.json").read_text())["options"]
        return stored

    def build(self, options: dict[str, Any]) -> None:
        """Run make; raises ToolchainError with the compiler's words."""
        board = self._board()
        need_tools(board)
        if self._stored().get("stack_bytes"):
            self._make()
            return
        self._make("STACK_BYTES=256")  # to learn the bound, also where the RAM is small
        # Where the reset handler is assembler, it goes on in C with an empty stack.
        entry = "Reset_Handler" if not board.boot else "start"
        bound = stack_bound(self.folder / "build", entry if board.is_arm else "board_start")
        reserved = _STACK_BYTES if bound is None else -(-(bound + _STACK_BESIDE) // 64) * 64
        (self.folder / "stack.mk").write_text(f"STACK_BYTES = {reserved}\n")
        self._make()

    def _make(self, *variables: str) -> None:
        make_project(self.folder, min(4, os.cpu_count() or 1), *variables)

    def flash(self, options: dict[str, Any]) -> None:
        """Program the board; an emulator reads the image when the transport opens."""
        elf = self.folder / IMAGE
        if not elf.is_file():
            raise FileNotFoundError(f"{elf} is missing; build the project first")
        board, chosen = self._board(), self._chosen(options)
        command = chosen.get("flash_command")
        if command:
            run_tool([word.format(elf=elf) for word in shlex.split(command)], "programming", 300)
        elif board.emulator is None or chosen.get("port"):
            flash_board(board, elf, chosen.get("drive"), chosen.get("port"))

    def open_transport(self, options: dict[str, Any]) -> server.TransportTimeouts:
        """Open the board's serial port, or start the emulator with its line on a pipe."""
        board = self._board()
        elf = self.folder / IMAGE
        if not elf.is_file():
            raise FileNotFoundError(f"{elf} is missing; build the project first")
        chosen = self._chosen(options)
        if chosen.get("port") or board.emulator is None:
            path = chosen.get("port") or only_port(board.title)
            port = SerialPort(path, int(chosen.get("baudrate") or 115200))
            port.open()
            self.line = port
        else:
            self.line = EmulatorProcess(board, elf)
        return server.TransportTimeouts(0.0, 20.0, 60.0)

    def close_transport(self) -> None:
        """End the emulator, or close the port."""
        if self.line is not None:
            self.line.close()
            self.line = None

    def read_transport(self, n: int, timeout_sec: float | None) -> bytes:
        """Read what the firmware sent."""
        if self.line is None:
            raise server.TransportClosedError()
        return self.line.read(n, timeout_sec)

    def write_transport(self, data: bytes, timeout_sec: float | None) -> None:
        """Send to the firmware."""
        if self.line is None:
            raise server.TransportClosedError()
        self.line.write(data, timeout_sec)


def _interrupt_of(uart: Uart) -> list[str]:
    """Return what lets a driver sleep; other templates have none of it."""
    if uart.interrupt < 0:
        return []
    return [
        f"#define BOARD_UART_INTERRUPT {uart.interrupt}",
        f"#define BOARD_UART_CONTROLLER {uart.controller:#x}u",
    ]


def board_config(board: Board) -> str:
    """Return board_config.h: which registers and features the board's sources use."""
    has_fpu = any("-mfpu" in flag or "float-abi=hard" in flag for flag in board.cflags)
    steps = (*board.clock, *board.pins)
    lines = [
        f"/* Generated from the description of {board.name}. */",
        "#ifndef BOARD_CONFIG_H_",
        "#define BOARD_CONFIG_H_",
        f'#define BOARD_NAME "{board.name}"',
        f"#define BOARD_CLOCK_HZ {board.clock_hz}u",
        f"#define BOARD_RESET_HZ {board.reset_hz or board.clock_hz}u",
        f"#define BOARD_UART_BASE {board.uart.base:#x}u",
        f"#define BOARD_UART_HZ {board.uart.clock_hz or board.clock_hz}u",
        f"#define BOARD_UART_RESET_HZ {board.uart.reset_hz or board.reset_hz or board.clock_hz}u",
        f"#define BOARD_UART_SCALE {board.uart.scale}u",
        f"#define BOARD_UART_TX_PIN {board.uart.tx_pin}u",
        f"#define BOARD_UART_RX_PIN {board.uart.rx_pin}u",
        "#ifndef BOARD_BAUD",
        "#define BOARD_BAUD 115200u",
        "#endif",
        *_interrupt_of(board.uart),
        f"#define BOARD_HAS_ICACHE {int(board.instruction_cache)}",
        f"#define BOARD_HAS_DCACHE {int(board.data_cache)}",
        f"#define BOARD_HAS_BOOT_ROM {int(bool(board.boot))}",
        f"#define BOARD_HAS_SETUP {int(bool(board.clock or board.pins))}",
        f"#define BOARD_HAS_CALLS {int(any(s.kind == 'call' for s in board.clock))}",
        f"#define BOARD_HAS_COPIES {int(any(s.kind in ('copy', 'trim') for s in steps))}",
        f"#define BOARD_RUNS_FROM_RAM {int(not board.read_shift)}",
        f"#define BOARD_TIMER_BASE {board.timer_base:#x}u",
        _step_table("BOARD_CLOCK_STEPS", board.clock),
        _step_table("BOARD_PIN_STEPS", board.pins),
        "#define BOARD_BOOT_WORDS "
        + (
            _words(".boot2", "board_boot_words", checked_boot_block(board.boot_block))
            + " "
            + _words(".vectors.block", "board_image_block", board.image_block)
            + " ".join(
                _words(f".boot.{i}", f"board_boot_{i}", part.all_words())
                for i, part in enumerate(board.boot)
            )
        ).strip(),
        f"#define BOARD_HAS_FPU {int(has_fpu)}",
        "#define BOARD_COPIED_MEMORIES(X) " + " ".join(f"X({m})" for m in copied_memories(board)),
        f"#define BOARD_EXIT_SEMIHOSTING {int(board.exit == 'semihosting')}",
        f"#define BOARD_EXIT_SIFIVE_TEST {int(board.exit == 'sifive_test')}",
        "#endif",
        "",
    ]
    return "\n".join(lines)


def _step_table(macro: str, steps: Sequence[RegisterStep]) -> str:
    rows = [f"X({s.kind.upper()}, {s.address:#010x}u, {s.mask:#x}u, {s.value:#x}u)" for s in steps]
    return f"#define {macro}(X) " + " \\\n  ".join(rows)


def _words(section: str, name: str, words: Sequence[int]) -> str:
    """Return the definition of words that a boot ROM looks for; empty where it wants none."""
    if not words:
        return ""
    listed = ", ".join(f"{word:#010x}u" for word in words)
    attribute = f'__attribute__((section("{section}"), used))'
    return f"{attribute} static const uint32_t {name}[] = {{{listed}}};"


def checked_boot_block(words: Sequence[int]) -> list[int]:
    """Return RP2040's second boot stage: 252 bytes, and the CRC-32 that its boot ROM computes."""
    if not words:
        return []
    padded = [*words, *[0] * (63 - len(words))]
    crc = 0xFFFFFFFF
    for byte in struct.pack("<63I", *padded):
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc & 0x80000000 else 0)) & 0xFFFFFFFF
    return [*padded, crc]


# The runtime's files behind an RPC session; the linker drops what they do not use.
SESSION_SOURCES = (
    *("aot_module", "device", "device_code", "device_session", "error", "format"),
    *("graph", "graph_check", "graph_sizes"),
    *(
        "graph_module",
        "graph_module_create",
        "graph_module_info",
        "graph_module_params",
        "graph_module_zero_copy",
    ),
    "graph_module_state",
    *("image_module", "module"),
    *("object", "params", "serial_link"),
    *("rpc_auth", "rpc_frame", "rpc_greeting", "rpc_handles", "rpc_session", "rpc_transfer"),
    *("rpc_values", "rpc_verbs", "sha256", "status", "tensor", "timer"),
)

_SESSION_FILES = ("heap.c", "model_aot.c")  # beside main_rpc.c, of projects that a host drives


def copy_board(source: Path, target: Path, board: Board, kind: str) -> None:
    """Copy the board support that a project uses: all headers, and its own sources."""
    target.mkdir()
    names = {path.name for path in source.glob("*.h")} | set(_board_sources(board, kind))
    if kind == "host_driven":
        names.update(_SESSION_FILES)
    for name in sorted(names):
        shutil.copyfile(source / name, target / name)


def _board_sources(board: Board, kind: str) -> list[str]:
    main = {"bench": "main_bench.c", "example_project": "main_example.c"}.get(kind, "main_rpc.c")
    setup = ["setup.c"] if board.is_arm or board.clock or board.pins else []
    timer = [f"timer_{board.timer}.c"] if board.timer else []
    own = [f"startup_{board.startup}.c", *timer, f"uart_{board.uart.kind}.c"]
    return [main, "print.c", *setup, *own]


def copy_runtime(runtime: Path, target: Path) -> None:
    """Copy the part of the device runtime that sessions need, to include and src of a folder."""
    shutil.copytree(runtime / "include", target / "include")
    (target / "src").mkdir()
    for path in sorted((runtime / "src").glob("*.h")):
        shutil.copyfile(path, target / "src" / path.name)
    for name in SESSION_SOURCES:
        shutil.copyfile(runtime / "src" / f"{name}.c", target / "src" / f"{name}.c")


_MAKEFILE = """\
# Generated; `make` leaves build/firmware.elf and its map file.
CC = {compiler}
CPU = {cpu}
CFLAGS = $(CPU) -std=c11 {optimise} -g -ffunction-sections -fdata-sections -fno-common \\
  -ffile-prefix-map="$$PWD"=. -fcallgraph-info=su -Wall -Wextra {extra}\\
  -DSLW_STATIC -DSLW_NO_THREADS -DSLW_RPC_MESSAGE_BYTES=512 \\
  -Iboard -Icrt/include -Icrt/src -Imodel/codegen/host/include
LDFLAGS = $(CPU) -nostartfiles {libs}{mismatch}-T firmware.ld -Wl,-n -Wl,--gc-sections \\
  -Wl,--no-warn-rwx-segments -Wl,-Map=build/firmware.map
-include stack.mk
STACK_BYTES ?= {stack}
SOURCES = {sources}
OBJECTS = $(patsubst %.c,build/%.o,$(SOURCES)){objects}

build/firmware.elf: $(OBJECTS) firmware.ld $(wildcard stack.mk)
\t$(CC) $(LDFLAGS) -Wl,--defsym=__stack_bytes=$(STACK_BYTES) -o $@ $(OBJECTS)

build/%.o: %.c
\t@mkdir -p $(dir $@)
\t$(CC) $(CFLAGS) -MMD -c -o $@ $<

clean:
\trm -rf build

.PHONY: clean
-include $(patsubst %.c,build/%.d,$(SOURCES))
"""


def makefile(
    board: Board, project: Path, kind: str, options: dict[str, Any], definitions: Sequence[str] = ()
) -> str:
    """Return the project's Makefile; `definitions` place the model's constants."""
    sources = [f"board/{name}" for name in _board_sources(board, kind)]
    generated = sorted((project / "model" / "codegen" / "host" / "src").glob("*.c"))
    sources += [str(path.relative_to(project)) for path in generated]
    if kind == "host_driven":
        sources += ["board/heap.c", "board/program.c"]
        if (project / "board" / "model_aot.c").exists():
            sources.append("board/model_aot.c")
        sources += [f"crt/src/{name}.c" for name in SESSION_SOURCES]
    objects = sorted((project / "model" / "codegen" / "host" / "lib").glob("*.o"))
    extra = [f"-D{d}" for d in (options.get("compile_definitions") or "").split()]
    extra += [f"-D{definition}" for definition in definitions]
    if options.get("warning_as_error"):
        extra.append("-Werror")
    return _MAKEFILE.format(
        compiler=board.compiler,
        cpu=" ".join(board.cflags),
        optimise=options.get("optimise") or "-O2",
        stack=int(options.get("stack_bytes") or _STACK_BYTES),
        extra="".join(f"{flag} " for flag in extra),
        # An object of LLVM passes pointers and integers only: the ABI of floats does not matter.
        mismatch="-Wl,--no-warn-mismatch " if objects else "",
        libs="--specs=nano.specs --specs=nosys.specs " if board.is_arm else "",
        sources=" \\\n  ".join(sources),
        objects="".join(f" {path.relative_to(project)}" for path in objects),
    )
