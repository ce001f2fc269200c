"""Every option has its effect, or is refused; bounds checks; assertions left out."""

import re
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.errors import ExecutionError, LoweringError
from slipway.ir.interpreter.interpret import run
from slipway.transform.config import CONFIG
from slipway.transform.context import PassContext
from slipway.transform.loop.pipeline import run_pipeline


def gather(guarded=False):
    a = te.placeholder((8,), name="A")
    index = te.placeholder((4,), "int32", name="I")

    def pick(i):
        if not guarded:
            return a[index[i]]
        inside = te.all(index[i] >= 0, index[i] < 8)
        return te.if_then_else(inside, a[index[i]], te.const(-1.0, "float32"))

    b = te.compute((4,), pick, name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.axis[0])
    return s, [a, index, b]


DATA = np.arange(8, dtype="float32")


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_an_index_outside_is_an_error_that_names_it(target):
    with PassContext(config={"tir.instrument_bound_checkers": True}):
        function = tvm.build(*gather(), target, name="gather")["gather"]
    got = tvm.nd.array(np.zeros(4, "float32"))
    function(tvm.nd.array(DATA), tvm.nd.array(np.array([7, 0, 3, 1], "int32")), got)
    np.testing.assert_array_equal(got.numpy(), DATA[[7, 0, 3, 1]])
    for wrong in (8, -1):
        given = tvm.nd.array(np.array([0, wrong, 1, 2], "int32"))
        with pytest.raises(
            Exception, match=r"gather: the index I\[i\] of dimension 0 of A is outside \[0, 8\)"
        ):
            function(tvm.nd.array(DATA), given, got)


def test_an_index_behind_its_own_condition_passes():
    with PassContext(config={"tir.instrument_bound_checkers": True}):
        func = run_pipeline(te.lower(*gather(guarded=True)))
        assert "assert" in str(func)
    got = np.zeros(4, "float32")
    run(func, DATA, np.array([9, 2, -3, 7], "int32"), got)
    np.testing.assert_array_equal(got, [-1, 2, -1, 7])


def test_what_is_proved_is_not_checked():
    a = te.placeholder((8, 9), name="A")
    b = te.compute((9, 8), lambda i, j: a[j, i], name="B")
    s = te.create_schedule(b.op)
    s[b].split(b.op.axis[0], 3)
    with PassContext(config={"tir.instrument_bound_checkers": True}):
        assert "assert" not in str(run_pipeline(te.lower(s, [a, b])))


def test_assertions_can_be_left_out():
    both = {"tir.instrument_bound_checkers": True, "tir.disable_assert": True}
    with PassContext(config={"tir.instrument_bound_checkers": True}):
        func = run_pipeline(te.lower(*gather()))
    with pytest.raises(ExecutionError, match="the index"):
        run(func, DATA, np.full(4, 8, "int32"), np.zeros(4, "float32"))
    with PassContext(config={"tir.disable_assert": True}):
        assert "assert" not in str(run_pipeline(func))
    with PassContext(config=both):  # what the checker adds stays
        assert "assert" in str(run_pipeline(te.lower(*gather())))


def test_noalias_reaches_the_code():
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    assert "noalias" in tvm.build(s, [a, b], "llvm").get_source("raw")
    with PassContext(config={"tir.noalias": False}):
        module = tvm.build(s, [a, b], "llvm")
    assert "ptr noalias" not in module.get_source("raw")


def test_limits_of_automatic_unrolling():
    a = te.placeholder((2, 2, 8), name="A")
    b = te.compute((2, 2, 8), lambda *i: a[i] * 2.0, name="B")
    func = te.lower(te.create_schedule(b.op), [a, b])

    def loops(**options):
        with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 64, **options}}):
            return str(run_pipeline(func)).count("for ")

    assert loops() == 0
    assert loops(auto_max_extent=4) == 4  # the inner loop, once for each step of the others
    assert loops(auto_max_depth=1) == 2
    assert loops(auto_max_depth=2) == 1


@pytest.mark.parametrize("split", [1, 2, 3, 100])
@pytest.mark.parametrize("n", [6, 7])
def test_double_buffers_unrolled(n, split):
    a = te.placeholder((n, 8), name="A")
    b = te.compute((n, 8), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((n, 8), lambda i, j: b[i, j] * 2.0, name="C")
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    s[b].double_buffer()
    with PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": split}}):
        func = run_pipeline(te.lower(s, [a, c]))
    x, y = np.arange(n * 8, dtype="float32").reshape(n, 8), np.zeros((n, 8), "float32")
    run(func, x, y)
    np.testing.assert_array_equal(y, (x + 1) * 2)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"tir.UnrollLop": {}}, r"no config key 'tir.UnrollLop'. Did you mean 'tir.UnrollLoop'"),
        ({"tir.UnrollLoop": {"auto_max_stp": 4}}, r"no option of 'tir.UnrollLoop' called "
         r"'auto_max_stp'. Did you mean 'auto_max_step'"),
        ({"tir.UnrollLoop": 4}, "takes a dict .* got 4"),
        ({"tir.UnrollLoop": {"explicit_unroll": False}}, "accepts only True: loops are always"),
        ({"tir.disable_vectorize": "yes"}, "takes a bool .* got 'yes'"),
        ({"tir.detect_global_barrier": True}, "accepts only False: there is no such pass"),
        ({"relay.ext.ethos-u.options": {"mcpu": "x"}}, "no code generator of this name"),
    ],
)  # fmt: skip
def test_what_has_no_effect_is_refused(config, words):
    with pytest.raises(LoweringError, match=words):
        PassContext(config=config)


def test_the_page_lists_every_key():
    page = (Path(__file__).parents[2] / "docs/tensor_expressions.md").read_text()
    assert set(re.findall(r"\| `((?:tir|relay|te|schedules)\.[^`]+)` \|", page)) == set(CONFIG)
    for name, key in CONFIG.items():
        for inner in key.options or ():
            assert f"`{name}` `{inner}`" in page


def test_every_key_that_is_read_exists_and_the_other_way_round():
    source = Path(tvm.__file__).parent
    text = "\n".join(p.read_text() for p in source.rglob("*.py") if p.name != "config.py")
    for name, key in CONFIG.items():
        either = "either value" in key.meaning or key.only
        assert either or f'"{name}"' in text, f"{name} is accepted, and nothing reads it"
