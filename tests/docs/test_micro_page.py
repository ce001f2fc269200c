"""What docs/micro.md lists: boards, drivers, steps, tools, kernels, templates; each is there."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from slipway.backends.micro.kernels import library
from slipway.cli import exit_codes
from slipway.micro import board, project

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "micro.md").read_text(encoding="utf-8")
BOARDS = {path.stem: path.read_text() for path in board.DEVICES.glob("*.toml")}


def section(title):
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def rows(title):
    """Return the first cells of the tables in a section, without heads."""
    return re.findall(r"^\| (?!-)(.*?) \|", section(title), re.MULTILINE)


def test_boards():
    emulated, chips, clocked = re.findall(
        r"^\| (?:emulated|with).*? \| (.*) \|$", PAGE, re.MULTILINE
    )
    names = {
        part: set(re.findall(r"\b[a-z][a-z0-9]*(?:-[a-z0-9]+)*\b", re.sub(r"\(.*?\)", "", row)))
        for part, row in (("emulated", emulated), ("chips", chips), ("clocked", clocked))
    }
    names["clocked"] -= {"and", "the", "four", "before"}
    assert set.union(*names.values()) == set(BOARDS)
    has_emulator = {name for name, text in BOARDS.items() if re.search(r"^\[?emulator", text, re.M)}
    assert names["emulated"] | names["chips"] == has_emulator
    assert len(names["chips"]) == 4


def test_serial_drivers():
    (listed,) = re.findall(r"`uart` a driver of .*?base address \((.*?)\), `exit`", PAGE, re.DOTALL)
    source = board.DEVICES.parent / "baremetal" / "src"
    there = {path.stem.removeprefix("uart_") for path in source.glob("uart_*.c")} - {"none"}
    assert set(re.findall(r"`(\w+)`", listed)) == there


def test_steps_and_tools():
    steps = set(re.findall(r'`"(\w+) A', PAGE))
    assert steps == {*board.STEP_KINDS, "call"}
    (tools,) = re.findall(r"`flash_tool` is (.*?)\. `instruction_cache`", PAGE, re.DOTALL)
    named = {text for text in re.findall(r'`"(\w+) ', tools)}
    source = (ROOT / "src/slipway/micro/board_tools.py").read_text(encoding="utf-8")
    assert named == set(re.findall(r'tool == "(\w+)"', source))


def test_kernels_and_templates():
    families = {name.strip("`") for name in rows("Integer kernels")} - {"family"}
    above = set(re.findall(r"`(\w+)`", section("Integer kernels").partition("| family")[0]))
    assert set(library._FILES) - families == above & set(library._FILES) - families
    assert {name.strip("`") for name in rows("Templates")} - {"template"} == set(project.TEMPLATES)


def test_deviations_have_the_reasons_that_the_tool_accepts():
    file = ROOT / "src/slipway/crt/misra_deviations.txt"
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line[:1].isdigit()]
    reasons = dict(line.split(" ", 1) for line in lines)
    table = PAGE.partition("<!-- misra -->\n")[2].partition("\n\n")[0]
    found = re.findall(r"^\| ([\d.]+) \| \d+ \| (.*) \|$", table, re.MULTILINE)
    assert found == [(rule, reasons[rule]) for rule, _ in found] != []


def test_code_of_the_serial_line(tmp_path):
    """Within a twentieth: another release of gcc 12 may write some bytes more or less."""
    gcc = shutil.which("arm-none-eabi-gcc")
    if gcc is None or " 12." not in subprocess.check_output([gcc, "--version"], text=True):
        pytest.skip("no gcc 12 for ARM: apt-get install gcc-arm-none-eabi")
    said = re.search(
        r"([\d,]+) bytes of\ncode on a Cortex-M4 by gcc 12.2 -Os, ([\d,]+) by -O2", PAGE
    )
    crt = ROOT / "src/slipway/crt"
    core = ["-mcpu=cortex-m4", "-mthumb", "-DSLW_STATIC", "-DSLW_NO_THREADS", f"-I{crt}/include"]
    for level, number in zip(("-Os", "-O2"), said.groups(), strict=True):
        out = tmp_path / "link.o"
        subprocess.run([gcc, *core, level, "-c", crt / "src/serial_link.c", "-o", out], check=True)
        sizes = subprocess.check_output(["arm-none-eabi-size", out], text=True).splitlines()[1]
        assert int(sizes.split()[0]) == pytest.approx(int(number.replace(",", "")), rel=0.05)


@pytest.mark.parametrize(("said", "code"), [("ends it with exit code 9", exit_codes.UNREACHABLE)])
def test_exit_codes(said, code):
    assert said in PAGE
    assert said.endswith(f" {code}")
