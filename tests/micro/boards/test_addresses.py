"""The registers that boards' descriptions write lie where the vendors' own files say.

`vendor_registers.toml` was made from those files (its first lines name them): a name in a step's
comment is looked up there, and the step has to touch that address and, where the comment names
bits, those and no others.
"""

import re
import tomllib
from pathlib import Path

import pytest

from slipway.micro.board import DEVICES, find_board

VENDORS = tomllib.loads((Path(__file__).parent / "vendor_registers.toml").read_text("utf-8"))
# What steps of one bit touch: with these, the mask is that of the bits that are named.
_OF_BITS = ("set", "clear", "wait")


def steps_of(board):
    """Yield (kind, address, mask, register, words of the comment) for steps with a comment."""
    given = tomllib.loads((DEVICES / f"{board}.toml").read_text("utf-8"))
    for step in (*given.get("clock", ()), *given.get("pins", ())):
        code, _, comment = step.partition("#")
        name = re.match(r"\s*([A-Z][A-Z0-9_]{3,})", comment)
        if name:
            kind, address, mask = [*code.split(), "0"][:3]
            words = re.findall(r"[A-Z][A-Z0-9_]+", comment[name.end() :])
            yield kind, int(address, 0), int(mask, 0), name[1], words


@pytest.mark.parametrize("board", VENDORS)
def test_registers_are_those_of_the_vendor(board):
    known, tried = VENDORS[board], set()
    for kind, address, mask, register, words in steps_of(board):
        assert register in known, f"{register}: add it to vendor_registers.toml from the SVD"
        assert address == known[register]["at"], register
        bits = [known[register][word] for word in words if word in known[register]]
        if bits and kind in _OF_BITS:
            assert mask == sum(set(bits)), (register, words)
        tried.add(register)
    assert tried == set(known)


@pytest.mark.parametrize(
    ("board", "base"),
    [
        ("nucleo-f446re", 0x40004400),  # USART2
        ("nucleo-h743zi", 0x40004800),  # USART3
        ("nucleo-l4r5zi", 0x40008000),  # LPUART1
        ("nucleo-u575zi", 0x40013800),  # USART1
        ("stm32f746", 0x40011000),  # USART1
        ("nrf52840", 0x40002000),  # UART0
        ("microbit-v2", 0x40002000),  # UART0
        ("rp2040", 0x40034000),  # UART0
        ("pico2", 0x40070000),  # UART0
        ("nrf5340", 0x50008000),  # UARTE0, secure
        ("teensy41", 0x40198000),  # LPUART6
        ("esp32c3", 0x60000000),  # UART0
    ],
)
def test_the_serial_line_is_where_the_vendor_says(board, base):
    assert find_board(board).uart.base == base
