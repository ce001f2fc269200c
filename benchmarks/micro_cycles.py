"""An estimate of a Cortex-M4's cycles for one inference, beside its instructions.

python -m benchmarks micro_cycles [--model kws_ref_model ...] [--json OUT]

The bench firmware runs in QEMU under a plugin that counts how often each instruction ran, and what
the flash's buffers lacked (plugins/cycle_count.c).  Each takes what Arm's technical reference
manual says (DDI 0439, table 3-1): loads two cycles, one behind another load or store; a taken
branch refills the pipeline; products one.  A line that the flash's buffers lack costs five wait
states, as on an STM32L4R5 at 120 MHz.  It is an estimate: no bus has another master, and the
compiler's choices are those of gcc here.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path

from benchmarks.micro import MODELS, compile_model
from slipway import micro
from slipway.micro.board import find_board
from slipway.micro.emulator import emulator_command

HERE = Path(__file__).parent
BOARD = "mps2-an386"
FLASH_END, WAIT_STATES = 0x20000000, 5
REFILL, REFILL_FAR = 1, 2  # of the pipeline: behind a branch in the code, behind one by a register
# Published, in millions of cycles on an STM32L4R5 at 120 MHz (MLPerf Tiny): X-CUBE-AI 9.0,
# Plumerai 2023.05, microTVM with CMSIS-NN; and TFLM's instructions with CMSIS-NN.
PUBLISHED = {
    "kws_ref_model": (5.18, 5.73, 12.0, 7.70),
    "vww_96_int8": (10.67, 11.85, 36.1, 24.1),
    "pretrainedResnet_quant": (19.8, 20.1, 46.8, 29.9),
    "ad01_int8": (0.63, 0.49, 1.03, 0.583),
}
_SINGLE = re.compile(r"(ldr|str)(s?[bh])?(t|ex)?$")
_MANY = re.compile(r"(ldm|stm|pop|push|vldm|vstm|vpush|vpop)")
_BRANCH = re.compile(r"b(l|x|lx)?(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|hs|lo)?$")


def registers_in(operands: str) -> int:
    """Return how many registers a list in braces has."""
    listed = re.search(r"\{(.*)\}", operands)
    count = 0
    for part in listed[1].split(",") if listed else []:
        ends = [int(n) for n in re.findall(r"\d+", part)]
        count += ends[1] - ends[0] + 1 if "-" in part and len(ends) == 2 else 1
    return count


def cycles_of(name: str, operands: str, before: str, executed: int, taken: int) -> float:
    """Return the cycles of `executed` runs of an instruction, of which `taken` branched away.

    `before` is the name of the instruction before it.
    """
    name = name.split(".")[0]
    if _SINGLE.match(name):
        if name.startswith("str"):
            return executed
        found = _SINGLE.match(before.split(".")[0])
        return executed * (1 if found else 2) + (taken * REFILL_FAR if "pc" in operands[:3] else 0)
    if name in ("ldrd", "strd"):
        return executed * 3
    if _MANY.match(name):
        refill = REFILL_FAR if "pc" in operands else 0
        return executed * (1 + registers_in(operands) + refill)
    if name in ("cbz", "cbnz") or (_BRANCH.match(name) and name not in ("bl", "bx", "blx")):
        return executed + taken * REFILL
    if name == "bl":
        return executed * (1 + REFILL)
    if name in ("bx", "blx", "tbb", "tbh"):
        return executed * (1 + REFILL_FAR)
    if name in ("sdiv", "udiv"):
        return executed * 7  # 2 to 12
    if name.startswith(("vmla", "vmls", "vfma", "vfms", "vfnm", "vnml")):
        return executed * 3
    if name.startswith(("vdiv", "vsqrt")):
        return executed * 14
    if name.startswith(("vldr", "vstr")):
        return executed * 2
    return executed


def disassembled(elf: Path) -> dict[int, tuple[str, str]]:
    """Return the instructions of an image: address to name and operands."""
    text = subprocess.run(
        ["arm-none-eabi-objdump", "-d", "--no-show-raw-insn", elf],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    found = {}
    for line in text.splitlines():
        got = re.match(r"\s*([0-9a-f]+):\t(\S+)\s*([^;@]*)", line)
        if got:
            found[int(got[1], 16)] = (got[2], got[3].strip())
    return found


def address_of(elf: Path, symbol: str) -> int:
    """Return where a function lies."""
    text = subprocess.run(
        ["arm-none-eabi-nm", elf], check=True, capture_output=True, text=True
    ).stdout
    return next(int(w[0], 16) for w in map(str.split, text.splitlines()) if w[-1] == symbol)


def estimate(elf: Path, folder: Path) -> dict[str, float]:
    """Return the instructions and the estimated cycles of the first inference of an image."""
    plugin, out = folder / "cycle_count.so", folder / "counts"
    subprocess.run(
        ["cc", "-O2", "-shared", "-fPIC", "-o", plugin, HERE / "plugins" / "cycle_count.c"],
        check=True,
    )
    marks = [f"{address_of(elf, name):x}" for name in ("bench_begin", "bench_end")]
    options = f"begin={marks[0]},end={marks[1]},out={out},flash={FLASH_END:x}"
    command = [*emulator_command(find_board(BOARD), elf), "-plugin", f"{plugin},{options}"]
    subprocess.run(command, check=False, capture_output=True, timeout=500)
    head, *lines = out.read_text().splitlines()
    counts = {int(a, 16): int(n) for a, n in map(str.split, lines)}
    code, addresses = disassembled(elf), sorted(counts)
    cycles, before = 0.0, ""
    for number, at in enumerate(addresses):
        name, operands = code.get(at, ("nop", ""))
        following = counts.get(at + 4) or counts.get(at + 2) or 0
        is_next = number + 1 < len(addresses) and addresses[number + 1] - at in (2, 4)
        taken = max(0, counts[at] - following) if is_next else counts[at]
        cycles += cycles_of(name, operands, before, counts[at], taken)
        before = name
    misses = [int(n) for n in head.split()[1::2]]
    return {
        "instructions": sum(counts.values()),
        "cycles": cycles,
        "code_stalls": misses[0] * WAIT_STATES,
        "data_stalls": misses[1] * WAIT_STATES,
    }


def measure(name: str) -> dict[str, float]:
    """Build a model into the bench firmware and estimate its cycles."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        library = compile_model(name, find_board(BOARD).target)
        archive = micro.export_model_library_format(library, folder / "m.tar")
        options = {"board": BOARD, "project_type": "bench"}
        project = micro.generate_project_from_mlf("baremetal", folder / "p", archive, options)
        project.build()
        project.close()
        return estimate(folder / "p" / "build" / "firmware.elf", folder)


def main() -> int:
    """Print a row for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = {}
    heads = ("model", "instructions, million", "cycles", "with flash", "cycles an instruction",
             "X-CUBE-AI", "Plumerai", "microTVM + CMSIS-NN")  # fmt: skip
    print(f"| {' | '.join(heads)} |\n| --- |{' ---: |' * (len(heads) - 1)}")
    for name in arguments.model or MODELS:
        row = rows[name] = measure(name)
        whole = row["cycles"] + row["code_stalls"] + row["data_stalls"]
        known = [f"{c}" for c in PUBLISHED.get(name, ())[:3]] or ["", "", ""]
        print(
            f"| {name} | {row['instructions'] / 1e6:.3f} | {row['cycles'] / 1e6:.3f} | "
            f"{whole / 1e6:.3f} | {whole / row['instructions']:.2f} | {' | '.join(known)} |",
            flush=True,
        )
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
