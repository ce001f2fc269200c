"""What the documents name is there."""

import re
import shlex
from pathlib import Path

import pytest

# The folders that a page names its files from, besides the root and the package.
BESIDE = {
    "docs/codegen.md": ["src/slipway/codegen"],
    "docs/gpu.md": ["src/slipway/crt/posix/devices/drivers"],
    "docs/languages.md": [
        "src/slipway/crt/include", "src/slipway/crt/include/tvm/runtime",
    ],
}  # fmt: skip
# Made by a command of the page, or a part of something else that it speaks of.
ELSEWHERE = {
    "README.md": {"dist/"},
    "CONTRIBUTING.md": {"dist/"},
    "docs/architecture.md": {"dist/"},
    "docs/classic_scripts.md": {"tutorials/", "gallery/"},
    "docs/micro.md": {"board/"},
}
ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    *(f"docs/{p.name}" for p in sorted(ROOT.glob("docs/*.md"))),
)


@pytest.mark.parametrize("page", PAGES)
def test_named_files_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = {name for name in re.findall(r"`([\w./]+)`", text) if "/" in name and "..." not in name}
    ends = ("/", ".py", ".c", ".h", ".md", ".js", ".rs", ".toml", ".hpp", "run")
    named = {name for name in named if name.endswith(ends)}
    folders = [ROOT / folder for folder in ("", "src", "src/slipway", *BESIDE.get(page, ()))]
    missing = {name for name in named if not any((folder / name).exists() for folder in folders)}
    assert missing <= ELSEWHERE.get(page, set())


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    path = ROOT / page
    prose = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose)
    missing = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_spelled_right(page):
    """Every line `slipway ...` names a command and options that exist."""
    typer = pytest.importorskip("typer")
    from slipway.cli.app import app

    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(r"^\s*(?:\$ )?slipway (.+)$", text, re.MULTILINE)
    assert lines or page != "README.md"
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    inline = [" ".join(line.split()) for line in re.findall(r"`slipway\s([a-z][^`]*)`", prose)]
    pending = [*lines, *inline]
    for line in pending:
        command = typer.main.get_command(app)
        words = shlex.split(re.split(r"#|\||&&", line)[0])
        if "--" in words:  # another command, one of ours or a program
            words, other = words[: words.index("--")], words[words.index("--") + 1 :]
            if other[0] in command.commands:
                pending.append(shlex.join(other))
        while hasattr(command, "commands"):
            if not words and line in inline:
                break  # a group of commands
            command = command.commands[words.pop(0)]
        known = {spelling for option in command.params for spelling in option.opts} | {"--help"}
        used = {word for word in words if word.startswith("-") and not word.startswith("-m")}
        assert used <= known, line


def test_the_layers_table_is_the_tested_one(repository):
    source = (repository / "tests" / "test_layering.py").read_text(encoding="utf-8")
    table_of_tests = re.search(r"^LAYERS = \{\n(.*?)^\}", source, re.MULTILINE | re.DOTALL)
    tested = {
        int(layer): set(re.findall(r'"([\w.]+)"', packages))
        for layer, packages in re.findall(r"(\d+): \(([^)]*)\),", table_of_tests[1])
    }
    table = (repository / "docs" / "architecture.md").read_text(encoding="utf-8")
    written = {
        int(layer): set(re.findall(r"`([\w.]+)`", packages))
        for layer, packages in re.findall(r"^\| ([1-9]\d*) \| ([^|]*) \|", table, re.MULTILINE)
    }
    assert written == tested


def test_the_page_on_code_generation_names_every_file(repository):
    page = (repository / "docs" / "codegen.md").read_text(encoding="utf-8")
    table = page.partition("| --- | --- |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line]
    named = {name for cell in cells for name in re.findall(r"`([\w/.]+)`", cell)}
    folder = repository / "src" / "slipway" / "codegen"
    assert not [name for name in named if not (folder / name).exists()]
    there = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    there |= {f"{path.parent.name}/" for path in folder.glob("*/*") if path.suffix in (".py", ".c")}
    assert there <= named, there - named


def test_the_page_on_architecture_counts_the_tables_of_late_functions(repository):
    page = (repository / "docs" / "architecture.md").read_text(encoding="utf-8")
    counted = {"four": 4, "five": 5, "six": 6}[re.search(r"there are (\w+) such tables", page)[1]]
    facades = (repository / "src" / "slipway").rglob("__init__.py")
    assert counted == sum("\nLATE = {" in path.read_text(encoding="utf-8") for path in facades)
