"""Collect the names of classic TVM that its tutorials and apps use: checkouts are read, not run.

python tools/classic_used_names.py CHECKOUT [CHECKOUT ...]

A line of tools/classic_used_names.txt is "tvm.te.compute: v0.6.1 v0.10.0", the releases whose
scripts use the name.  Names go as far as attributes are named in one piece, as
`tvm.IRModule.from_expr`, under whatever name a script imported their module.
"""

from __future__ import annotations

import ast
import sys
import warnings
from pathlib import Path

OUT = Path(__file__).with_name("classic_used_names.txt")
FOLDERS = ("gallery", "tutorials", "apps")
ROOTS = {"tvm": "tvm", "topi": "tvm.topi", "nnvm": ""}  # topi was a package of its own


def full(module: str) -> str:
    """Return a module's name under `tvm`; "" if it is of another package."""
    root, dot, rest = module.partition(".")
    home = ROOTS.get(root, "")
    return f"{home}{dot}{rest}" if home else ""


class Names(ast.NodeVisitor):
    """The names that one script uses."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self.found: set[str] = set()

    def visit_Import(self, node: ast.Import) -> None:
        """Keep what a module is called."""
        for alias in node.names:
            if not (name := full(alias.name)):
                continue
            if alias.asname:
                self.known[alias.asname] = name
            else:
                root = alias.name.partition(".")[0]
                self.known[root] = ROOTS[root]
            self.found.add(name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Keep what names of a module are called."""
        home = full(node.module or "") if not node.level else ""
        for alias in node.names if home else ():
            if alias.name == "*":
                self.found.add(home)
                continue
            self.known[alias.asname or alias.name] = f"{home}.{alias.name}"
            self.found.add(f"{home}.{alias.name}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Add a chain of attributes of a known name."""
        parts: list[str] = []
        at: ast.expr = node
        while isinstance(at, ast.Attribute):
            parts.append(at.attr)
            at = at.value
        if isinstance(at, ast.Name) and at.id in self.known:
            self.found.add(".".join([self.known[at.id], *reversed(parts)]))
        self.generic_visit(node)


def names_of(script: Path) -> set[str]:
    """Return the names that a script uses; private ones are left out."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(script.read_text(encoding="utf-8"))
    except SyntaxError:  # of Python 2
        return set()
    names = Names()
    names.visit(tree)
    return {n for n in names.found if n != "tvm" and "._" not in n}


def main() -> None:
    """Write the names of the checkouts together."""
    releases: dict[str, list[str]] = {}
    for checkout in map(Path, sys.argv[1:]):
        scripts = [p for folder in FOLDERS for p in sorted((checkout / folder).rglob("*.py"))]
        for name in set().union(*map(names_of, scripts)):
            releases.setdefault(name, []).append(checkout.resolve().name.removeprefix("tvm-"))
    modules = {name.rpartition(".")[0] for name in releases}
    lines = [
        f"{name}: {' '.join(found)}"
        for name, found in sorted(releases.items())
        if name not in modules or name.count(".") > 1
    ]
    OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
