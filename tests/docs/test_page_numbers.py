"""Numbers that pages give of the code: limits and thresholds are those that the code has."""

import re
from pathlib import Path

import pytest

import slipway
from slipway.codegen import cache
from slipway.codegen.llvm import worker, workers
from slipway.compiler.quantize import histogram
from slipway.frontends import budget
from slipway.frontends.onnx import isolated
from slipway.frontends.onnx.operators import control
from slipway.target.gpu_costs import ANY_GPU
from slipway.tuning import builders, experience, measure, search, tune

PACKAGE = Path(slipway.__file__).parent
DRIVERS = "\n".join(
    path.read_text(encoding="utf-8")
    for path in sorted((PACKAGE / "crt/posix/devices/drivers").glob("*vulkan*.[ch]"))
)
WORDS = {"minute": 1, "three": 3, "sixteen": 16, "a sixteenth": 16, "a million": 1, "eight": 8}


def defined(name):
    """Return a number that the drivers' sources define."""
    value, _, shift = re.search(
        rf"#define {name} \(?(?:\(size_t\))?(\d+)U?( << (\d+))?", DRIVERS
    ).groups()
    return int(value) << int(shift or 0)


SCRIPT = (PACKAGE / "web" / "slipway.mjs").read_text(encoding="utf-8")
FOUND = {
    ("codegen.md", r"takes more than (\d+) s\b"): workers.LIMIT_S,
    ("codegen.md", r"after a (minute) without work"): worker.IDLE_S / 60,
    ("codegen.md", r"keeps to about (\d+) MB"): cache.LIMIT_BYTES >> 20,
    ("codegen.md", r"in n of (\d+) MB cases"): cache.SWEEP_BYTES >> 20,
    ("quantization.md", r"at least ([\d,]+) elements"): (
        histogram.MIN_PER_BIN * histogram.MIN_BINS
    ),
    ("tuning.md", r"From (\d+) trials on"): experience.ENOUGH,
    ("onnx.md", r"of each step are known, up to ([\d,]+) steps"): control.MAX_STEPS,
    ("onnx.md", r"`Scan` of up to (\d+) steps is unrolled"): control.FEW_STEPS,
    ("onnx.md", r"budget, for every format: ([\d,]+) nodes"): budget.MAX_NODES,
    ("onnx.md", r"constants of\n(\d+) MiB and"): budget.BYTES >> 20,
    ("onnx.md", r"MiB and (eight) times the weights"): budget.WEIGHTS_FACTOR,
    ("onnx.md", r"with (\d+) s of processor time"): isolated.LIMIT_S,
    ("tuning.md", r"half of the cores, (\d+) at most"): builders.MOST,
    ("tuning.md", r"one that (three) batches\n  in a row brought nothing"): tune.FRUITLESS,
    ("tuning.md", r"(Sixteen) failures on the device"): search.SAME_ERRORS,
    ("gpu.md", r"go to the device (\d+) at a\ntime"): defined("SETS_OF_A_BATCH"),
    ("gpu.md", r"at most (\d+) allocations and a"): defined("SLW_VULKAN_SPARE"),
    ("gpu.md", r"(a\nsixteenth) of the device's memory"): defined("SPARE_SHARE"),
    ("gpu.md", r"through a buffer of (\d+) MB"): defined("STAGING_BYTES") >> 20,
    ("gpu.md", r"`nn.conv3d` of at least (\d+) rows, columns and depth"): ANY_GPU.tile_length,
    ("gpu.md", r"`nn.conv3d` with at least (\d+) channels in a group"): ANY_GPU.tile_length,
    ("gpu.md", r"rows of at least (\d+) elements where"): ANY_GPU.row_length,
    ("gpu.md", r"softmax and norms of at least (\d+) rows"): ANY_GPU.row_count,
    ("gpu.md", r"of at most (\d+) rows and a depth"): ANY_GPU.vector_rows,
    ("gpu.md", r"and a depth of at least (\d+), where"): ANY_GPU.vector_depth,
    ("gpu.md", r"each counted as (eight) of them"): ANY_GPU.global_cost,
    ("gpu.md", r"two more launches of (a million) each"): ANY_GPU.launch_cost // 1_000_000,
    ("tuning.md", r"\((1e-4) of the largest value"): measure.TOLERANCE,
    ("tuning.md", r"(\d+e-\d+) for float16"): measure.TOLERANCES["float16"],
    ("tuning.md", r"(\d+e-\d+) for bfloat16"): measure.TOLERANCES["bfloat16"],
    ("web.md", r"\((\d+) at most\), where"): int(re.search(r"MOST_THREADS = (\d+)", SCRIPT)[1]),
}


@pytest.mark.parametrize(("page", "words"), FOUND, ids=lambda value: value)
def test_a_number_on_a_page_is_that_of_the_code(repository, page, words):
    text = (repository / "docs" / page).read_text(encoding="utf-8")
    (said,) = re.findall(words, text)
    said = " ".join(said.lower().split())
    number = float(WORDS.get(said, said.replace(",", "")))
    assert number == FOUND[page, words]
