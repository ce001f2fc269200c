"""What texts tell people to install is ours: `slipway` on package indexes is another project."""

import ast
import re
import tomllib

import pytest

from slipway.version import DISTRIBUTION, install_line

INSTALLED = re.compile(r"pip install ((?:-{1,2}\S+ )*)[\"'`]?(slipway[\w-]*)")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FOLDERS = ("src", "docs", "tools", "examples", "benchmarks")


def texts(repository):
    for folder in FOLDERS:
        for path in (repository / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".js", ".mjs", ".html", ".toml", ".c", ".h"):
                yield path, path.read_text(encoding="utf-8")
    for name in ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml"):
        yield repository / name, (repository / name).read_text(encoding="utf-8")


def test_the_distribution_has_the_name_that_texts_say(repository):
    with (repository / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    assert project["name"] == DISTRIBUTION
    extras = project["optional-dependencies"]
    for extra in ("all", "dev"):
        own = [one for one in extras[extra] if one.startswith("slipway")]
        assert own, extra
        assert all(one.startswith(f"{DISTRIBUTION}[") for one in own), extra


def test_nobody_is_told_to_install_another_project(repository):
    found = []
    for path, text in texts(repository):
        for match in INSTALLED.finditer(text):
            found.append(match[2])
            assert match[2] == DISTRIBUTION, f"{path.relative_to(repository)}: {match[0]}"
    assert found


def test_the_name_stands_in_one_place_of_the_code(repository):
    """But for docstrings, which --help prints as they are."""
    package = repository / "src" / "slipway"
    for path in package.rglob("*.py"):
        if path == package / "version.py" or DISTRIBUTION not in (text := path.read_text("utf-8")):
            continue
        nodes = list(ast.walk(ast.parse(text)))
        told = {ast.get_docstring(n, clean=False) for n in nodes if isinstance(n, DOCUMENTED)}
        texts = {n.value for n in nodes if isinstance(n, ast.Constant) and type(n.value) is str}
        assert not [one for one in texts - told if DISTRIBUTION in one], path


@pytest.mark.parametrize("extra", ["compile", "onnx", "torch", "cli", "web", "llm", "tflite"])
def test_every_extra_that_an_error_names_exists(repository, extra):
    with (repository / "pyproject.toml").open("rb") as file:
        assert extra in tomllib.load(file)["project"]["optional-dependencies"]
    assert install_line(extra) == f"pip install '{DISTRIBUTION}[{extra}]'"
