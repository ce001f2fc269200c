"""Two compiled models compared: what is the same is told so, and what is not is named."""

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import slipway
from slipway import relay
from slipway.cli.exit_codes import OptionError
from slipway.cli.inspect.compare import part_of
from slipway.deploy.reference import random_inputs
from slipway.errors import ExecutionError
from slipway.report import compare
from slipway.report.compare_page import comparison_html
from slipway.report.loaded import LoadedArtifact
from slipway.report.real_values import shared_inputs

DIGITS = Path(str(files("slipway"))) / "models" / "digits" / "digits.onnx"


def network(factor, extra=False):
    x = relay.var("x", shape=(1, 16))
    weight = relay.const(np.full((8, 16), factor, "float32"))
    y = relay.nn.dense(x, weight)
    y = relay.nn.softmax(y) if extra else y
    return relay.Function([x], relay.tanh(y))


@pytest.fixture(scope="module")
def files_of(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    made = {}
    kinds = {"one": (1.0, False), "same": (1.0, False), "two": (0.5, False), "more": (1.0, True)}
    for name, (factor, extra) in kinds.items():
        model = slipway.compile(network(factor, extra), name=name, quiet=True)
        made[name] = model.save(folder / f"{name}.tar")
    foreign = slipway.compile(network(1.0), "llvm -mtriple=riscv64-linux-gnu", quiet=True)
    made["foreign"] = foreign.save(folder / "foreign.tar")
    return made


def held(files_of, a, b):
    artifacts = [LoadedArtifact(files_of[name], None, "here") for name in (a, b)]
    return compare.compare(files_of[a], files_of[b], (a, b), tuple(artifacts))


@pytest.fixture(scope="module")
def alike(files_of):
    return held(files_of, "one", "same")


def test_the_same_model_is_the_same(alike):
    assert alike.changes == []
    assert alike.same == {"code": True, "weights": True}
    assert alike.bigger == 0
    assert [output.error for output in alike.numbers] == [0]
    alike.judge(None, 0.0)
    assert alike.faults == []
    page = comparison_html(alike).split('id="data">')[0]
    assert f"The same {len(alike.a.kernels)} kernels; the same bytes: code, weights." in page
    assert " B</td>" not in page  # a narrow column must not part a number from its unit
    assert len(alike.a.seconds) == len(alike.b.seconds) == compare.ROUNDS


def test_other_weights_are_told_by_numbers(files_of):
    found = held(files_of, "one", "two")
    assert found.same == {"code": True, "weights": False}
    assert not found.numbers[0].agrees
    found.judge(None, None)
    assert "differs by" in found.faults[0]


def test_another_kernel_is_named(files_of):
    found = held(files_of, "one", "more")
    assert {change.kind for change in found.changes} <= {"added", "removed", "changed"}
    assert any("softmax" in f"{change.name}{change.b}" for change in found.changes)
    assert not any("softmax" in change.a for change in found.changes)


def test_outputs_of_another_shape_are_a_fault(files_of, tmp_path):
    """A model cut short by a class passed with "B keeps every limit", as numbers had no pairs."""
    x = relay.var("x", shape=(1, 16))
    function = relay.Function([x], relay.nn.dense(x, relay.const(np.ones((7, 16), "float32"))))
    paths = files_of["one"], saved(function, tmp_path, "short")
    loaded = [LoadedArtifact(path, None, "here") for path in paths]
    found = compare.compare(*paths, ("A", "B"), tuple(loaded))
    found.judge(None, None)
    assert found.faults == ["the outputs have other shapes: A's are [1, 8], and B's [1, 7]"]


def test_a_limit_on_time_and_size(alike):
    slow = compare.Comparison(alike.a, alike.b, "now")
    slow.a.seconds, slow.b.seconds = [1.0, 2.0, 1.0], [1.2, 2.4, 9.0]
    assert slow.slower == pytest.approx(0.2)
    slow.b.sizes["file"] = round(slow.a.sizes["file"] * 1.1)
    slow.judge(0.1, 0.05)
    assert [fault.split(" than")[0] for fault in slow.faults] == [
        "B is 20.0% slower", "B is 10.0% larger"
    ]  # fmt: skip
    slow.faults.clear()
    slow.judge(0.3, 0.2)
    assert slow.faults == []


def test_what_cannot_be_told_apart_is_a_note_and_no_fault(alike):
    noisy = compare.Comparison(alike.a, alike.b, "now")
    noisy.a.seconds = [1.0] * 11
    noisy.b.seconds = [0.9, 0.95, 0.99, 1.01, 1.02, 1.06, 1.07, 1.08, 1.1, 1.3, 2.0]
    assert noisy.slower == pytest.approx(0.06)
    assert noisy.slower_between == pytest.approx((-0.01, 0.1))
    noisy.judge(0.05, None)
    assert noisy.faults == []
    (note,) = noisy.notes
    assert "-1.0% to +10.0%" in note
    noisy.b.seconds = [1.055] * 11
    noisy.judge(0.05, None)
    assert len(noisy.faults) == 1


def test_what_cannot_run_has_no_time(files_of):
    found = compare.compare(
        files_of["one"], files_of["foreign"], ("one", "foreign"),
        (LoadedArtifact(files_of["one"], None, "here"), "it is for riscv64"),
    )  # fmt: skip
    assert found.slower is None
    assert found.numbers == []
    with pytest.raises(ExecutionError, match="it is for riscv64"):
        found.judge(0.05, None)


def test_the_page_and_the_json_tell_the_same(files_of):
    found = held(files_of, "one", "more")
    page = comparison_html(found)
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert data == json.loads(found.to_json())
    assert data["b"]["name"] == "more"
    assert "softmax" in page.split('id="data">')[0]


def test_joined_names_are_shown_by_their_first(shared):
    """Each row of the page was a column of letters on a phone."""
    model = shared / "models" / "tflite" / "kws_ref_model.tflite"
    pair = ["--target", "llvm -mcpu=x86-64-v2", "--target", "llvm -mcpu=x86-64-v3"]
    done = command(model, *pair)
    assert done.returncode == 0, done.stderr
    assert "functional_1/activation/Relu …" in done.stdout
    assert "FusedBatchNorm" not in done.stdout


@pytest.mark.parametrize(
    ("text", "value"), [("5%", 0.05), ("0.05", 0.05), ("0", 0.0), ("12.5 %", 0.125)]
)
def test_parts_are_read(text, value):
    assert part_of(text, "--x") == pytest.approx(value)


@pytest.mark.parametrize("text", ["much", "-1%", "", "nan", "inf"])
def test_what_is_no_part_is_refused(text):
    with pytest.raises(OptionError, match="write a percentage"):
        part_of(text, "--slower-than")


def command(*arguments):
    words = [sys.executable, "-m", "slipway", "compare", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=250)


def test_the_command_exits_with_4_for_a_broken_limit(files_of, tmp_path):
    page = tmp_path / "page.html"
    done = command(files_of["one"], files_of["two"], "-o", page)
    assert done.returncode == 4, done.stderr
    assert "differs by" in done.stdout
    assert page.read_text().startswith("<!doctype html>")


def test_one_model_for_two_targets(files_of):
    targets = ("--target", "llvm -mcpu=x86-64-v2", "--target", "llvm -mtriple=riscv64-linux-gnu")
    done = command(DIGITS, *targets, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["b"]["why_not_run"]
    assert found["a"]["target"] != found["b"]["target"]


def test_one_model_and_one_target_are_too_little():
    done = command(DIGITS)
    assert done.returncode == 2
    assert "--target twice" in done.stderr


def quantised(scale, zero, entry):
    """A model that takes float pixels and quantises them, or (entry) takes the integers."""
    x = relay.var("x", shape=(1, 64), dtype="uint8" if entry else "float32")
    affine = [relay.const(scale, "float32"), relay.const(zero, "int32")]
    q = x if entry else relay.qnn.quantize(relay.reshape(x, (1, 64)), *affine, out_dtype="uint8")
    weight = relay.const(np.linspace(-1, 1, 4 * 64, dtype="float32").reshape(4, 64))
    y = relay.nn.dense(relay.qnn.dequantize(q, *affine), weight)
    rows = [("in", "x", scale, zero, True, ())] if entry else []
    return relay.Function([x], y, None, (("meanings", tuple(rows)),) if rows else ())


def saved(function, folder, name):
    return slipway.compile(function, name=name, quiet=True).save(folder / f"{name}.tar")


def test_floats_that_are_quantised_first_get_values_of_their_range(tmp_path):
    """Pixels: normal values would all become 0 or 1, and say nothing of the model."""
    path = saved(quantised(1.0, 3, entry=False), tmp_path, "pixels")
    (spec,) = slipway.load(path).inputs
    assert spec.values == (-3.0, 252.0)
    value = random_inputs([spec], seed=1)["x"]
    assert value.dtype == np.float32
    assert -3 <= value.min() < 5
    assert 240 < value.max() <= 252


def test_float_and_integer_models_get_the_same_real_values(tmp_path):
    """B takes the integers that A makes of its floats: the outputs must be equal."""
    a = saved(quantised(0.5, 7, entry=False), tmp_path, "floats")
    b = saved(quantised(0.5, 7, entry=True), tmp_path, "integers")
    artifacts = (LoadedArtifact(a, None, "here"), LoadedArtifact(b, None, "here"))
    found = compare.compare(a, b, ("A", "B"), artifacts)
    assert [output.agrees for output in found.numbers] == [True]
    assert not found.notes
    ((_, one),), ((_, other),) = (side.items() for side in shared_inputs(*ports(a, b)))
    assert other.dtype == np.uint8
    assert len(np.unique(other)) > 50
    np.testing.assert_array_equal(one, (other - 7.0) * 0.5)


def ports(*paths):
    return [compare.open_artifact(path).metadata["inputs"] for path in paths]


def test_a_tolerance_of_ones_own(tmp_path):
    a = saved(quantised(2.0, 3, entry=False), tmp_path, "coarse")
    x = relay.var("x", shape=(1, 64))
    weight = relay.const(np.linspace(-1, 1, 4 * 64, dtype="float32").reshape(4, 64))
    b = saved(relay.Function([x], relay.nn.dense(x, weight)), tmp_path, "fine")
    artifacts = (LoadedArtifact(a, None, "here"), LoadedArtifact(b, None, "here"))
    assert not compare.compare(a, b, ("A", "B"), artifacts).numbers[0].agrees
    assert compare.compare(a, b, ("A", "B"), artifacts, tolerance=0.1).numbers[0].agrees
