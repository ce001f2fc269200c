"""What --json prints has the same names from release to release: scripts read them."""

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from slipway import rpc
from slipway.cli.app import app

FOLDER = Path(str(files("slipway"))) / "models" / "digits"
DIGITS = FOLDER / "digits.onnx"
# Of a command line: the names of the object, or of each object of the list, that it prints.
SHAPES = {
    "compile DIGITS -o new.tar": "target files",
    "check DIGITS": "model target supported counts problem assumed memory nodes",
    "explain DIGITS": "layers operator calls strategy knobs trials predicted_cycles "
    "arithmetic_cycles traffic_cycles flops bytes limit others paragraph",
    "run m.tar --print-time": "outputs seconds",
    "run m.tar --profile": "outputs profile",
    "profile m.tar": "seconds missing peak_flops_per_second levels time_above_80_percent_of_limit "
    "of_limits operators",
    "validate DIGITS --dataset set.npz": "samples reference outputs top1 reference_top1 same_top1",
    "bisect DIGITS": "agrees targets",
    "report DIGITS --no-limits --no-numbers": "name target where made inputs outputs before after "
    "layers memory sizes rewritten reference tolerance agreement run_seconds limits flash ram "
    "boards versions repeat notes format",
    "compare m.tar m.tar": "a b made changes same numbers unequal notes faults versions slower "
    "bigger slower_between",
    "fit DIGITS --board mps2-an386": "board fits origin flash flash_left ram ram_left",
    "size m.tar": "after",
    "targets raspberry": "name compiles_to target",
    "quantize DIGITS --calibration images.npz -o q.onnx": "layers kept_real",
    "rpc-query --port PORT": "started now devices kinds waiting queue totals jobs errors",
    "run none.tar": "error exit_code",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("json")
    with np.load(FOLDER / "digits_test.npz") as stored:
        images, labels = stored["images"][:4], stored["labels"][:4]
    np.savez(made / "images.npz", image=images)
    np.savez(made / "set.npz", image=images, labels=labels)
    done = CliRunner().invoke(app, ["compile", str(DIGITS), "-o", str(made / "m.tar")])
    assert done.exit_code == 0, done.output
    return made


@pytest.mark.parametrize("line", SHAPES)
def test_names_stay(folder, monkeypatch, capsys, line):
    from slipway.cli.main import main

    monkeypatch.chdir(folder)
    with rpc.Tracker("127.0.0.1", 0, silent=True) as tracker:
        given = {"DIGITS": str(DIGITS), "PORT": str(tracker.port)}
        words = [given.get(word, word) for word in line.split()]
        monkeypatch.setattr("sys.argv", ["slipway", *words, "--json"])
        with pytest.raises(SystemExit):
            main()
    printed = json.loads(capsys.readouterr().out)
    (found, *_) = printed if isinstance(printed, list) else [printed]
    assert sorted(found) == sorted(SHAPES[line].split())
