"""Trials that a script makes itself, and the arguments of tasks as keys."""

import io
import json
from types import SimpleNamespace

import numpy as np
import pytest

import slipway as tvm
from slipway import autotvm, te
from slipway.autotvm.record import decode, encode
from slipway.autotvm.task import SplitEntity, args_to_workload, deserialize_args, serialize_args
from slipway.errors import TuningError


@autotvm.template("test/records")
def halves(n):
    a = te.placeholder((n,), name="A")
    c = te.compute((n,), lambda i: a[i] + 1.0, name="C")
    s = te.create_schedule(c.op)
    cfg = autotvm.get_config()
    cfg.define_split("tile", s[c].op.axis[0], num_outputs=2)
    cfg["tile"].apply(s, c, s[c].op.axis[0])
    return s, [a, c]


def trials(*costs):
    task = autotvm.task.create("test/records", args=(64,), target="llvm")
    return [
        (
            autotvm.MeasureInput(task.target, task, task.config_space.get(i)),
            autotvm.MeasureResult((cost,), 0, 0.5, 2.0),
        )
        for i, cost in enumerate(costs)
    ]


@pytest.mark.parametrize("kind", ["trials", "file", "path", "several", "nested"])
def test_of_results_that_a_script_made_the_fastest_is_used(kind, tmp_path):
    """A result of a script's own says nothing against itself, as a line of classic TVM."""
    made = trials(3.0, 2.0, 1.0, 4.0)
    where = io.StringIO() if kind == "file" else tmp_path / "own.log"
    autotvm.callback.log_to_file(where)(None, *zip(*made, strict=True))
    if kind == "file":
        where.seek(0)
    records = {"trials": made, "several": zip([where]), "nested": iter([iter(made), made])}
    history = autotvm.task.ApplyHistoryBest(records.get(kind, where))
    chosen = history.query("llvm", ("test/records", 64))
    assert str(chosen) == str(made[2][0].config)
    with pytest.raises(TuningError, match="takes logs and trials, not 7"):
        autotvm.task.ApplyHistoryBest([made, 7])


def test_a_trial_that_was_not_verified_is_never_the_best():
    (inp, result), other = trials(1.0, 2.0)
    refused = result._replace(verified=False)
    history = autotvm.task.ApplyHistoryBest([(inp, refused), other])
    assert history.query("llvm", ("test/records", 64)) == other[0].config
    assert not decode(encode(inp, refused))[1].verified


def test_a_line_gives_the_result_back_and_is_json():
    ((inp, result),) = trials(1.5)
    line = encode(inp, result, protocol="json")
    json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert decode(line, protocol="json")[1] == result
    for call in (lambda: encode(inp, result, "pickle"), lambda: decode(line, "pickle")):
        with pytest.raises(TuningError, match="JSON, not 'pickle'"):
            call()


def test_a_split_has_a_list_whoever_made_it():
    task = autotvm.task.create("test/records", args=(64,), target="llvm")
    config = task.config_space.get(3)
    assert config["tile"] == SplitEntity([-1, 8])
    assert config["tile"].size == [-1, 8]
    assert autotvm.ConfigEntity.from_json_dict(config.to_json_dict()) == config


def test_arguments_are_keys_and_come_back():
    given = [te.placeholder((1, 3, 8, 8), name="data"), (1, [2, 2]), "float32", None, True]
    kept = serialize_args(given)
    assert kept == (("TENSOR", (1, 3, 8, 8), "float32"), (1, (2, 2)), "float32", None, True)
    assert args_to_workload(given, "conv") == ("conv", *kept)
    assert args_to_workload(given) == kept
    assert {kept: 1}[serialize_args(given)] == 1
    tensor, *others = deserialize_args(kept)
    assert [int(n) for n in tensor.shape] == [1, 3, 8, 8]
    assert tensor.dtype == "float32"
    assert others == list(kept[1:])
    assert serialize_args([tensor, *others]) == kept
    with pytest.raises(TuningError, match="not numbers, words, tensors"):
        serialize_args([object()])


@pytest.mark.parametrize(
    ("shape", "source", "target"),
    [((1, 4, 9, 8, 4), "NCHW4c", "NCHW8c"), ((2, 12, 5, 7), "NCHW", "NHWC")],
)
def test_a_copy_into_another_layout_is_a_task(shape, source, target, tmp_path):
    """Classic graph tuners weigh its time; their scripts make records of it."""
    args = [te.placeholder(shape, name="data"), source, target]
    task = autotvm.task.create("layout_transform", args, "llvm")
    assert autotvm.task.args_to_workload(args, "layout_transform") == (
        "layout_transform", ("TENSOR", shape, "float32"), source, target,
    )  # fmt: skip
    schedule, tensors = task.instantiate(task.config_space.get(0))
    function = tvm.build(schedule, tensors, target="llvm")
    value = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    out = tvm.nd.empty([int(n) for n in tensors[1].shape])
    function(tvm.nd.array(value), out)
    if target == "NHWC":
        wanted = value.transpose(0, 2, 3, 1)
    else:
        wanted = value.reshape(1, 2, 2, 9, 8, 4).transpose(0, 1, 3, 4, 2, 5).reshape(out.shape)
    np.testing.assert_array_equal(out.numpy(), wanted)
    log = tmp_path / "copies.log"
    option = autotvm.measure_option("local", autotvm.LocalRunner(number=2, repeat=1))
    callbacks = [autotvm.callback.log_to_file(str(log))]
    autotvm.tuner.GridSearchTuner(task).tune(1, option, callbacks=callbacks)
    ((inp, result),) = autotvm.record.load_from_file(str(log))
    assert inp.task.name == "layout_transform"
    assert result.error_no == 0


def test_the_progress_is_told_in_medians(capsys):
    """The best is: beside it the shortest of noisy runs would be faster than what is the best."""
    show = autotvm.callback.progress_bar(2)
    tuner = SimpleNamespace(task=SimpleNamespace(flop=1e6), best_flops=1e9)
    result = autotvm.MeasureResult((1e-3, 1e-4, 2e-3), 0, 1.0, 0.0)
    failed = autotvm.MeasureResult((ValueError("no"),), 4, 1.0, 0.0)
    show(tuner, [None, None], [result, failed])
    assert "Current/Best:    1.00/   1.00 GFLOPS | Progress: (2/2)" in capsys.readouterr().err


def test_a_line_that_was_cut_costs_itself_only(tmp_path, caplog):
    """A writer that is killed, or a disk that is full, ends in the middle of a line."""
    log, best = tmp_path / "log", tmp_path / "best"
    task = autotvm.task.create("test/records", (8,), "llvm")
    write = autotvm.callback.log_to_file(log)

    def add(index, seconds):
        inp = autotvm.MeasureInput(task.target, task, task.config_space.get(index))
        write(None, [inp], [autotvm.MeasureResult((seconds,), 0, 1.0, 2.0)])

    add(1, 0.5)
    whole = log.read_text()
    log.write_text(whole + whole[:70])
    add(2, 0.25)
    found = [i.config.index for i, _ in autotvm.record.load_from_file(log)]
    assert found == [1, 2]
    assert f"{log}, line 2 ends too early and is left out" in caplog.text
    autotvm.record.pick_best(log, best)
    with autotvm.apply_history_best(best) as history:
        assert history.query("llvm", task.workload).index == 2
    log.write_text(whole + "no JSON\n")
    with pytest.raises(TuningError, match=r"line 2: this is no trial"):
        list(autotvm.record.load_from_file(log))
