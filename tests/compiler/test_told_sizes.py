"""Sizes that values decide: the run sets them when it knows them, and all that speaks of them."""

from dataclasses import replace

import numpy as np
import pytest

from slipway import relay
from slipway.errors import ArtifactError, ExecutionError, LoweringError, TypeInferenceError
from slipway.relay.interpret import interpret
from slipway.runtime import cpu, load_module, opencl
from slipway.runtime.graph.graph_executor import GraphModule, create
from slipway.runtime.graph.graph_format import GraphTables

ROOM = 12


def places(x, positive):
    """The positions of what is positive, with room for all, and their number."""
    mask = relay.cast(positive, "int32")
    positions = relay.where(positive, relay.cumsum(mask, 0), relay.const(0))
    every = relay.arange(0, x.tensor_type.shape[0], 1, "int32")
    room = relay.zeros((x.tensor_type.shape[0] + 1,), "int32")
    found = relay.scatter_elements(room, positions, every, 0)
    return relay.strided_slice(found, [1], [x.tensor_type.shape[0] + 1]), relay.sum(mask)


def finder(n=ROOM, most=ROOM):
    """What is positive in x: places, twice the values, their sum, and ones that no data gives."""
    x = relay.var("x", shape=(n,))
    first, count = places(x, relay.greater(x, relay.const(0.0)))
    size = relay.Dim("found", 0, most)
    where = relay.sized(first, count, size)
    values = relay.take(x, where, mode="fast")
    ones = relay.zeros((2, size)) + relay.const(1.0)  # made before anything is found, as it stands
    fields = [ones, where, values * relay.const(2.0), relay.sum(values)]
    return relay.Function([x], relay.Tuple(fields))


def check(module, x):
    module.run(x=x)
    ones, where, doubled, total = (module.get_output(i).numpy() for i in range(4))
    want = np.flatnonzero(x > 0)
    assert ones.shape == (2, len(want))
    assert (ones == 1).all()
    np.testing.assert_array_equal(where, want)
    np.testing.assert_array_equal(doubled, 2 * x[want])
    np.testing.assert_allclose(total, x[want].sum(), rtol=1e-5, atol=1e-6)


SEVERAL = {"cpu": "llvm", "opencl": "opencl"}


@pytest.mark.parametrize("target", ["llvm", "c", "opencl", SEVERAL])
def test_sizes_follow_the_values(target, tmp_path):
    """On a GPU too, from which the executor reads each number when it is computed."""
    where = cpu() if target in ("llvm", "c") else opencl()
    if not where.exist:
        pytest.skip("no OpenCL device: apt-get install pocl-opencl-icd ocl-icd-libopencl1")
    library = relay.build(finder(), target=target)
    library.export_library(str(tmp_path / "model.tar"))
    module = GraphModule(load_module(str(tmp_path / "model.tar"))["default"](where))
    rng = np.random.default_rng(0)
    for way in range(6):
        x = rng.standard_normal(ROOM, dtype=np.float32)
        check(module, -abs(x) if way == 2 else abs(x) if way == 3 else x)  # none, and all


def test_beside_sizes_of_inputs():
    """What is found in n elements: n changes between runs, and memory stays that of the largest."""
    module = GraphModule(relay.build(finder(relay.Dim("n", 1, ROOM)), "llvm")["default"](cpu()))
    rng = np.random.default_rng(1)
    for n in (ROOM, 1, 7, 2, 12, 5):
        check(module, rng.standard_normal(n, dtype=np.float32))


def test_an_input_of_the_same_shape_changes_no_size():
    """Results keep theirs until the next run, and nothing is computed from sizes anew."""
    module = GraphModule(relay.build(finder(relay.Dim("n", 1, ROOM)), "llvm")["default"](cpu()))
    check(module, np.array([1, -1, 2, 3], "float32"))
    module.set_input("x", np.zeros(4, "float32"))
    assert module.get_output(1).shape == (3,)
    module.set_input("x", np.zeros(5, "float32"))
    assert module.get_output(1).shape == (0,)
    check(module, np.array([1, -1, 2, 3, -2], "float32"))


def test_a_size_out_of_its_range_is_said():
    module = GraphModule(relay.build(finder(most=4), "llvm")["default"](cpu()))
    x = -np.ones(ROOM, np.float32)
    x[:4] = 1
    check(module, x)
    with pytest.raises(ExecutionError, match=r"the size found the value 5, .* for 0 to 4"):
        x[4] = 1
        module.run(x=x)
    x[:2] = -1
    check(module, x)


