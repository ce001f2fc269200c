"""What `slipway micro create` is given twice, as an option of its own and by --option."""

import pytest
from typer.testing import CliRunner

from slipway import micro
from slipway.cli import micro as commands
from slipway.cli.app import app
from slipway.cli.exit_codes import OptionError


@pytest.fixture
def made(monkeypatch):
    found = {}

    class Project:
        def close(self):
            pass

    def archive(model, target, options, folder, name):
        found["target"] = target

    def generate(template, directory, archive, options):
        found["options"] = options
        return Project()

    monkeypatch.setattr(commands, "model_archive", archive)
    monkeypatch.setattr(commands, "_warn_of_size", lambda archive, board, folder: None)
    monkeypatch.setattr(micro, "generate_project_from_mlf", generate)
    return found


def create(folder, *words):
    return CliRunner().invoke(app, ["micro", "create", "m.tflite", str(folder / "p"), *words])


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ((), {"board": "mps2-an386", "project_type": "example_project"}),
        (("--option", "project_type=bench"), {"board": "mps2-an386", "project_type": "bench"}),
        (
            ("--option", "board=rp2040", "--project-type", "bench", "--option", "stack_bytes=4096"),
            {"board": "rp2040", "project_type": "bench", "stack_bytes": "4096"},
        ),
        (("--board", "rp2040", "--option", "board=rp2040"), {"board": "rp2040",
         "project_type": "example_project"}),
    ],
)  # fmt: skip
def test_an_option_counts_wherever_it_stands(made, tmp_path, words, options):
    """The board decides the target, too."""
    done = create(tmp_path, *words)
    assert done.exit_code == 0, done.output
    assert made["options"] == options
    core = {"mps2-an386": "cortex-m4", "rp2040": "cortex-m0plus"}[options["board"]]
    assert f"-mcpu={core}" in made["target"]


@pytest.mark.parametrize(
    "words",
    [
        ("--project-type", "bench", "--option", "project_type=host_driven"),
        ("--board", "rp2040", "--option", "board=pico2"),
    ],
)
def test_two_values_are_refused(made, tmp_path, words):
    done = create(tmp_path, *words)
    assert isinstance(done.exception, OptionError)
    assert "leave one of them out" in str(done.exception)
    assert not made
