"""Templates without a log, and the operations that a computation has."""

import pytest

from slipway import autotvm, te, tir
from slipway.autotvm.task.space import OtherOptionEntity
from slipway.autotvm.task.task import compute_flop
from slipway.errors import TargetError, TuningError


@autotvm.template("test/fallback")
def rows(limits, seen):
    a = te.placeholder((24, 36), name="A")
    c = te.compute((24, 36), lambda i, j: a[i, j] + 1.0, name="C")
    s = te.create_schedule(c.op)
    cfg = autotvm.get_config()
    cfg.define_split("tile", s[c].op.axis[1], num_outputs=len(limits))
    cfg.define_knob("unroll", [False, True])
    if cfg.is_fallback:
        cfg.fallback_split("tile", limits)
        cfg["unroll"] = OtherOptionEntity(True)
    seen += [cfg["tile"].size, cfg["unroll"].val, cfg.is_fallback]
    return s, [a, c]


@pytest.mark.parametrize(
    ("limits", "chosen"),
    [([-1, 8], [6, 6]), ([-1, -1], [1, 36]), ([-1, 4, 5], [3, 3, 4]), ([2, 18], [2, 18])],
)
def test_a_template_chooses_itself_where_no_log_does(limits, chosen):
    seen = []
    rows(limits, seen)
    assert seen == [chosen, True, True]


def test_what_a_template_cannot_choose():
    with pytest.raises(TuningError, match="no split of the space has a part 0 of at most 2"):
        rows([2, 6], [])
    config = autotvm.FallbackConfigEntity()
    config.define_knob("unroll", [False, True])
    with pytest.raises(TuningError, match="no split into 2"):
        config.fallback_split("unroll", [-1, 8])


def test_a_task_has_its_own_space():
    task = autotvm.task.create("test/fallback", args=([-1, 8], []), target="llvm")
    assert not task.config_space.is_fallback
    assert task.flop == 24 * 36


def test_operations_are_counted_but_not_those_of_indices():
    a, b = te.placeholder((64, 32)), te.placeholder((16, 32))
    k = te.reduce_axis((0, 32))
    packed = te.compute((16, 32, 4), lambda i, j, n: a[i * 4 + n][j])
    c = te.compute((16, 16, 4), lambda i, j, n: te.sum(packed[i, k, n] * b[j, k], axis=k))
    flat = te.compute((64, 16), lambda i, j: c[tir.indexdiv(i, 4)][j][tir.indexmod(i, 4)])
    assert compute_flop(te.create_schedule(flat.op)) == 2 * 64 * 16 * 32
    moved = te.compute((64, 32), lambda i, j: a[i][j])
    with pytest.raises(RuntimeError, match="add_flop"):
        compute_flop(te.create_schedule(moved.op))


def test_outside_of_a_template_each_knob_has_its_first_choice():
    """As schedules of classic scripts ask, which share a function with a template."""
    a = te.placeholder((24,), name="a")
    out = te.compute((24,), lambda i: a[i] + 1.0, name="out")
    s = te.create_schedule(out.op)
    config = autotvm.get_config()
    config.define_split("tile", s[out].op.axis[0], num_outputs=3)
    config.define_knob("unroll", [0, 16])
    assert len(config["tile"].apply(s, out, s[out].op.axis[0])) == 3
    assert config["unroll"].val == 0
    assert autotvm.get_config() is not config


def test_records_that_others_have_made(tmp_path):
    """Nothing is fetched; records of files are used."""
    with autotvm.tophub.context("cuda"):
        pass
    empty = tmp_path / "records.log"
    empty.write_text("")
    with autotvm.tophub.context("llvm", extra_files=[empty]) as found:
        assert found.query("llvm", ("no_such_template", 1)) is None
    with pytest.raises(TargetError, match="unknown target kind"):
        autotvm.tophub.context("cudaa")
