"""What templates define: splits, orders and annotations of axes, before there is a schedule."""

import math

import pytest

import slipway as tvm
from slipway import autotvm, te
from slipway.autotvm.space import (
    AnnotateEntity,
    ConfigEntity,
    FallbackConfigEntity,
    ReorderEntity,
    SplitEntity,
)
from slipway.autotvm.task.space import ConfigSpace, VirtualAxis, get_factors, get_pow2s
from slipway.errors import TuningError


def entities(space, name):
    return [e.plain for e in space.space_map[name]]


def test_a_knob_stands_for_the_axes_that_it_makes():
    """As templates order the parts of splits before anything is computed."""
    cfg = ConfigSpace()
    n, co, k = cfg.axis(2), cfg.axis(24), cfg.reduce_axis(5)
    co, vc = cfg.define_split("tile_co", co, num_outputs=2)
    order = cfg.define_reorder(
        "order", [n, co, k, vc], policy="candidate", candidate=[[n, co, k, vc], [n, co, vc, k]]
    )
    assert len(order) == 4
    assert entities(cfg, "order") == [[0, 1, 2, 3], [0, 1, 3, 2]]
    # Lengths that are equal are other axes.
    y, x = cfg.axis(7), cfg.axis(7)
    cfg.define_reorder("same", [y, x], "candidate", candidate=[[x, y]])
    assert entities(cfg, "same") == [[1, 0]]


@pytest.mark.parametrize(
    ("policy", "options", "first", "count"),
    [
        ("factors", {}, [-1, 1], 4),
        ("power2", {}, [-1, 1], 4),
        ("verbose", {}, [-1, 1], 6),
        ("verbose", {"no_tail": True}, [-1, 1], 4),
        ("verbose", {"max_factor": 4}, [-1, 1], 3),
        ("factors", {"filter": lambda e: e.size[-1] % 2 == 0}, [-1, 2], 2),
        ("candidate", {"candidate": [[2, 5], [5, 2]]}, [2, 5], 2),
    ],
)
def test_splits(policy, options, first, count):
    cfg = ConfigSpace()
    cfg.define_split("tile", 10, policy, num_outputs=2, **options)
    assert entities(cfg, "tile")[0] == first
    assert len(cfg.space_map["tile"]) == count


def test_splits_are_numbered_as_in_classic_logs():
    """The innermost length varies slowest."""
    cfg = ConfigSpace()
    cfg.define_split("tile", cfg.axis(6), num_outputs=3)
    sizes = entities(cfg, "tile")
    assert sizes[:5] == [[-1, 1, 1], [-1, 2, 1], [-1, 3, 1], [-1, 6, 1], [-1, 1, 2]]
    assert all(6 % math.prod(size[1:]) == 0 for size in sizes)
    cfg.define_split("large", cfg.axis(1 << 25), num_outputs=4)
    assert len(cfg.space_map["large"]) == math.comb(28, 3)


def test_orders():
    cfg = ConfigSpace()
    axes = [cfg.axis(2) for _ in range(4)]
    a, b, c, d = axes
    cfg.define_reorder("some", axes, "interval_all", interval=(1, 3))
    assert entities(cfg, "some") == [[0, 1, 2, 3], [0, 2, 1, 3]]
    cfg.define_reorder("chains", axes, "interleave", spatial=[[a, b]], reduce=[[c, d]])
    assert entities(cfg, "chains") == [[0, 2, 1, 3]]
    cfg.define_reorder("threads", axes, "interleave_cuda", spatial=[[a, b]], reduce=[[c, d]])
    assert entities(cfg, "threads") == [[0, 2, 3, 1]]
    cfg.define_reorder("all", axes[:3], "all")
    assert len(cfg.space_map["all"]) == 6


