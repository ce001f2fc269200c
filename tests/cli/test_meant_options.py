"""Options and words of other tools are answered with what does the same here."""

import re

import pytest
import typer
from typer.testing import CliRunner

from slipway.cli import meant_options
from slipway.cli.app import app
from slipway.cli.meant_options import command_advice, loose_advice
from slipway.driver.tvmc.arguments import parsed


def commands(group=None, words=()):
    """Yield (name, options) of every command."""
    for name, command in (group or typer.main.get_command(app)).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            options = {spelled for one in command.params for spelled in one.opts}
            yield " ".join((*words, name)), options


ALL = dict(commands())


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("compile m.onnx --fp16", "No such option: --fp16; `--precision float16` computes in"),
        ("compile m.onnx --quantize int8", "`slipway quantize MODEL --calibration"),
        ("compile m.onnx --batch-size 4", '--input-shapes "x:[4,3,224,224]"'),
        ("compile m.onnx --input_shapes x:[1]", "it is spelled --input-shapes"),
        ("compile m.onnx --arch arm64", "--target says what it is compiled for"),
        ("compile m.onnx --board nucleo-f446re", "`slipway micro create MODEL DIR --board NAME`"),
        ("compile m.onnx --target-llvm-mcpu=cortex-a72", "`python -m slipway.driver.tvmc compile`"),
        ("compile --model m.onnx", "stands behind the command's name"),
        ("compile m.onnx --threads 4", "`slipway run --threads N`"),
        ("compile a.onnx b.onnx", "one model at a time"),
        ("tune m.onnx --tuner xgb", "`python -m slipway.driver.tvmc tune` has it"),
        ("tune m.onnx --num-trials 5", "that is --trials N"),
        ("run m.tar --rpc-tracker lab:9190", "that is --tracker HOST:PORT"),
        ("run m.tar --provider CUDAExecutionProvider", "runs on what it was compiled for"),
        ("run m.tar x.npz", "inputs are given by --inputs FILE.npz"),
        ("run m.tar --num_runs 50", "--number N runs make a measurement"),
        ("profile m.onnx --gpu", "--target opencl, vulkan or cuda is for a GPU"),
        ("quantize m.onnx --dataset x.npz", "that is --calibration SAMPLES.npz"),
        ("check m.onnx --opset 13", "onnx.version_converter"),
        ("micro create m.onnx p --arena-size 9000", "no size is guessed"),
        ("micro create m.onnx p --project-option a=b", "that is --option NAME=VALUE"),
        ("micro flash p --device /dev/ttyACM0", "--port /dev/ttyACM0"),
        ("micro list", "`slipway fit MODEL --all-boards` lists the boards"),
        ("micro monitor p", "that is `slipway micro run` here"),
        ("fit m.onnx --target cortex-m4", "--board NAME or --all-boards"),
        ("farm start", "that is `slipway farm up` here"),
        ("farm stop", "that is `slipway farm down` here"),
        ("farm up 3", "--virtual N says how many devices"),
        ("farm up --count 3", "that is --virtual N"),
        ("device rm pi@x", "that is `slipway device remove` here"),
        ("device add pi@x --password y", "ssh-copy-id USER@HOST"),
        ("rpc-tracker --token secret", "everybody on a machine sees its command lines"),
        ("rpc-query --tracker lab:9190", "--host HOST and --port PORT are the tracker's"),
        ("chat m.gguf -n 20", "that is --max-tokens N"),
        ("chat m.gguf --ctx-size 128", "that is --context N"),
        ("demo --board pi", "--device says the kind"),
        ("run m.tar --device pi.local:9090", "a machine is named by --rpc-host HOST"),
        ("run m.tar --benchmark", "that is --print-time"),
        ("fit m.onnx --mcu stm32f446", "that is --board NAME"),
        ("micro create m.onnx p -t cmake", "that is --template NAME"),
        ("device add 10.0.0.7 --user pi", "USER@HOST"),
        ("compile m.onnx --host pi.local", "`slipway run MODEL.tar --rpc-host HOST`"),
        ("compile m.onnx --dynamic", "--dim N=1..8 leaves a size open"),
        ("generate_cc_arrays m.tflite", "that is `slipway micro create` here"),
        ("onnxruntime_perf_test m.onnx", "that is `slipway profile` here"),
    ],
)
def test_one_paragraph_leads_to_what_does_it(line, told, monkeypatch, capsys):
    from slipway.cli.main import main

    monkeypatch.setattr("sys.argv", ["slipway", *line.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert ended.value.code == 2
    assert told in shown.err
    assert shown.err.startswith("slipway: error: ")
    assert shown.err.count("\n") == 1


def test_every_row_is_about_some_command_and_names_options_that_it_has():
    for words, needed, told in meant_options._ROWS:
        if needed.startswith("-"):
            about = [options for options in ALL.values() if needed in options]
        else:
            about = [options for name, options in ALL.items() if name.startswith(needed)]
        assert about, (words, needed)
        plain = re.sub(r"`[^`]*`", "", told)
        for option in re.findall(r"--[a-z-]+", plain):
            in_all = option == "--quiet"
            assert in_all or any(option in options for options in about), (words, option)


def test_what_is_said_to_be_an_option_of_tvmc_is_one(tmp_path):
    flags = {"--enable-autoscheduler", "--mixed-precision", "--print-pass-times",
             "--log-estimated-latency"}  # fmt: skip
    values = {"--desired-layout": "NCHW", "--tuner": "xgb", "--early-stopping": "3",
              "--min-repeat-ms": "3"}  # fmt: skip
    for name in meant_options._TVMC:
        option = f"--{name}"
        given = [option] if option in flags else [option, values.get(option, "llvm")]
        tried = 0
        for command in ("compile", "tune"):
            words = [command, "m.onnx", "--target", "llvm", "--output", "o"]
            try:
                parsed([*words, *given])
            except SystemExit:
                tried += 1
        assert tried < 2, option


def test_groups_of_commands_name_their_own():
    for group, meant in meant_options._WITHIN.items():
        for command, words in meant.items():
            assert f"{group} {command}" in ALL
            for word in words:
                assert f"{group} {word}" not in ALL
                assert command_advice(group, word) == f"that is `slipway {group} {command}` here"
    assert set(meant_options._LOOSE) <= set(ALL)
    assert loose_advice("doctor") == command_advice("farm", "nonsense") == ""


def test_a_level_of_optimisation_is_spelled_as_compilers_do():
    shown = CliRunner().invoke(app, ["compile", "none.onnx", "-O9"])
    assert "-O" in str(shown.exception) or "-O" in shown.output
    assert "-O" in ALL["compile"]


@pytest.mark.parametrize("command", ["check", "compile", "bisect", "explain", "report"])
def test_an_artifact_is_no_model(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.tar").write_bytes(b"\0" * 1024)
    done = CliRunner().invoke(app, [command, "m.tar"])
    assert "m.tar is no model but, by its name, compiled already: `slipway run`" in str(
        done.exception
    )


def test_the_size_of_a_model_file_is_asked_in_two_steps(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"\0")
    done = CliRunner().invoke(app, ["size", str(tmp_path / "m.onnx")])
    assert "is a model file: `slipway check` tells what it needs" in str(done.exception)
