"""``tir.usmp``: buffers with conflicts, and planners that users register."""

import random

import numpy as np
import pytest

import slipway as tvm
from slipway import PoolInfoProperties, WorkspacePoolInfo, relay
from slipway.errors import ArgumentValueError, LoweringError
from slipway.tir.usmp.utils import BufferInfo, PoolAllocation

ALGORITHMS = ("greedy_by_size", "greedy_by_conflicts", "hill_climb")
FAST = WorkspacePoolInfo("fast", [], PoolInfoProperties(size_hint_bytes=60_000))
SLOW = WorkspacePoolInfo("slow", [])


def meet(a, b):
    a.set_conflicts([*a.conflicts, b])
    b.set_conflicts([*b.conflicts, a])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_buffers_that_meet_lie_apart(algorithm):
    """Any graph of conflicts, also one that no intervals of time would give."""
    rng = random.Random(3)
    buffers = [
        BufferInfo(f"b{i}", rng.randrange(1, 40_000), [FAST, SLOW], rng.choice([1, 4, 64]))
        for i in range(40)
    ]
    for _ in range(120):
        meet(*rng.sample(buffers, 2))
    found = tvm.get_global_func(f"tir.usmp.algo.{algorithm}")(buffers, 0)
    assert set(found) == set(buffers)
    ends = {buffer: made.byte_offset + buffer.size_bytes for buffer, made in found.items()}
    for buffer, made in found.items():
        assert made.byte_offset.value % buffer.alignment.value == 0
        assert made.pool_info is SLOW or ends[buffer].value <= 60_000
        for other in buffer.conflicts:
            if found[other].pool_info is made.pool_info:
                apart = ends[other] <= made.byte_offset, ends[buffer] <= found[other].byte_offset
                assert any(map(bool, apart))
    assert {made.pool_info.pool_name for made in found.values()} == {"fast", "slow"}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_equal_buffers_are_placed_by_name(algorithm):
    a, b, c = buffers = [BufferInfo(name, 10, [SLOW]) for name in "abc"]
    meet(a, b), meet(b, c), meet(a, c)
    found = tvm.get_global_func(f"tir.usmp.algo.{algorithm}")(buffers, 0)
    assert [found[buffer].byte_offset for buffer in (c, b, a)] == [0, 10, 20]


def test_what_fits_no_pool_or_is_no_buffer_is_told():
    tiny = WorkspacePoolInfo("tiny", [], PoolInfoProperties(size_hint_bytes=10))
    a, b = buffers = [BufferInfo(name, 10, [tiny]) for name in "ab"]
    meet(a, b)
    for algorithm in ALGORITHMS:
        with pytest.raises(LoweringError, match=r"provided pools exceeded.*tiny 10 B"):
            tvm.get_global_func(f"tir.usmp.algo.{algorithm}")(buffers, 0)
    larger = WorkspacePoolInfo("tiny", [], PoolInfoProperties(size_hint_bytes=20))
    with pytest.raises(ArgumentValueError, match="a name of its own"):
        tvm.get_global_func("tir.usmp.algo.hill_climb")([a, BufferInfo("c", 1, [larger])], 0)
    with pytest.raises(ArgumentValueError, match="at least one pool"):
        BufferInfo("d", 1, [])


def small_model():
    x = relay.var("x", shape=(4, 8))
    y = relay.nn.softmax(relay.nn.dense(x, relay.const(np.ones((16, 8), "float32"))))
    y = relay.nn.softmax(relay.nn.dense(y, relay.const(np.ones((8, 16), "float32"))))
    return tvm.IRModule.from_expr(relay.Function([x], y))


def built(name):
    with tvm.transform.PassContext(
        opt_level=3, config={"tir.usmp.enable": True, "tir.usmp.custom_algorithm": name}
    ):
        executor, crt = relay.backend.Executor("aot"), relay.backend.Runtime("crt")
        return relay.build(small_model(), "c", executor=executor, runtime=crt)


@pytest.fixture
def planner():
    """Return a function that registers a planner, which goes away after the test."""
    names = []

    def register(name, function):
        names.append(f"tir.usmp.algo.{name}")
        tvm.register_func(names[-1], function)

    yield register
    for name in names:
        tvm.runtime.packed_func.remove_global_func(name)


def test_a_registered_planner_places_a_models_tensors(planner):
    requests = []

    def one_after_the_other(buffers, memory_pressure):
        found, offset = {}, 64
        for buffer in buffers:
            found[buffer] = PoolAllocation(buffer.pool_candidates[0], offset)
            offset += -(-buffer.size_bytes // 16) * 16
        requests.append((len(buffers), memory_pressure, offset))
        return found

    planner("in_a_row", one_after_the_other)
    plan = built("in_a_row").program.plan
    count, pressure, end = requests[0]
    assert count == len(plan.blocks) > 1
    assert plan.algorithm == "in_a_row"
    assert min(plan.offsets) == 64
    assert pressure <= plan.size_bytes <= end.value


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda buffers, pool: {}, "gave .* the allocation None"),
        (lambda buffers, pool: {b: PoolAllocation(pool, 0) for b in buffers}, "while both live"),
        (lambda buffers, pool: {b: PoolAllocation(FAST, 0) for b in buffers}, "one of pool_cand"),
    ],
)
def test_a_planner_that_is_wrong_is_told_so(planner, answer, message):
    planner("wrong", lambda buffers, pressure: answer(buffers, buffers[0].pool_candidates[0]))
    with pytest.raises(LoweringError, match=f"'wrong'.*{message}"):
        built("wrong")


def test_a_planner_that_is_not_registered_is_told():
    with pytest.raises(LoweringError, match=r"hill_climp.*Did you mean 'hill_climb'"):
        built("hill_climp")