def test_annotations():
    cfg = ConfigSpace()
    axes = [cfg.axis(2) for _ in range(2)]
    cfg.define_annotate("both", axes, "try_unroll_vec")
    assert ["vec", "vec"] not in entities(cfg, "both")
    assert len(cfg.space_map["both"]) == 8
    cfg.define_annotate("threads", [*axes, *axes, axes[0]], "bind_gpu")
    assert entities(cfg, "threads") == [
        ["fuse", "blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"]
    ]
    cfg.define_annotate("virtual", [*axes, axes[0]], "bind_gpu_virtual")
    assert entities(cfg, "virtual") == [["blockIdx.x", "vthread", "threadIdx.x"]]
    cfg.define_annotate("place", [*axes, axes[0]], "locate_cache", num_anchor=2)
    assert entities(cfg, "place") == [[0, 1], [0, 2], [1, 2]]


def scheduled():
    a = te.placeholder((8, 12), name="a")
    out = te.compute((8, 12), lambda i, j: a[i, j] + 1.0, name="out")
    return te.create_schedule(out.op), a, out


def test_axes_are_bound_to_threads_and_fused():
    s, a, out = scheduled()
    y, x = s[out].op.axis
    yo, yi = s[out].split(y, 4)
    AnnotateEntity(["fuse", "blockIdx.x", "threadIdx.x"]).apply(s, out, [yo, yi, x])
    text = str(tvm.lower(s, [a, out], simple_mode=True))
    assert "blockIdx.x" in text
    assert "threadIdx.x" in text


def test_a_cache_is_placed():
    s, a, out = scheduled()
    cache = s.cache_write(out, "global")
    y, x = s[out].op.axis
    AnnotateEntity([0]).apply(s, out, [y, x], source=[[cache]])
    assert "out.global" in str(tvm.lower(s, [a, out], simple_mode=True)).split("out[")[0]


def test_a_configuration_that_a_template_refuses_is_not_compiled():
    @autotvm.template("test/refused")
    def refused():
        s, a, out = scheduled()
        cfg = autotvm.get_config()
        y, x = s[out].op.axis
        cfg.define_annotate("unroll", [y, x], "try_unroll")
        cfg["unroll"].apply(s, out, [y, x], axis_lens=[8, 12], max_unroll=8, cfg=cfg)
        return s, [a, out]

    task = autotvm.task.create("test/refused", (), "llvm")
    with pytest.raises(ValueError, match=r"refuses .*'none', 'unroll'.*an axis of 12 is unrolled"):
        task.scheduled(task.config_space.candidate(1))
    seen = []
    tuner = autotvm.tuner.GridSearchTuner(task)
    option = autotvm.measure_option("local", autotvm.LocalRunner(number=1))
    tuner.tune(4, option, callbacks=[lambda _, i, r: seen.extend(zip(i, r, strict=True))])
    assert {i.config.index: r.error_no for i, r in seen} == {0: 0, 1: 2, 2: 0, 3: 2}


def test_knobs_that_do_not_go_together(tmp_path):
    @autotvm.template("test/filtered")
    def filtered(n):
        a = te.placeholder((n, n), name="a")
        out = te.compute((n, n), lambda i, j: a[i, j] + 1.0, name="out")
        s = te.create_schedule(out.op)
        cfg = autotvm.get_config()
        y, x = s[out].op.axis
        cfg.define_split("y", y, num_outputs=2)
        cfg.define_split("x", x, num_outputs=2)
        cfg.multi_filter(filter=lambda e: 4 <= e["y"].size[1] * e["x"].size[1] <= 8)
        yo, yi = cfg["y"].apply(s, out, y)
        xo, xi = cfg["x"].apply(s, out, x)
        s[out].reorder(yo, xo, yi, xi)
        return s, [a, out]

    space = autotvm.task.create("test/filtered", (16,), "llvm").config_space
    assert (len(space), space.range_length, space.dims) == (7, 25, [5, 5])
    valid = [i for i in range(25) if space.is_index_valid(i)]
    assert {space.get_rand_index() for _ in range(200)} == set(valid)
    assert [space.get_next_index(valid[0]), space.get_next_index(valid[-1])] == [valid[1], None]
    assert space.get_next_index(valid[3], -2) == valid[1]
    assert space.subrange_length(0, 25) == 7
    assert sorted(space.sample_ints(7)) == valid
    assert space.random_walk(valid[0]) in valid[1:]
    assert space.knob2point(space.point2knob(13)) == 13
    with pytest.raises(IndexError, match="multi_filter"):
        space.get(0)
    for kind in ("XGBTuner", "GATuner", "RandomTuner", "GridSearchTuner", "DropletTuner"):
        seen = []
        tuner = getattr(autotvm.tuner, kind)(autotvm.task.create("test/filtered", (16,), "llvm"))
        option = autotvm.measure_option("local", autotvm.LocalRunner(number=1))
        tuner.tune(6, option, callbacks=[lambda _, i, r, seen=seen: seen.extend(i)])
        assert seen
        assert {inp.config.index for inp in seen} <= set(valid)


