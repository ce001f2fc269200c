"""Serial drivers of boards without an emulator, against models of their registers."""

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from slipway.micro.baremetal import TEMPLATE_SOURCES, board_config
from slipway.micro.board import board_names, find_board

HERE = Path(__file__).parent
# One board of each driver that QEMU runs on no machine of `boards/devices`.
BOARDS = {"nrf_dma": "nrf5340", "lpuart": "teensy41", "esp": "esp32c3", "pl011": "pico2",
          "stm32_isr": "nucleo-l4r5zi"}  # fmt: skip


@pytest.mark.parametrize("driver", BOARDS)
def test_bytes_go_out_and_come_in_at_the_rate(driver, tmp_path):
    if platform.machine() != "x86_64" or shutil.which("gcc") is None:
        pytest.skip("the models trap single instructions of x86-64, by gcc")
    board = find_board(BOARDS[driver])
    assert board.uart.kind == driver
    (tmp_path / "board_config.h").write_text(board_config(board))
    program = tmp_path / "model"
    subprocess.run(
        ["gcc", "-O1", "-static", "-no-pie", f"-DMODEL_{driver}", f"-I{tmp_path}",
         f"-I{TEMPLATE_SOURCES}", HERE / "uart_models.c", TEMPLATE_SOURCES / f"uart_{driver}.c",
         "-o", program],
        check=True,
    )  # fmt: skip
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    sent, baud = map(int, re.findall(r"\d+", done.stdout))
    assert sent == 300
    assert abs(baud / 115200 - 1) < 0.01


def test_every_driver_runs_somewhere():
    boards = [find_board(name) for name in board_names()]
    emulated = {board.uart.kind for board in boards if board.emulator}
    assert {board.uart.kind for board in boards} == emulated | set(BOARDS)
