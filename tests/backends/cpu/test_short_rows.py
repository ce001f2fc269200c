"""Rows of fewer elements than a vector has: narrower vectors, where fused rows would be gathers."""

import re

import numpy as np
import pytest
from kernel_check import TARGETS, run, var

from slipway import IRModule, relay
from slipway.tuning.build import kernel_job
from slipway.tuning.space import candidate_of
from slipway.tuning.task import extract_tasks

A72 = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize("row", [2, 3, 4, 5, 7, 8, 13, 15])
def test_numbers(target, row):
    x, y = var("x", 5, 6, 4, row), var("y", 1, 6, row)
    shifted = relay.strided_slice(relay.transpose(x, (2, 0, 1, 3)), [0, 1, 0, 0], [4, 5, 6, row])
    run(relay.nn.relu(shifted) + y, target)
    run(relay.strided_slice(x, [0, 0, 0, 1], [5, 6, 4, row]), target)
    run(relay.exp(relay.transpose(x, (1, 0, 2, 3))), target)
    run(relay.transpose(var("z", row, 9, 7, 5), (2, 3, 1, 0)) + var("w", row), target)
    run(relay.broadcast_to(relay.expand_dims(x, 3), (5, 6, 4, 3, row)), target)


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize("row", [2, 5, 11, 20, 40])
def test_rows_before_axes_of_one(target, row):
    """What lies along memory is an axis before the last."""
    x, y = var("x", 5, 6, 4, row, 1), var("y", 1, 6, row, 1)
    run(relay.nn.relu(relay.transpose(x, (2, 0, 1, 3, 4))) + y, target)
    run(relay.strided_slice(x, [0, 0, 0, 1, 0], [5, 6, 4, row, 1]), target)
    run(relay.exp(relay.transpose(x, (3, 1, 0, 2, 4))), target)
    run(x + var("z", 5, 1, 1, row, 1), target)
    run(relay.reverse(x, 3), target)
    run(relay.concatenate([x, x], 3), target)
    run(relay.sum(var("w", 1, 1, row, 1), axis=[1]) * var("v", 1, row, 1), target)


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize("rows", [(2, 2), (7, 3), (3, 5), (5, 6), (3, 1, 7)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_rows_of_several_axes(target, rows, dtype):
    """Axes that each read has one after the other are one row, in whatever type."""
    x = relay.var("x", shape=(6, 11, *rows), dtype=dtype)
    run(relay.take(x, relay.var("i", shape=(7,), dtype="int32"), axis=1), target)
    one = relay.var("y", shape=(11, *[1 for _ in rows]), dtype=dtype)
    run(relay.maximum(x, one), target)
    run(relay.transpose(x, (1, 0, *range(2, 2 + len(rows)))), target)


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize("row", [3, 5, 13, 21, 50])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
def test_rows_that_begin_again_or_run_backwards(target, row, dtype):
    x = relay.var("x", shape=(60, row), dtype=dtype)
    run(relay.tile(x, (1, 2)), target)
    run(relay.tile(x, (1, 3)), target)
    run(relay.repeat(x, 3, 1), target)
    run(relay.reverse(x, 1), target)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("row", [5, 13, 21, 30])
def test_rows_that_begin_again_are_shuffled(row, dtype):
    """No lane divides to find its place: vectors are rows."""
    x = relay.var("x", shape=(6400, row), dtype=dtype)
    code = code_of(relay.tile(x, (1, 2)), "llvm -mcpu=znver4")
    assert not re.search(r"v(gather|pmuludq|pmuldq|pmulhuw|pmullw|pmulld)", code)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
@pytest.mark.parametrize("row", [21, 50])
def test_rows_of_narrow_types_are_turned_in_registers(row, dtype):
    x = relay.var("x", shape=(6400, row), dtype=dtype)
    code = code_of(relay.reverse(x, 1), "llvm -mcpu=znver4")
    assert not re.search(r"v(gather|pinsr|pextr)", code)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
def test_what_is_broadcast_over_batches_is_read_as_it_lies(dtype):
    """Vectors that are longer than the rows find their places without a division."""
    x = relay.var("x", shape=(16, 144, 6, 5), dtype=dtype)
    y = relay.var("y", shape=(144, 6, 5), dtype=dtype)
    code = code_of(relay.add(x, y), "llvm -mcpu=znver4")
    assert not re.search(r"v(gather|scatter|pinsr|pextr|pmuludq|pmulhuw)", code)


def test_gathered_rows_of_half_vectors_are_copied():
    x = relay.var("x", shape=(30, 121, 7, 3), dtype="float16")
    index = relay.const(np.arange(84, dtype="int32"))
    code = code_of(relay.take(x, index, axis=1), "llvm -mcpu=znver4")
    assert not re.search(r"v(gather|pinsr|pextr)", code)


def code_of(body, target):
    library = relay.build(IRModule.from_expr(body), target=target)
    return library.get_lib().get_source("asm")


@pytest.mark.parametrize(
    ("target", "single"),
    [
        ("llvm -mcpu=skylake-avx512", r"v(insertps|movss|pinsrd|gather)"),
        ("llvm -mcpu=haswell", r"v(insertps|movss|pinsrd|gather)"),
        (A72, r"\tld1\t\{ ?v\d+\.s"),
    ],
)
@pytest.mark.parametrize(
    "body",
    [
        relay.transpose(var("x", 4, 9, 17, 7), (2, 0, 1, 3)),
        relay.strided_slice(var("x", 4, 64, 31), [0, 0, 3], [4, 64, 10]),
        relay.broadcast_to(var("x", 64, 1, 7), (64, 9, 7)),
        relay.transpose(var("x", 30, 40, 7, 1), (1, 0, 2, 3)),
        relay.broadcast_to(var("x", 64, 1, 7, 1, 1), (64, 9, 7, 1, 1)),
        relay.take(
            var("x", 20, 60, 7, 1), relay.const(np.arange(40, dtype="int64")), 1, mode="fast"
        ),
    ],
)
def test_no_element_is_loaded_alone(body, target, single):
    assert not re.search(single, code_of(body, target))


@pytest.mark.parametrize("cpu", ["haswell", "skylake-avx512"])
def test_what_lies_across_a_short_row_takes_no_divisions(cpu):
    code = code_of(relay.transpose(var("x", 3, 65, 33, 5), (1, 3, 2, 0)), f"llvm -mcpu={cpu}")
    assert not re.search(r"vdivp|vpmuludq|vpmulhuw", code)


@pytest.mark.parametrize("step", [2, 3, 4])
def test_what_lies_a_few_elements_apart_is_loaded_with_what_lies_between(step):
    """As space_to_depth reads rows that are no longer than a vector."""
    x = var("x", 7, 10, 11 * step)
    parts = relay.reshape(x, (7, 10, 11, step))
    body = relay.reshape(relay.transpose(parts, (3, 0, 1, 2)), (step * 7, 10, 11))
    for target in TARGETS:
        run(body, target)
    code = code_of(body, "llvm -mcpu=skylake-avx512")
    assert not re.search(r"v(insertps|movss|pinsrd|gather)", code)
    assert re.search(r"v(shufps|permt2ps|permi2ps|blendps|permps|shufpd|permpd|unpck)", code)


def test_rows_behind_one_another_are_one():
    code = code_of(var("x", 40, 64, 7) + var("y", 64, 7), "llvm -mcpu=skylake-avx512")
    assert "zmm" in code
    assert "ymm" not in code


@pytest.mark.parametrize("parts", [(64, 32, 64), (33, 5)])
def test_joined_blocks_of_short_rows_are_copied_in_vectors(parts):
    """Whether a step lies in a part is asked of the steps of both loops, not of their quotient."""
    joined = relay.concatenate([var(f"x{n}", 4, k, 13) for n, k in enumerate(parts)], 1)
    target = "llvm -mcpu=skylake-avx512"
    assert not re.search(r"v(pmuludq|gather|scatter)", code_of(joined, target))
    run(joined, target)
    run(relay.nn.pad(var("x", 4, 9, 13), ((0, 0), (2, 3), (0, 0))), target)


def test_rows_of_a_task_that_end_within_a_vector_are_copied_without_a_loop():
    """A product of nine columns: LLVM unrolls the copy of 25 rows by itself, of 30 it does not."""
    weight = relay.const(np.ones((9, 20), "float32"))
    module = IRModule.from_expr(relay.nn.dense(var("x", 900, 20), weight))
    (task,) = extract_tasks(module, "llvm -mcpu=skylake-avx512")
    candidate = candidate_of("dense_pack.cut", {"rows": 30, "vectors": 1})
    assert task.space.has(candidate)
    loops = str(kernel_job(task, [candidate]).lowered(candidate, "main"))
    assert loops.count(" in range(") == 2  # the tasks, and the steps of a product


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_parts_of_rows_that_were_fused_are_copied_in_vectors(dtype):
    """A vector of 32 lies in one of two parts of 8 x 16: 2 i + j // 16 < 8 is asked as a sum."""
    x, y = (relay.var(name, shape=(33, 2, 64, 8, 16), dtype=dtype) for name in "xy")
    code = code_of(relay.concatenate([x, y], 3), "llvm -mcpu=znver4")
    stores = re.findall(r"vmov(?:up[sd]|dq[au]\d*)\t%zmm\d+, ", code)
    assert stores  # whether each part has a loop or both share one is LLVM's business
