"""Boards: one data file each, with memories, compiler flags, serial line, clock and emulator."""

from __future__ import annotations

import functools
import itertools
import json
import tomllib
from collections.abc import Callable, Collection, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any

from slipway.errors import ArgumentValueError, FileError, TargetError, did_you_mean, reason_of

DEVICES = Path(__file__).parent.parent / "boards" / "devices"

_SOURCES = DEVICES.parent / "baremetal" / "src"


@dataclass(frozen=True)
class Memory:
    """A memory of a board; `size` and `origin` in bytes.  FLASH holds code, RAM data and stack."""

    name: str
    origin: int
    size: int


@dataclass(frozen=True)
class Uart:
    """A serial line: which driver, and where its registers are; kind "none" has no driver."""

    kind: str = "none"
    base: int = 0
    clock_hz: int = 0  # what its divider divides, at the rated clock and after reset; 0: the core's
    reset_hz: int = 0
    scale: int = 1  # 256 for an LPUART
    tx_pin: int = 0  # where a pin is a number in the driver's register
    rx_pin: int = 0
    interrupt: int = -1  # that a byte raises, where the driver can sleep until then
    controller: int = 0  # of interrupts, where the core has none: a RISC-V core's PLIC


FLASH_TOOLS = {"pyocd": "CHIP", "uf2": "FAMILY", "teensy": "MODEL", "esptool": "CHIP OFFSET"}
EXITS = ("none", "semihosting", "sifive_test")
# Each with so many numbers behind the address.
STEP_KINDS = {"write": 1, "set": 1, "clear": 1, "field": 2, "wait": 2, "copy": 1, "trim": 1}
_CALL_NUMBERS = range(1, 7)  # of a function in ROM, each of 8 bits
_MAX_TRIMS = 256


@dataclass(frozen=True)
class RegisterStep:
    """One register of the start: "write a v", "set a m", "clear a m", "field a m v", "wait a m v".

    All are 32-bit words; "field" replaces the bits of the mask, "wait" waits until they are so.
    "copy a b" writes the word at b to a.  "trim a n" reads up to n pairs of words at a, which the
    chip's maker left there, an address and what to write to it, until an address is all ones.
    "call a n ..." calls a function of the chip's ROM on up to six bytes, the first four of
    which are the mask's, from its low end.
    """

    kind: str
    address: int
    mask: int
    value: int


@dataclass(frozen=True)
class BootPart:
    """Bytes that a boot ROM reads at a fixed address: the words that are not 0, by their offset."""

    at: int
    size: int
    words: tuple[tuple[int, int], ...]

    def all_words(self) -> list[int]:
        """Return every word, in order."""
        given = dict(self.words)
        return [given.get(offset, 0) for offset in range(0, self.size, 4)]


@dataclass(frozen=True)
class Emulator:
    """How to run an image without the board: a program and its arguments for this machine."""

    program: str
    args: tuple[str, ...]


@dataclass(frozen=True)
class Board:
    """A board as its data file describes it."""

    name: str
    title: str
    core: str
    startup: str
    compiler: str
    cflags: tuple[str, ...]
    target: str
    clock_hz: int
    memories: tuple[Memory, ...]
    uart: Uart = Uart()
    exit: str = "none"
    emulator: Emulator | None = None
    aliases: tuple[str, ...] = ()
    reset_hz: int = 0  # the clock that a board stays at when its own does not start; 0: the same
    instruction_cache: bool = False
    clock: tuple[RegisterStep, ...] = ()
    pins: tuple[RegisterStep, ...] = ()
    boot_block: tuple[int, ...] = ()  # RP2040's second boot stage, in the memory named BOOT
    image_block: tuple[int, ...] = ()  # words that the boot ROM looks for behind the vectors
    boot: tuple[BootPart, ...] = ()  # what other boot ROMs read, in the memory named BOOT
    flash_tool: str = ""  # what programs it: "pyocd CHIP", "uf2 FAMILY", ..., see `board_tools`
    data_cache: bool = False
    timer: str = ""  # the driver of its clock where the core has none, and its registers
    timer_base: int = 0
    read_at: int = 0  # where the bytes of FLASH are read as data; 0: where code runs from them

    def memory(self, name: str) -> Memory:
        """Return one memory by name; raises ValueError with the names there are."""
        for memory in self.memories:
            if memory.name == name:
                return memory
        names = [m.name for m in self.memories]
        raise ArgumentValueError(
            f"board {self.name} has no memory {name!r}; it has {', '.join(names)}."
            + did_you_mean(name, names)
        )

    @property
    def flash_bytes(self) -> int:
        """Bytes for code and constants."""
        return self.memory("FLASH").size

    @property
    def ram_bytes(self) -> int:
        """Bytes of the main RAM."""
        return self.memory("RAM").size

    @property
    def read_shift(self) -> int:
        """What to add to an address of FLASH to read there."""
        return self.read_at - self.memory("FLASH").origin if self.read_at else 0

    @property
    def is_arm(self) -> bool:
        """Whether the core is a Cortex-M."""
        return self.startup == "cortex_m"