def test_tables_say_who_tells():
    tables = relay.build(finder(), target="llvm").tables
    (size,) = tables.open_sizes
    assert size.teller is not None
    assert GraphTables.from_json(tables.to_json()).open_sizes == (size,)
    blob = tables.to_binary()
    assert GraphTables.from_binary(blob).open_sizes == (size,)
    assert blob[4] == 3  # a runtime of before refuses it
    other = blob.replace((size.teller + 1).to_bytes(4, "little") + bytes(8) + b"\x0c",
                         (1).to_bytes(4, "little") + bytes(8) + b"\x0c")  # fmt: skip
    assert other != blob
    with pytest.raises(ArtifactError, match="is told by 0, which is no number"):
        GraphTables.from_binary(other)


def test_tables_whose_axes_do_not_fit_what_is_told():
    library = relay.build(finder(), target="llvm")
    axes = [replace(a, formula=(*a.formula, 1, "-")) for a in library.tables.open_dims]
    damaged = replace(library.tables, open_dims=tuple(axes))
    module = create(damaged.to_json(), library.get_lib(), cpu())
    x = -np.ones(ROOM, np.float32)
    with pytest.raises(
        ExecutionError, match="gives a size that the model was not compiled for: its tables"
    ):
        module.run(x=x)


def test_what_is_refused():
    x = relay.var("x", shape=(ROOM,))
    count, other = (
        relay.sum(relay.cast(relay.greater(x, relay.const(c)), "int32")) for c in (0.0, 1.0)
    )
    size = relay.Dim("found", 0, ROOM)
    two = relay.Tuple([relay.sized(x, count, size), relay.sized(x, other, size)])
    with pytest.raises(LoweringError, match="found is that of two values"):
        relay.build(relay.Function([x], two), "llvm")
    with pytest.raises(TypeInferenceError, match="is up to 13, and the axis 0 of the data 12"):
        relay.sized(x, count, relay.Dim("found", 0, 13))
    with pytest.raises(TypeInferenceError, match=r"a relay\.Dim with a name and an upper end"):
        relay.sized(x, count, size * 2)
    with pytest.raises(TypeInferenceError, match=r"is found: it is a relay\.Dim with a name"):
        relay.sized(x, count, "found")
    with pytest.raises(TypeInferenceError, match="is found, which nothing bounds: give it an"):
        relay.sized(x, count, relay.Dim("found", 0))
    with pytest.raises(TypeInferenceError, match="it is one integer"):
        relay.sized(x, x, size)


def a_loop(other=None):
    """Add what is positive, as long as the sum is below nine."""
    state = relay.var("state", shape=(ROOM,))
    size = relay.Dim("positive", 0, ROOM if other is None else other)

    def number(limit):
        return relay.sum(relay.cast(relay.greater(state, relay.const(limit)), "int32"))

    some = relay.sized(relay.sort(state, is_ascend=False), number(0.0), size)
    added = relay.sum(some) * relay.const(0.25) + relay.const(0.5)
    if other is ROOM:
        added = added + relay.sum(relay.sized(state, number(1.0), size))
    before = relay.var("before", shape=(ROOM,))
    going = relay.Function([before], relay.less(relay.sum(before), relay.const(9.0)))
    x = relay.var("x", shape=(ROOM,))
    body = relay.Function([state], relay.Tuple([state + added]))
    return relay.Function([x], relay.while_loop(going, body, [x])[0])


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_sizes_in_loops(target):
    module = GraphModule(relay.build(a_loop(), target)["default"](cpu()))
    for seed in range(4):
        x = np.random.default_rng(seed).uniform(-1, 0.6, ROOM).astype(np.float32)
        module.run(x=x)
        by_reference = interpret(a_loop(), x)
        while x.sum() < 9:
            x = x + np.float32(0.25) * x[x > 0].sum() + np.float32(0.5)
        np.testing.assert_allclose(module.get_output(0).numpy(), x, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(by_reference, x, rtol=1e-5, atol=1e-6)


def test_sizes_in_loops_out_of_their_range():
    module = GraphModule(relay.build(a_loop(4), "llvm")["default"](cpu()))
    with pytest.raises(ExecutionError, match=r"out of the range .* positive in 0\.\.4"):
        module.run(x=np.full(ROOM, 0.1, np.float32))
    with pytest.raises(LoweringError, match="positive is that of two values"):
        relay.build(a_loop(ROOM), "llvm")
