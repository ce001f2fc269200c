"""What texts tell people to install is ours: `slipway` on package indexes is another project."""

import re
import tomllib

import pytest

from slipway.version import DISTRIBUTION, install_line

INSTALLED = re.compile(r"pip install ((?:-{1,2}\S+ )*)[\"'`]?(slipway[\w-]*)")
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


@pytest.mark.parametrize("extra", ["compile", "onnx", "torch", "cli", "web"])
def test_every_extra_that_an_error_names_exists(repository, extra):
    with (repository / "pyproject.toml").open("rb") as file:
        assert extra in tomllib.load(file)["project"]["optional-dependencies"]
    assert install_line(extra) == f"pip install '{DISTRIBUTION}[{extra}]'"