def _read(path: Path) -> Board:
    if not path.is_file():
        raise FileError(f"there is no file {path}; it would describe a board")
    board = _parse(path)
    for name in ("FLASH", "RAM"):
        if all(m.name != name for m in board.memories):
            raise FileError(f"{path}: a board needs a memory {name}; see the files in {DEVICES}")
    parts = [("startup", board.startup), ("uart", board.uart.kind)]
    for prefix, value in [*parts, *([("timer", board.timer)] if board.timer else [])]:
        known = sorted(p.stem.removeprefix(f"{prefix}_") for p in _SOURCES.glob(f"{prefix}_*.c"))
        _need_known(path, prefix, value, known)
    _need_known(path, "exit", board.exit, EXITS)
    tool, *words = board.flash_tool.split() or [""]
    if tool:
        _need_known(path, "flash_tool", tool, FLASH_TOOLS)
        if len(words) != len(FLASH_TOOLS[tool].split()):
            form = f"{tool} {FLASH_TOOLS[tool]}"
            raise FileError(f"{path}: flash_tool is {board.flash_tool!r}, where {form!r} is wanted")
    if board.uart.interrupt >= 0 and not _can_sleep(board.uart.kind):
        raise FileError(
            f"{path}: the driver {board.uart.kind!r} does not sleep until an interrupt; leave "
            "uart.interrupt out, and it asks for each byte"
        )
    if not board.clock_hz:
        raise FileError(f"{path}: clock_hz is 0; it is the core's rated clock")
    _check_memories(path, board)
    return board


