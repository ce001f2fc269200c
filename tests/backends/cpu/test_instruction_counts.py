"""`python -m benchmarks vectors`: the counting itself, and bounds on what it counts.

Bounds are a tenth above what was counted; a change that adds more has to say why.
"""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from benchmarks._vector_cases import float_cases, integer_cases
from benchmarks.vectors import PROCESSORS, measure

CASES = {case.name: case for case in (*float_cases(), *integer_cases())}

# Instructions for a multiply-add or an element; the first of each processor by default.
BOUNDS = [
    ("x86-sse4", "conv 1x1", 1.10),
    ("x86-sse4", "int8 conv 3x3", 0.59),
    ("armv7-neon", "conv 1x1", 0.44),
    ("armv7-neon", "add, relu", 2.1),
    ("armv7-neon", "int8 conv 3x3", 0.69),
    ("aarch64-neon", "int8 conv 3x3", 0.43),
    ("aarch64-neon", "int8 conv depthwise 3x3", 0.91),
    ("aarch64-neon", "int8 conv 3x3, 4 groups", 0.54),
    ("aarch64-neon", "max pool 3x3", 0.56),
    ("aarch64-neon", "concatenate", 0.51),
    ("aarch64-neon", "resize linear x2", 3.43),
    ("aarch64-neon", "dense of two variables", 0.39),
    ("aarch64-neon", "tanh", 7.8),
    ("aarch64-dotprod", "int8 conv 3x3", 0.16),
    ("aarch64-i8mm", "int8 conv 3x3", 0.082),
    ("aarch64-i8mm", "int8 dense, 32 rows", 0.08),
    ("aarch64-sve256", "conv 1x1", 0.28),
    ("aarch64-sve256", "transpose of a matrix", 1.12),
    ("riscv64-v128", "add, relu", 0.64),  # a comparison and a choice, since fmax drops a NaN
    ("riscv64-v128", "int8 conv 3x3", 0.39),
    ("riscv64-v256", "exp", 3.7),
]
FIRST = {processor: case for processor, case, _ in reversed(BOUNDS)}


@pytest.mark.skipif(shutil.which("cc") is None, reason="the plugin that counts needs a C compiler")
@pytest.mark.parametrize(
    ("processor", "case", "bound"),
    [
        pytest.param(*row, marks=[] if FIRST[row[0]] == row[1] else [pytest.mark.long])
        for row in BOUNDS
    ],
)
def test_instructions_for_a_unit_of_work(processor, case, bound):
    """`measure` also holds the result against NumPy."""
    chosen = PROCESSORS[processor]
    if shutil.which(chosen.emulator[0]) is None:
        pytest.skip(f"{chosen.emulator[0]} is not installed; on Debian: apt-get install qemu-user")
    found = measure(chosen, CASES[case], show=False)
    assert found is not None
    assert bound / 4 < found[0] <= bound


def test_a_figure_beyond_the_vectors_width_is_seen():
    """The fewest instructions of a tile: by hand for NEON, 6 rows by 4 vectors."""
    from benchmarks._vector_cases import Machine

    neon = Machine(4, 32, lane_fma=True)
    assert neon.tile(1, 1) <= (24 + 4 + 6 / 4) / 24 / 4
    assert neon.vector(2, 1, 1) == 1.0
    assert Machine(4, 16, 3, reads_memory=True).vector(2, 2, 1) == 0.75
