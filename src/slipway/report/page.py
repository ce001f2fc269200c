"""The page: one file of HTML that holds its style, its script and the report as JSON."""

from __future__ import annotations

import re
from html import escape
from importlib.resources import files
from pathlib import Path

from slipway.report.data import Report
from slipway.toolchain.link import write_file


def html_of(report: Report) -> str:
    """Return the page; it loads nothing from elsewhere."""
    folder = files("slipway.report").joinpath("page")
    text = folder.joinpath("report.html").read_text(encoding="utf-8")
    parts = {
        "TITLE": escape(f"{report.name} for {report.target}"),
        "STYLE": folder.joinpath("report.css").read_text(encoding="utf-8"),
        "GRAPH": folder.joinpath("graph.js").read_text(encoding="utf-8"),
        "SCRIPT": folder.joinpath("report.js").read_text(encoding="utf-8"),
        "PARTS": folder.joinpath("parts.js").read_text(encoding="utf-8"),
        # Inside <script>, the only text that ends it is "</"; "<!--" changes how it is read.
        "DATA": report.to_json().replace("<", "\\u003c"),
    }
    return re.sub("@([A-Z]+)@", lambda found: parts[found[1]], text)


def write_page(report: Report, path: str | Path) -> Path:
    """Write the page to `path` and return it."""
    target = Path(path)
    write_file(target, html_of(report).encode(errors="backslashreplace"))
    return target
