"""setup.c runs the steps of a description: as a process, on memory where the registers would be."""

import platform
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from slipway.micro.baremetal import TEMPLATE_SOURCES, board_config
from slipway.micro.board import find_board, parse_step

MODEL = Path(__file__).parent / "setup_model.c"
pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or shutil.which("gcc") is None,
    reason="needs gcc, and Linux' pages at fixed addresses",
)


def run_setup(board, folder, before, shown):
    """Return the clock that the board believes it has, and the words at `shown` afterwards."""
    (folder / "board_config.h").write_text(board_config(board))
    program = folder / "setup"
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"]
    folders = [f"-I{folder}", f"-I{TEMPLATE_SOURCES}"]
    sources = [MODEL, TEMPLATE_SOURCES / "setup.c"]
    subprocess.run(["gcc", *flags, *folders, *sources, "-o", program], check=True)
    words = [f"{number:x}" for pair in before.items() for number in pair]
    command = [program, *words, "-", *(f"{address:x}" for address in shown)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    clock, *found = done.stdout.split()
    return int(clock), [int(word, 16) for word in found]


NRF5340 = {
    0x50005000: 0, 0x50005100: 0, 0x50005558: 1, 0x50001500: 0, 0x50006544: 0, 0x50004A00: 0,
    0x00FF0300: 0x50004A00, 0x00FF0304: 0x1234, 0x00FF0308: 0x50004A10, 0x00FF030C: 0x5678,
    0x00FF0310: 0xFFFFFFFF, 0x00FF0314: 0xFFFFFFFF, 0x00FF8000: 0x50FA50FA, 0x00FF801C: 0x77,
}  # fmt: skip


def test_what_the_maker_measured_is_written_to_where_it_says(tmp_path):
    shown = (0x50004A00, 0x50004A10, 0x50006544, 0x5000654C, 0x50005000)
    clock, found = run_setup(find_board("nrf5340"), tmp_path, NRF5340, shown)
    assert found == [0x1234, 0x5678, 0x50FA50FA, 0x77, 1]
    assert clock == 64_000_000  # no crystal here: the board goes on at its reset clock


def test_steps_touch_what_they_say_and_end_at_a_wait_that_does_not(tmp_path):
    texts = [
        "trim 0x50002000 2", "set 0x50003000 0x6", "clear 0x50003000 0x4",
        "field 0x50003004 0xF0 0x50", "copy 0x50003008 0x50003000", "wait 0x50003000 0x3 0x3",
    ]  # fmt: skip
    board = replace(find_board("nrf5340"), clock=tuple(map(parse_step, texts)), pins=(), reset_hz=7)
    three = [0x5000300C, 1, 0x50003010, 2, 0x50003014, 3]
    before = {0x50002000 + 4 * i: word for i, word in enumerate(three)}
    before |= {0x50003000: 1, 0x50003004: 0xABC}
    clock, found = run_setup(board, tmp_path, before, [0x50003000 + 4 * i for i in range(6)])
    assert found == [3, 0xA5C, 3, 1, 2, 0]
    assert clock == board.clock_hz
    waiting = replace(board, clock=(*board.clock, parse_step("wait 0x50003000 0x10 0x10")))
    assert run_setup(waiting, tmp_path, before, [0x50003000]) == (7, [3])


def test_a_board_without_copies_pays_nothing_for_them():
    assert "#define BOARD_HAS_COPIES 0" in board_config(find_board("nrf52840"))
    assert "#define BOARD_HAS_COPIES 1" in board_config(find_board("nrf5340"))
