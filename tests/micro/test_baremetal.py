"""Firmware of hand-written generated code on every emulated board."""

import re

import pytest
from firmware_tools import needs

from slipway import micro
from slipway.errors import SlipwayError
from slipway.micro.board import board_names, find_board
from slipway.micro.emulator import run_image
from slipway.micro.model_library import ModelLibrary
from slipway.micro.project_api.server import ServerError

SIZE = 1000

HEADER = """
#ifndef TVMGEN_TINY_H_
#define TVMGEN_TINY_H_
#include <stdint.h>
struct tvmgen_tiny_inputs { void *x; };
struct tvmgen_tiny_outputs { void *y; };
int32_t tvmgen_tiny_run(struct tvmgen_tiny_inputs *inputs, struct tvmgen_tiny_outputs *outputs);
#endif
"""

# One instruction more per element than the loop's own: the count tells whether it is believable.
SOURCE = """
#include "tvmgen_tiny.h"
static uint8_t scratch[16] = {1, 2, 3, 4};
int32_t tvmgen_tiny_run(struct tvmgen_tiny_inputs *inputs, struct tvmgen_tiny_outputs *outputs) {
  const uint8_t *x = inputs->x;
  uint32_t *y = outputs->y;
  float scale = 0.5f;
  uint32_t sum = 0;
  for (int i = 0; i < 1000; ++i) sum += x[i];
  y[0] = sum;
  y[1] = (uint32_t)(scale * (float)(x[0] * 2)) + scratch[3];
  return 0;
}
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    path = tmp_path_factory.mktemp("mlf") / "model.tar"
    main = {
        "inputs": {"x": {"size": SIZE, "dtype": "uint8"}},
        "outputs": {"y": {"size": 8, "dtype": "uint32"}},
    }
    library = ModelLibrary(
        "tiny",
        {"memory": {"functions": {"main": [main]}}},
        {"tiny_lib0.c": SOURCE},
        {"tvmgen_tiny.h": HEADER},
    )
    return micro.export_model_library_format(library, path)


def generate(archive, folder, board, kind="bench", **options):
    return micro.generate_project_from_mlf(
        "baremetal", folder, archive, {"board": board, "project_type": kind, **options}
    )


def lcg_bytes(seed, count):
    state = seed
    for _ in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        yield state >> 24


def boards(emulated, always):
    """All boards of a kind; those that differ from others in numbers only are long cases."""
    names = [n for n in board_names() if bool(find_board(n).emulator) == emulated]
    return [n if n in always else pytest.param(n, marks=pytest.mark.long) for n in names]


MPS = {n for n in board_names() if n.startswith(("mps", "riscv"))}


@pytest.mark.parametrize("name", boards(True, {*MPS, "netduinoplus2", "microbit"}))
def test_bench_firmware_runs_and_counts_instructions(name, archive, tmp_path):
    board = find_board(name)
    needs(board)
    project = generate(archive, tmp_path / "p", name, warning_as_error=True)
    project.build()
    project.flash()
    project.close()
    status, text = run_image(board, tmp_path / "p/build/firmware.elf")
    assert status == 0, text
    outputs = re.findall(r"OUT (\w+)", text)
    assert len(outputs) == 10
    for seed, output in enumerate(outputs, 1):
        data = list(lcg_bytes(seed, SIZE))
        assert int.from_bytes(bytes.fromhex(output)[:4], "little") == sum(data)
        assert int.from_bytes(bytes.fromhex(output)[4:], "little") == data[0] + 4
    counts = {int(n) for n in re.findall(r"NS (\d+)", text)}
    assert all(SIZE <= n <= 12 * SIZE for n in counts), counts
    used = [int(n) for n in re.findall(r"STACK (\d+)", text)]
    assert all(8 <= n <= 600 for n in used)
    reserved = int((tmp_path / "p/stack.mk").read_text().split("=")[1])
    assert max(used) + 256 <= reserved <= 2048  # what the build has proven, not a usual number


@pytest.mark.parametrize("name", boards(False, {"nucleo-h743zi", "nrf52840", "pico2"}))
def test_boards_without_emulator_build(name, archive, tmp_path):
    needs(find_board(name))
    project = generate(archive, tmp_path / "p", name, "example_project", warning_as_error=True)
    project.build()
    assert (tmp_path / "p/build/firmware.elf").is_file()
    project.close()


def test_example_firmware_talks_through_the_transport(archive, tmp_path):
    needs(find_board("mps2-an386"))
    project = generate(archive, tmp_path / "p", "mps2_an386", "example_project")
    project.build()
    text = b""
    with project.transport() as transport:
        while b"y (uint32)" not in text or not text.endswith(b"\n"):
            text += transport.read(64, 20.0)
    assert text.splitlines() == [b"tiny on mps2-an386", b"y (uint32): 0000000004000000"]
    project.close()


def test_unknown_board_names_the_known_ones(archive, tmp_path):
    with pytest.raises(ServerError, match="mps2-an386"):
        generate(archive, tmp_path / "p", "mps2-an396")
    with pytest.raises(SlipwayError, match="Did you mean"):
        find_board("mps2-an396")


def test_unknown_project_type_and_option_are_refused_before_anything_is_made(archive, tmp_path):
    with pytest.raises(ValueError, match="bench"):
        generate(archive, tmp_path / "p", "mps2-an386", "benhc")
    with pytest.raises(ValueError, match="stack_bytes"):
        generate(archive, tmp_path / "p", "mps2-an386", stack_byte=1)
    assert not (tmp_path / "p").exists()


def test_directory_in_use_is_refused(archive, tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "mine.txt").write_text("x")
    with pytest.raises(FileExistsError, match="not empty"):
        generate(archive, tmp_path / "p", "mps2-an386")
