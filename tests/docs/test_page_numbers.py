"""Numbers that pages give of the code: limits and thresholds are those that the code has."""

import re
from pathlib import Path

import pytest

import slipway
from slipway.codegen import cache
from slipway.codegen.llvm import worker, workers
from slipway.compiler.quantize import histogram
from slipway.tuning import experience, measure

SCRIPT = (Path(slipway.__file__).parent / "web" / "slipway.mjs").read_text(encoding="utf-8")
FOUND = {
    ("codegen.md", r"takes more than (\d+) s\b"): workers.LIMIT_S,
    ("codegen.md", r"after a (minute) without work"): worker.IDLE_S / 60,
    ("codegen.md", r"keeps to about (\d+) MB"): cache.LIMIT_BYTES >> 20,
    ("codegen.md", r"in n of (\d+) MB cases"): cache.SWEEP_BYTES >> 20,
    ("quantization.md", r"at least ([\d,]+) elements"): (
        histogram.MIN_PER_BIN * histogram.MIN_BINS
    ),
    ("tuning.md", r"From (\d+) trials on"): experience.ENOUGH,
    ("tuning.md", r"\((1e-4) of the largest value"): measure.TOLERANCE,
    ("tuning.md", r"(\d+e-\d+) for float16"): measure.TOLERANCES["float16"],
    ("tuning.md", r"(\d+e-\d+) for bfloat16"): measure.TOLERANCES["bfloat16"],
    ("web.md", r"\((\d+) at most\), where"): int(re.search(r"MOST_THREADS = (\d+)", SCRIPT)[1]),
}


@pytest.mark.parametrize(("page", "words"), FOUND, ids=lambda value: value)
def test_a_number_on_a_page_is_that_of_the_code(repository, page, words):
    text = (repository / "docs" / page).read_text(encoding="utf-8")
    (said,) = re.findall(words, text)
    number = 1.0 if said == "minute" else float(said.replace(",", ""))
    assert number == FOUND[page, words]