def _need_known(path: Path, what: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        told = f"{path}: there is no {what} {value!r}; there are {', '.join(known)}."
        raise FileError(told + did_you_mean(value, known))


def _check_memories(path: Path, board: Board) -> None:
    """Raise FileError where memories lie in each other, are empty, or two have one name."""
    for one, other in itertools.pairwise(sorted(board.memories, key=lambda m: m.origin)):
        if one.origin + one.size > other.origin:
            both = f"{one.name} ({one.origin:#x}, {one.size:#x} bytes) reaches into {other.name}"
            raise FileError(f"{path}: the memory {both}, which begins at {other.origin:#x}")
    names = [m.name for m in board.memories]
    for m in board.memories:
        if not m.size or names.count(m.name) > 1:
            wrong = "there are two of this name" if m.size else "it has no bytes"
            raise FileError(f"{path}: the memory {m.name}: {wrong}")


def _can_sleep(uart: str) -> bool:
    """Return whether a serial driver has `board_uart_wait`; that of a project may have."""
    return uart == "none" or "board_uart_wait" in (_SOURCES / f"uart_{uart}.c").read_text()


def _parse(path: Path) -> Board:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        usual = "instret" if data.get("startup") == "riscv" else ""
        board: Board = _record(Board, {"timer": usual, **data}, name=path.stem)
    except (ValueError, RecursionError) as error:
        raise FileError(
            f"{path} does not describe a board: {reason_of(error)}; see the files in {DEVICES}"
        ) from error
    return board


def _record(kind: Any, given: Any, **values: Any) -> Any:
    """Return a table of the file as a dataclass; raises ValueError about a wrong entry."""
    if not isinstance(given, dict):
        raise ValueError(f"{_shown(given)} is no table of names and values")
    known = {_FILE_NAMES.get(f.name, f.name): f for f in fields(kind) if f.name not in values}
    for key in given:
        if key not in known:
            raise ValueError(f"it has {key!r}, which says nothing." + did_you_mean(key, known))
    for key, field in known.items():
        if key not in given and field.default is MISSING:
            raise ValueError(f"it has no {key!r}")
    for key, value in given.items():
        field, usual = known[key], known[key].default
        try:
            same = type(value) is type(usual) and value == usual
            values[field.name] = value if same else _READERS[str(field.type)](value)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from error
    return kind(**values)


def _list_of(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def all_of(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f"{_shown(value)} is no list")
        return tuple(map(read, value))

    return all_of


def _exactly(kind: type, name: str) -> Callable[[Any], Any]:
    def same(value: Any) -> Any:
        if type(value) is not kind:
            raise ValueError(f"{_shown(value)} is no {name}")
        return value

    return same


def _number(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{_shown(value)} is no whole number")
    if not 0 <= value < 1 << 64:
        raise ValueError(f"{value} is no number from 0 to 2**64 - 1")
    return value


def _shown(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)


def parse_step(text: str) -> RegisterStep:
    """Read one step: a kind, numbers, and behind # what it is for."""
    kind, *words = text.partition("#")[0].split() or [""]
    if kind == "call" and len(words) - 1 in _CALL_NUMBERS:
        address, *numbers = _numbers_of(words, text)
        if not 0 < address < 1 << 32 or any(not 0 <= n < 256 for n in numbers):
            raise ValueError(f"the step {text!r} calls no function on numbers below 256")
        packed = int.from_bytes(bytes(numbers), "little")
        return RegisterStep(kind, address, packed & 0xFFFFFFFF, packed >> 32)
    if STEP_KINDS.get(kind) != len(words) - 1:
        forms = "write A V, set A M, clear A M, field A M V, wait A M V, copy A B, trim A N"
        raise ValueError(f"the step {text!r} is none of {forms}, call A N...")
    address, *rest = _numbers_of(words, text)
    if any(not 0 <= n < 1 << 32 for n in (address, *rest)) or address % 4 or not address:
        raise ValueError(f"the step {text!r} is about no 32-bit register")
    mask, value = rest if len(rest) == 2 else (rest[0], rest[0])
    if kind in ("field", "wait") and value & ~mask:
        raise ValueError(f"the step {text!r} has a value beyond its mask")
    if kind == "copy" and (value % 4 or not value):
        raise ValueError(f"the step {text!r} copies from no 32-bit word")
    if kind == "trim" and not 0 < value <= _MAX_TRIMS:
        raise ValueError(f"the step {text!r} is about {value} pairs, and not 1 to {_MAX_TRIMS}")
    whole = kind in ("write", "copy", "trim")
    return RegisterStep(kind, address, 0xFFFFFFFF if whole else mask, value)


def _numbers_of(words: Sequence[str], text: str) -> list[int]:
    try:
        return [_number(int(word, 0)) for word in words]
    except ValueError:
        raise ValueError(f"{text!r} has a word that is no number") from None


def _boot_part(given: Any) -> BootPart:
    """Read an entry of ``boot``: at, size, and words as "OFFSET WORD  # what it is"."""
    part: BootPart = _record(BootPart, given)
    for offset, word in part.words:
        if offset % 4 or offset >= part.size or word >= 1 << 32:
            raise ValueError(f"the word {word:#x} at {offset:#x} is none of the {part.size} bytes")
    return part


def _boot_word(text: Any) -> tuple[int, int]:
    numbers = _numbers_of(_text(text).partition("#")[0].split(), text)
    if len(numbers) != 2:
        raise ValueError(f"{text!r} is no offset and word")
    return numbers[0], numbers[1]


_text = _exactly(str, "text")
_FILE_NAMES = {"memories": "memory"}  # an entry [[memory]] describes one
_READERS: dict[str, Callable[[Any], Any]] = {
    "str": _text,
    "int": _number,
    "bool": _exactly(bool, "true or false"),
    "tuple[str, ...]": _list_of(_text),
    "tuple[int, ...]": _list_of(_number),
    "tuple[tuple[int, int], ...]": _list_of(_boot_word),
    "tuple[RegisterStep, ...]": _list_of(lambda text: parse_step(_text(text))),
    "tuple[Memory, ...]": _list_of(functools.partial(_record, Memory)),
    "tuple[BootPart, ...]": _list_of(_boot_part),
    "Uart": functools.partial(_record, Uart),
    "Emulator | None": functools.partial(_record, Emulator),
}


def step_text(step: RegisterStep) -> str:
    """Return a step as a description holds it; the inverse of `parse_step`."""
    if step.kind == "call":
        numbers = list((step.mask | step.value << 32).to_bytes(6, "little"))
        return " ".join([step.kind, *(f"{n:#x}" for n in (step.address, *numbers))])
    numbers = [step.value] if STEP_KINDS[step.kind] == 1 else [step.mask, step.value]
    return " ".join([step.kind, *(f"{n:#x}" for n in (step.address, *numbers))])


def with_room(board: Board, size_bytes: int) -> Board:
    """Return the board with at least so much flash and RAM."""
    memories = tuple(
        replace(m, size=max(m.size, size_bytes)) if m.name in ("FLASH", "RAM") else m
        for m in board.memories
    )
    return replace(board, memories=memories)


def board_toml(board: Board) -> str:
    """Return a board's description as its data file; the inverse of reading one."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    names = (
        *("title", "core", "startup", "compiler", "cflags", "target", "clock_hz", "exit"),
        *("reset_hz", "instruction_cache", "boot_block", "image_block", "flash_tool"),
        *("data_cache", "timer", "timer_base", "read_at"),
    )
    lines = [f"{name} = {text(getattr(board, name))}" for name in names]
    for name in ("clock", "pins"):
        lines.append(f"{name} = {text([step_text(s) for s in getattr(board, name)])}")
    uart = ", ".join(f"{f.name} = {text(getattr(board.uart, f.name))}" for f in fields(board.uart))
    lines.append(f"uart = {{ {uart} }}")
    for part in board.boot:
        words = [f"{offset:#x} {word:#010x}" for offset, word in part.words]
        lines += ["[[boot]]", f"at = {part.at}", f"size = {part.size}", f"words = {text(words)}"]
    for m in board.memories:
        lines += ["[[memory]]", f"name = {text(m.name)}", f"origin = {m.origin}"]
        lines.append(f"size = {m.size}")
    if board.emulator is not None:
        lines += ["[emulator]", f"program = {text(board.emulator.program)}"]
        lines.append(f"args = {text(board.emulator.args)}")
    return "\n".join([*lines, ""])


@functools.cache
def _boards() -> dict[str, Board]:
    return {path.stem: _read(path) for path in sorted(DEVICES.glob("*.toml"))}


def board_names() -> list[str]:
    """Return the names of all boards that come with Slipway."""
    return list(_boards())


def find_board(name: str) -> Board:
    """Return a board by name, by another name that users know it by, or from its own data file.

    Underscores and dashes are the same.  Raises TargetError for an unknown board.
    """
    if name.endswith(".toml"):
        return _read(Path(name))
    wanted = name.replace("_", "-")
    for board in _boards().values():
        if wanted in (board.name, *(alias.replace("_", "-") for alias in board.aliases)):
            return board
    every = sorted({n.replace("_", "-") for b in _boards().values() for n in (b.name, *b.aliases)})
    raise TargetError(
        f"no board is called {name!r}; there are {', '.join(board_names())}. A path ending in "
        ".toml names a board description of your own." + did_you_mean(wanted, every)
    )
