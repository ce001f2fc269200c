"""The model of the matrix unit: sums against exact arithmetic, and what it refuses."""

import numpy as np
import pytest

from slipway.errors import ExecutionError
from slipway.ir.instructions.tiles import INSTRUCTIONS
from slipway.ir.interpreter.tiles import TileUnit

RNG = np.random.default_rng(0)


def unit(rows, words, columns=16):
    made = TileUnit()
    shapes = [(rows, 4 * columns), (rows, 4 * words), (words, 4 * columns), *[(0, 0)] * 5]
    made.config(*(n for shape in shapes for n in shape))
    return made


def packed(b, depth):
    """(k, n) as words of `depth` along k."""
    return b.reshape(-1, depth, b.shape[1]).transpose(0, 2, 1).copy()


@pytest.mark.parametrize("name", ["x86.amx.u8s8", "x86.amx.s8s8"])
@pytest.mark.parametrize(("rows", "words", "columns"), [(16, 16, 16), (7, 3, 5), (1, 1, 1)])
def test_products_of_bytes_are_exact_and_wrap(name, rows, words, columns):
    entry = INSTRUCTIONS[name]
    bounds = np.iinfo(entry.a_dtype)
    a = RNG.integers(bounds.min, bounds.max + 1, (rows, 4 * words)).astype(entry.a_dtype)
    b = RNG.integers(-128, 128, (4 * words, columns)).astype("int8")
    c = RNG.integers(-(1 << 31), 1 << 31, (rows, columns)).astype("int32")
    got = np.zeros((rows, columns + 3), "int32")
    own = unit(rows, words, columns)
    own.load(0, c.ravel(), columns)
    own.load(1, a.ravel(), 4 * words)
    own.load(2, packed(b, 4).ravel(), 4 * columns)
    own.dot(entry, 0, 1, 2)
    own.store(0, got.ravel(), columns + 3)
    want = c.astype("int64") + a.astype("int64") @ b.astype("int64")
    np.testing.assert_array_equal(got[:, :columns], want.astype("int32"))
    assert not got[:, columns:].any()


def test_pairs_of_bfloat16_against_float64():
    values = RNG.standard_normal((2, 16, 32)).astype("float32")
    a, b = (values.view("uint32") >> 16).astype("uint16")
    wide = [(x.astype("uint32") << 16).view("float32").astype("float64") for x in (a, b)]
    own, got = unit(16, 16), np.zeros((16, 16), "float32")
    own.load(1, a.ravel(), 32)
    own.load(2, packed(b.T, 2).ravel(), 32)
    own.dot(INSTRUCTIONS["x86.amx.bf16"], 0, 1, 2)
    own.store(0, got.ravel(), 16)
    np.testing.assert_allclose(got, wide[0] @ wide[1].T, atol=1e-5)


def test_denormal_numbers_count_as_zero():
    own, got = unit(1, 1, 1), np.ones((1, 1), "float32")
    smallest = np.array([0x0040, 0], "uint16")  # 5.9e-39
    own.load(1, smallest, 2)
    own.load(2, np.array([0x7F00, 0], "uint16"), 2)
    own.dot(INSTRUCTIONS["x86.amx.bf16"], 0, 1, 2)
    own.store(0, got.ravel(), 1)
    assert got[0, 0] == 0


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda u: TileUnit().zero(0), "before any tile_config"),
        (lambda u: u.zero(4), "no rows for it"),
        (lambda u: u.config(17, 64, *[0] * 14), "17 rows of 64 bytes"),
        (lambda u: u.config(16, 64), "8 tiles, not 1"),
        (lambda u: u.dot(INSTRUCTIONS["x86.amx.s8s8"], 0, 2, 1), "do not multiply"),
        (lambda u: u.dot(INSTRUCTIONS["x86.amx.s8s8"], 0, 1, 1), "three different tiles"),
        (lambda u: u.load(1, np.zeros(100, "int8"), 64), "100 elements"),
    ],
)
def test_what_the_processor_would_end_the_process_for(use, message):
    with pytest.raises(ExecutionError, match=message):
        use(unit(4, 3))
