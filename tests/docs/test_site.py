"""The site and the manual pages: complete, and made without a warning."""

import importlib.util
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_every_page_is_in_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text().partition("nav:")[2]
    listed = re.findall(r"[\w/-]+\.md", nav)
    docs = ROOT / "docs"
    assert sorted(listed) == sorted(str(p.relative_to(docs)) for p in docs.rglob("*.md"))


def test_reference_names_what_can_be_imported_and_has_a_docstring():
    named = [
        (page.name, name)
        for page in sorted((ROOT / "docs/api").glob("*.md"))
        for name in re.findall(r"^::: ([\w.]+)$", page.read_text(), re.MULTILINE)
    ]
    assert len(named) > 15
    for page, name in named:
        found = pkgutil.resolve_name(name)
        assert found.__doc__, f"{page}: {name} has no docstring"


@pytest.mark.long
def test_site_builds_without_a_warning(tmp_path):
    for module in ("material", "mkdocstrings"):
        pytest.importorskip(module, reason="pip install 'slipway-ml[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [*command, "--site-dir", tmp_path], cwd=ROOT, env=env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    assert "Quick starts" in (tmp_path / "index.html").read_text()
    reference = (tmp_path / "api/models.html").read_text()
    for name in ("slipway.compile", "slipway.Model.on", "slipway.Model.save"):
        assert f'id="{name}"' in reference, name
    fetched = re.findall(r'(?:src|href)="(https?://[^"]+)"', (tmp_path / "micro.html").read_text())
    assert not [url for url in fetched if url.endswith((".js", ".css", ".woff2"))]


def pages():
    spec = importlib.util.spec_from_file_location("manual", ROOT / "tools/manual_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.manual_pages()


def test_manual_pages_are_complete_and_well_formed(tmp_path):
    made = pages()
    assert {"slipway.1", "slipway-compile.1", "slipway-micro-create.1"} <= set(made)
    assert "\\-\\-module\\-name" in made["slipway-micro-create.1"]
    assert ".B 9\na device or tracker cannot be reached" in made["slipway.1"]
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    for name, text in made.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = sorted(map(str, tmp_path.glob("*.1")))
    done = subprocess.run(
        ["groff", "-k", "-ww", "-z", "-man", "-Tutf8", *files], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert not done.stderr.strip()


def test_screens_are_shown_and_shown_ones_are_there():
    folder = ROOT / "docs/screens"
    shown = re.findall(r"\(screens/([\w.-]+)\)", (ROOT / "docs/screens.md").read_text())
    assert sorted(shown) == sorted(p.name for p in folder.iterdir())
    for picture in folder.glob("*.svg"):
        assert "url(http" not in picture.read_text(), f"{picture.name} fetches a font"