def test_choices_as_numbers_and_texts():
    config = ConfigEntity(
        3, None, {"tile": SplitEntity([-1, 4]), "order": ReorderEntity([1, 0]),
                  "how": AnnotateEntity(["vec"])},
    )  # fmt: skip
    assert str(config) == "[('tile', [-1, 4]), ('order', [1, 0]), ('how', ['vec'])],None,3"
    assert list(config.get_flatten_feature()) == [-1, 4, 1, 0, 0, 1] + [0] * 9
    assert ConfigEntity.from_json_dict(config.to_json_dict()) == config
    assert config.get_other_option() == {}
    assert (get_factors(36), get_pow2s(36)) == ([1, 2, 3, 4, 6, 9, 12, 18, 36],
                                                [1, 2, 4, 8, 16, 32])  # fmt: skip
    assert VirtualAxis(te.reduce_axis((0, 7))).length == 7


def test_what_is_said_before_it_is_defined_stays():
    cfg = FallbackConfigEntity()
    cfg["tile"] = SplitEntity([2, 4])
    cfg.define_split("tile", cfg.axis(8), num_outputs=2)
    assert cfg["tile"].size == [2, 4]


def test_a_template_without_a_log_takes_after_another_ones():
    cfg = FallbackConfigEntity()
    cfg.define_split("tile", cfg.axis(24), num_outputs=2)
    cfg.define_knob("unroll", [0, 16])
    chosen = {"tile": SplitEntity([3, 8]), "unroll": autotvm.task.OtherOptionEntity(16)}
    trial = (autotvm.MeasureInput(None, None, ConfigEntity(0, None, chosen)), None)
    cfg.fallback_with_reference_log([])
    assert cfg["tile"].size == [-1, 1]
    cfg.fallback_with_reference_log([trial])
    assert (cfg["tile"].size, cfg["unroll"].val) == ([3, 8], 16)
    assert autotvm.tophub.load_reference_log("arm_cpu", "rk3399", "conv2d_nchw.arm_cpu") == []


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda c: c.axis("x"), "an axis of a stage, or a length"),
        (lambda c: c.define_split("t", 8, num_outputs=0), "at least 1"),
        (lambda c: c.define_split("t", 8, "divisors"), "factors, power2, verbose, candidate"),
        (lambda c: c.define_split("t", 8, "candidate", candidate=[[2, 2, 2]]), "3 lengths"),
        (lambda c: c.define_split("t", c.define_split("u", 8)[0]), "no fixed length"),
        (lambda c: c.define_reorder("o", [8, 9], "some"), "interleave_cuda"),
        (lambda c: c.define_reorder("o", [8], "candidate", candidate=[[c.axis(8)]]), "is none of"),
        (lambda c: c.define_annotate("a", [8], "vectorize"), "try_unroll_vec"),
        (lambda c: c.define_annotate("a", [8], "bind_gpu"), "2 axes at least"),
    ],
)
def test_what_is_no_knob(use, words):
    with pytest.raises(TuningError, match=words):
        use(ConfigSpace())
