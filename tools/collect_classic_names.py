"""Collect the public names of classic TVM's Python modules: checkouts are read, nothing is run.

python tools/collect_classic_names.py OUT CHECKOUT [CHECKOUT ...]

A line of OUT is "module: name name ...".  The names of a module are what it defines itself; those
of a package also what its `__init__.py` takes from its own modules.  What begins with an underscore
is private, and so is every module below such a one; `main` is a program.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

DEPTH = 2  # tvm.relay.op is documented and imported by name; what is deeper is mostly inside


def module_names(root: Path) -> dict[str, set[str]]:
    """Return module -> its public names, for the modules under ``python/tvm`` of a checkout."""
    trees: dict[str, tuple[ast.Module, bool]] = {}
    for path in sorted((root / "python" / "tvm").rglob("*.py")):
        parts = list(path.relative_to(root / "python").with_suffix("").parts)
        package = parts[-1] == "__init__"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        trees[".".join(parts[:-1] if package else parts)] = tree, package
    found: dict[str, set[str]] = {}
    for module in trees:
        if not any(part.startswith("_") for part in module.split(".")):
            found[module] = names_of(module, trees, set())
    for module in list(found):
        if module.count(".") > DEPTH:
            del found[module]
    for module in found:  # a module is a name of its package
        parent, _, last = module.rpartition(".")
        if parent in found:
            found[parent].add(last)
    return {module: names for module, names in found.items() if names}


def names_of(
    module: str, trees: dict[str, tuple[ast.Module, bool]], seen: set[str]
) -> set[str]:  # fmt: skip
    """Return what a module defines, and what a package takes from modules of its own."""
    if module not in trees or module in seen:
        return set()
    tree, package = trees[module]
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {
                t.id for t in targets
                if isinstance(t, ast.Name) and (package or t.id != "logger")
            }  # fmt: skip
        elif isinstance(node, ast.ImportFrom) and package:
            home = source_of(module, node)
            for alias in node.names:
                if alias.name == "*":
                    names |= names_of(home, trees, seen | {module})
                elif home.startswith("tvm"):
                    names.add(alias.asname or alias.name)
    return {n for n in names if not n.startswith("_") and n != "main"}


def source_of(package: str, node: ast.ImportFrom) -> str:
    """Return the module that an import of a package's `__init__.py` names."""
    if not node.level:
        return node.module or ""
    base = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def main() -> None:
    """Write the names of the checkouts together."""
    together: dict[str, set[str]] = {}
    for checkout in sys.argv[2:]:
        for module, names in module_names(Path(checkout)).items():
            together.setdefault(module, set()).update(names)
    lines = [f"{module}: {' '.join(sorted(names))}" for module, names in sorted(together.items())]
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
