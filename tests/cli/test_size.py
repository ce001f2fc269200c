"""`slipway size` of artifacts: every byte is for something, and what another one has more."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import slipway
from slipway import relay
from slipway.cli.app import app
from slipway.errors import ArtifactError


def model(channels):
    """A product that has a weight of `channels` columns."""
    x = relay.var("x", shape=(2, 12))
    weight = relay.const(np.ones((channels, 12), "float32"))
    return relay.Function([x], relay.nn.relu(relay.nn.dense(x, weight)))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sizes")
    for name, channels in (("small", 16), ("large", 64)):
        made = slipway.compile(model(channels), quiet=True)
        made.save(folder / f"{name}.tar")
        made.save(folder / f"{name}.so")
    slipway.compile(model(16), "arm/cortex-m4", quiet=True).save(folder / "m4.tar")
    return folder


def size(*words):
    return CliRunner().invoke(app, ["size", *map(str, words)])


@pytest.mark.parametrize("name", ["small.tar", "small.so", "m4.tar"])
def test_the_parts_are_the_file(files, name):
    found = json.loads(size(files / name, "--json").output)["after"]
    whole, tensors = found.pop("the file"), found.pop("tensors of a run")
    assert sum(found.values()) == whole == (files / name).stat().st_size
    assert tensors > 0
    assert found["weights"] >= 16 * 12 * 4
    assert ("code, to be linked for a board" in found) == (name == "m4.tar")


@pytest.mark.parametrize("kind", ["tar", "so"])
def test_what_is_more_than_before(files, kind):
    done = size(files / f"large.{kind}", "--diff", files / f"small.{kind}")
    assert done.exit_code == 0, done.output
    (weights,) = (line.split() for line in done.output.splitlines() if " weights " in line)
    assert weights[-1] == f"+{48 * 12 * 4:,}"


def test_what_is_no_artifact_says_what_to_do(files, tmp_path):
    archive = tmp_path / "an archive.tar"
    words = ["--target", "c", "--executor", "aot", "--runtime", "crt", "-f", "mlf", "-o"]
    digits = Path(slipway.__file__).parent / "models/digits/digits.onnx"
    assert CliRunner().invoke(app, ["compile", str(digits), *words, str(archive)]).exit_code == 0
    error = size(archive).exception
    assert isinstance(error, ArtifactError)
    assert f"slipway fit '{archive}' --board NAME" in str(error)
    (tmp_path / "text.tar").write_text("a text")
    assert isinstance(size(tmp_path / "text.tar").exception, ArtifactError)
    missing = size(files / "small.tar", "--diff", files / "gone.tar").exception
    assert isinstance(missing, FileNotFoundError)
