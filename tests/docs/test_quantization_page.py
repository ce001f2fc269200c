"""The formulas of docs/quantization.md, read from the page, give what the compiler computes."""

import re
from pathlib import Path

import numpy as np

from slipway.relay import quantization as rule
from slipway.relay.ops.qnn.rescale_high import RescaleHighAttrs, _high_reference

PAGE = (Path(__file__).parents[2] / "docs" / "quantization.md").read_text(encoding="utf-8")
RNG = np.random.default_rng(20)
SUMS = [0, 1, -1, 2**31 - 1, -(2**31), *RNG.integers(-(2**31), 2**31, 200).tolist()]
FACTORS = [0.5, 0.25, 0.75, 1.0, 3.7, *np.exp2(RNG.uniform(-24, 3, 60)).tolist()]


def formula(words):
    """Return the Python between backticks, or in a block of its own, that matches."""
    spans = re.findall(r"`([^`\n]+)`", PAGE) + re.findall(r"^ {4}(\S.*)$", PAGE, re.MULTILINE)
    (found,) = {span for span in spans if re.search(words, span)}
    return found.partition("= ")[2] if re.match(r"\w+ = ", found) else found


def numbers(factor):
    m, s = rule.quantize_multiplier(factor)
    return {"m": m, "s": s, "left": max(s, 0), "right": max(-s, 0)}


def wrapped(value):
    return (value + 2**31) % 2**32 - 2**31


def test_int32_sums_take_the_rule_of_the_page():
    high, divided = formula(r"2\*\*30\) >> 31"), formula(r"mask >> 1")
    for factor in FACTORS:
        known = numbers(factor)
        known["mask"] = 2 ** known["right"] - 1
        made = []
        for total in SUMS:
            known["x"] = wrapped(total << known["left"])
            known["h"] = eval(high, {}, known)
            made.append(eval(divided, {}, known))
        found = rule.multiply_by_quantized_multiplier(
            np.array(SUMS, np.int32), known["m"], known["s"]
        )
        assert found.tolist() == made, factor


def test_int64_sums_take_the_rule_of_the_page():
    narrow, scaled = formula(r"^m16 = "), formula(r"sum \* m16")
    (largest,) = set(re.findall(r"or (0x\w+) if m >= 0x7FFF0000", PAGE))
    for factor in [*FACTORS, (2**31 - 1) / 2**31]:
        known = numbers(factor)
        known["m16"] = eval(narrow.partition(",")[0], {}, known)
        if known["m"] >= 0x7FFF0000:
            known["m16"] = int(largest, 16)
        sums = [total for total in SUMS if abs(total * factor) < 2**31]
        made = [eval(scaled, {"sum": total}, known) for total in sums]
        found = rule.multiply_by_quantized_multiplier(
            np.array(sums, np.int64), known["m"], known["s"]
        )
        assert found.tolist() == made, factor


def test_one_rounding_in_32_bits_is_that_in_64():
    once, narrow = formula(r"2\*\*\(30 - s\)\) >> \(31 - s\)"), formula(r"T - 33")
    for factor in (f for f in FACTORS if f < 0.2):
        known = numbers(factor)
        whole = [eval(once, {"sum": total}, known) for total in SUMS]
        known["T"] = 31 - known["s"]
        assert known["T"] > 32
        assert [eval(narrow, {"sum": total}, known) for total in SUMS] == whole
        found = rule.multiply_with_one_rounding(np.array(SUMS, np.int32), known["m"], known["s"])
        assert found.tolist() == whole
        shift = known["T"] - 32
        data = np.array(SUMS, np.int32)
        operands = (data, np.int32(known["m"]), np.int32(2 ** (shift - 1)), np.int32(shift))
        assert _high_reference(RescaleHighAttrs(), *operands).tolist() == whole


def test_two_roundings_in_32_bits_are_those_of_the_rule():
    short = formula(r"sum << 2")
    sums = [total for total in SUMS if abs(total) < 2**29] + [d - 20 for d in range(41)]
    sums += [2**29 - 1, 1 - 2**29, *RNG.integers(-(2**29) + 1, 2**29, 200).tolist()]
    for factor in (f for f in FACTORS if 2**-29 < f < 0.5):
        known = numbers(factor)
        made = [eval(short, {"sum": total}, known) for total in sums]
        data = np.array(sums, np.int32)
        found = rule.multiply_by_quantized_multiplier(data, known["m"], known["s"])
        assert found.tolist() == made, factor
        operands = (data << 2, known["m"], 2 ** known["right"] + 1, known["right"] + 1)
        high = _high_reference(RescaleHighAttrs(2), *operands)
        assert high.tolist() == made


def test_factors_become_multipliers_as_the_page_says():
    for factor in FACTORS:
        m, s = rule.quantize_multiplier(factor)
        assert 0 <= m < 2**31
        assert abs(factor - m * 2.0 ** (s - 31)) <= 2.0 ** (s - 32)
    assert rule.quantize_multiplier(1 - 2**-40) == (2**30, 1)  # halved, and s grows by one
    assert rule.quantize_multiplier(2.0**-32)[0] == 2**30
    assert rule.quantize_multiplier(2.0**-33) == (0, 0)
