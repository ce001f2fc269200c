"""Parts of a value that C reads more than once get names, where the text would be long."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.codegen.c.shared_parts import named_parts
from slipway.ir import expr as E


def inlined(stages, lanes=1):
    """Return a function of stages that each read the one before twice, all inlined."""
    data = te.placeholder((16,), name="A")
    last = data
    for number in range(stages):
        last = te.compute(
            (16,), lambda i, x=last: x[i] * te.const(0.5) + te.abs(x[i]), name=f"s{number}"
        )
    s = te.create_schedule(last.op)
    for stage in s.stages[1:-1]:
        stage.compute_inline()
    if lanes > 1:
        s[last].vectorize(s[last].split(last.op.axis[0], lanes)[1])
    return tvm.build(s, [data, last], "c", name="f")


def test_the_text_grows_by_as_much_with_each_stage():
    sizes = [len(inlined(stages).get_source()) for stages in (10, 20, 30, 40)]
    steps = np.diff(sizes)
    assert max(steps) < 1.2 * min(steps) < 5000


@pytest.mark.parametrize("lanes", [1, 4])
def test_the_values_are_those_of_the_stages(lanes):
    given = np.linspace(-1, 1, 16, dtype="float32")
    expected = given
    for _ in range(12):
        expected = expected * np.float32(0.5) + np.abs(expected)
    out = tvm.nd.array(np.zeros(16, "float32"))
    inlined(12, lanes)(tvm.nd.array(given), out)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5)


def test_short_values_and_what_a_condition_guards_stay():
    x = E.Var("x", "float32")
    y = x
    for _ in range(4):
        y = y * y
    assert named_parts(y) is y
    guarded = x
    for _ in range(12):
        guarded = E.Call("float32", "if_then_else", (x > 0.0, guarded * guarded, x))
    assert named_parts(guarded) is guarded


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_hash_of_many_rounds_takes_no_longer_than_its_steps(target):
    """Each round reads the one before three times: expanded it would be 3**40 nodes."""

    def mixed(x):
        for step in range(40):
            x = (x << te.const(step % 31 + 1, "uint32")) ^ (x >> te.const(3, "uint32")) + x
        return x

    data = te.placeholder((16,), "uint32", name="A")
    out = te.compute((16,), lambda i: mixed(data[i]), name="B")
    kept = te.compute((16,), lambda i: out[i] + te.const(1, "uint32"), name="C")
    made = tvm.build(te.create_schedule(kept.op), [data, kept], target)
    given = np.arange(16, dtype="uint32") * 2654435761
    want = given.astype("uint32")
    for step in range(40):
        want = (want << np.uint32(step % 31 + 1)) ^ ((want >> np.uint32(3)) + want)
    found = tvm.nd.array(np.zeros(16, "uint32"))
    made(tvm.nd.array(given.astype("uint32")), found)
    np.testing.assert_array_equal(found.numpy(), want + 1)
