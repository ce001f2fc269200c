"""The work of compiling grows with the model, counted in calls of functions: no clock decides."""

import random
import sys
from pathlib import Path

import pytest

from slipway.backends.backend import compile_target
from slipway.compiler.graph import plan_storage
from slipway.compiler.memory_plan.block import Block, align_up, lower_bound
from slipway.compiler.relay_build import kernel_graph
from slipway.transform.context import PassContext

sys.path.append(str(Path(__file__).parents[2]))
from benchmarks.compile_chains import chain


def calls_of(function):
    """Run a function; return how many functions, Python's and C's, were called."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def work(kind, layers):
    module, target = chain(kind, layers), compile_target("llvm")
    with PassContext(opt_level=3):
        return calls_of(lambda: plan_storage(kernel_graph(module, target)))


@pytest.mark.parametrize("kind", ["conv", "dense", "residual", "split", "norm", "attention"])
def test_four_times_the_layers_are_four_times_the_work(kind):
    work(kind, 2)  # what is loaded on first use
    assert work(kind, 64) <= 4.4 * work(kind, 16)


def test_the_lower_bound_is_the_fullest_step():
    draw = random.Random(0)
    for _ in range(200):
        blocks = []
        for number in range(draw.randrange(1, 12)):
            first = draw.randrange(8)
            size, last = draw.randrange(1, 300), first + draw.randrange(6)
            blocks.append(Block(str(number), size, first, last))
        wanted = 0
        for step in range(14):
            alive = [b.size_bytes for b in blocks if b.first <= step <= b.last]
            if alive:
                slack = max(align_up(size, 64) - size for size in alive)
                wanted = max(wanted, sum(align_up(size, 64) for size in alive) - slack, *alive)
        assert lower_bound(blocks) == wanted
