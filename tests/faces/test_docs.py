"""What the documents name is there."""

import re
import shlex

import pytest

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/architecture.md")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_named_files_exist(repository, document):
    text = (repository / document).read_text(encoding="utf-8")
    named = {name for name in re.findall(r"`([\w./]+)`", text) if "/" in name and "..." not in name}
    named = {name for name in named if name.endswith(("/", ".py", ".c", ".h", ".md", "run"))}
    places = (repository, repository / "src", repository / "src" / "slipway")
    missing = [name for name in named if not any((place / name).exists() for place in places)]
    # Made by a command of the document, not part of the repository.
    assert not set(missing) - {"dist/"}, missing


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(repository, document):
    path = repository / document
    prose = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose)
    missing = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert not missing


def test_commands_of_the_readme_are_spelled_right(repository):
    """Every `slipway ...` line names a command and options that exist."""
    typer = pytest.importorskip("typer")
    from slipway.cli.app import app

    commands = typer.main.get_command(app).commands
    text = (repository / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^slipway (.+)$", text, re.MULTILINE)
    assert lines
    for line in lines:
        name, *words = shlex.split(line.partition("#")[0])
        known = {spelling for option in commands[name].params for spelling in option.opts}
        used = {word for word in words if word.startswith("-") and not word.startswith("-m")}
        assert used <= known, line


def test_the_floors_table_is_the_tested_one(repository):
    source = (repository / "tests" / "test_layering.py").read_text(encoding="utf-8")
    tested = {
        int(floor): set(re.findall(r'"(\w+)"', rooms))
        for floor, rooms in re.findall(r"^    (\d): \(([^)]*)\),$", source, re.MULTILINE)
    }
    table = (repository / "docs" / "architecture.md").read_text(encoding="utf-8")
    written = {
        int(floor): set(re.findall(r"`(\w+)`", rooms))
        for floor, rooms in re.findall(r"^\| ([1-7]) \| ([^|]*) \|", table, re.MULTILINE)
    }
    assert written == tested
