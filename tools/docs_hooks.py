"""What the site needs beside the pages: links out of docs/ lead to the repository's files.

The pages are read in the repository too, so they link README, sources and examples relatively; a
site has no such neighbours, and shows the names without a link.
"""

import re
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)#]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page without its links to files that are no pages."""

    def plain(link: re.Match[str]) -> str:
        target = (_ROOT / "docs" / page.file.src_path).parent.joinpath(link[2]).resolve()
        if not target.exists():
            raise FileNotFoundError(f"{page.file.src_path} links {link[2]}, which is not there")
        if target.is_relative_to(_ROOT / "docs"):
            return link[0]
        return link[1] if "`" in link[1] else f"{link[1]} (`{target.relative_to(_ROOT)}`)"

    return _LINK.sub(plain, markdown)
