"""Write the .pyi of the facades: what editors and type checkers see of names looked up late.

``python tools/stubs.py`` writes them all; ``--check`` says which are not what they should be.  A
name whose home is a module is imported from there, so that its signature stays in one place; an
operator whose function is made by another one is declared, with the signature it has.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

SOURCE = Path(__file__).resolve().parent.parent / "src"
FACADES = (
    "slipway", "slipway.codegen", "slipway.contrib", "slipway.ir", "slipway.micro", "slipway.relay",
    "slipway.relay.build_module", "slipway.relay.frontend", "slipway.relay.nn", "slipway.relay.op",
    "slipway.relay.qnn", "slipway.relay.qnn.op", "slipway.relay.qnn.transform",
    "slipway.relay.quantize", "slipway.relay.transform", "slipway.rpc", "slipway.runtime",
    "slipway.te", "slipway.testing", "slipway.testing.utils", "slipway.tir",
    "slipway.tir.transform", "slipway.topi", "slipway.topi.nn", "slipway.transform",
)  # fmt: skip
HEAD = '"""What type checkers see of {name}; written by tools/stubs.py."""\n\n'


def names_of(facade: ModuleType) -> list[str]:
    """Return the public names of a facade: what it lists, and the functions it defines."""
    own = {n for n, v in vars(facade).items() if getattr(v, "__module__", "") == facade.__name__}
    listed = dir(facade) if "__dir__" in vars(facade) else []
    names = own.union(listed, getattr(facade, "__all__", ()), getattr(facade, "_HOMES", ()))
    return sorted(n for n in names if n == "__version__" or n[0] != "_")


def home_of(value: object) -> tuple[str, str] | None:
    """Return (module, name) where a class or function is found, or None."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not name.isidentifier():
        return None
    found = getattr(importlib.import_module(module), name, None)
    return (module, name) if found is value else None


def owner_of(name: str, value: object, among: list[str]) -> str | None:
    """Return the module among `among` that has `value` under `name`."""
    for module in among:
        if vars(importlib.import_module(module)).get(name, among) is value:
            return module
    return None


def imports_in(path: str) -> dict[str, str]:
    """Return, for each name that a file imports or defines on top, the module it is found in."""
    text = Path(path).read_text(encoding="utf-8")
    module = ".".join(Path(path).relative_to(SOURCE).with_suffix("").parts)
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.update({a.asname or a.name: node.module for a in node.names})
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = module
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = module
    return found


def declared(name: str, function: object) -> tuple[str, set[str]]:
    """Return the declaration of a function that another one made, and the imports it needs."""
    assert callable(function)
    signature = inspect.signature(function)
    known = imports_in(inspect.getsourcefile(inspect.unwrap(function)) or "")
    parts, needs, star = [], set[str](), False
    notes = [p.annotation for p in signature.parameters.values()] + [signature.return_annotation]
    for note in notes:
        for word in re.findall(r"[A-Za-z_]\w*", note if isinstance(note, str) else ""):
            if word == "Any":  # some facades have a name of their own of this spelling
                needs.add("import typing")
            elif word in known:
                needs.add(f"from {known[word]} import {word}")
            elif word == "np":
                needs.add("import numpy as np")
    for p in signature.parameters.values():
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.kind == p.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or p.kind in (p.VAR_POSITIONAL, p.KEYWORD_ONLY)
        default = "" if p.default is p.empty else " = ..."
        parts.append(f"{mark}{p.name}: {p.annotation}{default}")
    result = signature.return_annotation
    text = f"def {name}({', '.join(parts)}) -> {result}: ..."
    return re.sub(r"(?<![.\w])Any\b", "typing.Any", text), needs


def stub_of(facade: ModuleType) -> str:
    """Return the text of the .pyi of a facade."""
    lines: set[str] = set()
    bodies: list[str] = []
    tables = [
        *getattr(facade, "_MODULES", ()),
        *getattr(facade, "_NAMES", {}),
    ]
    among = [m if m.startswith("slipway.") else f"slipway.ir.{m}" for m in tables]
    for name in names_of(facade):
        value = getattr(facade, name)
        if inspect.isfunction(value):
            value = getattr(value, "as_defined", value)  # of `slipway.arguments.explained`
        source = str(getattr(facade, "_HOMES", {}).get(name, "")).partition(":")
        if isinstance(value, ModuleType):
            package, _, last = value.__name__.rpartition(".")
            lines.add(f"from {package} import {last} as {name}")
        elif source[2]:
            lines.add(f"from {source[0]} import {source[2]} as {name}")
        elif source[0].startswith("slipway.") and hasattr(importlib.import_module(source[0]), name):
            lines.add(f"from {source[0]} import {name} as {name}")
        elif (home := home_of(value)) is not None:
            if home[0] == facade.__name__:  # the facade's own function
                text, needs = declared(name, value)
                bodies.append(text)
                lines |= needs
            else:
                lines.add(f"from {home[0]} import {home[1]} as {name}")
        elif callable(value) and inspect.isfunction(value):
            text, needs = declared(name, value)
            bodies.append(text)
            lines |= needs
        elif (module := owner_of(name, value, [m for m in among if is_module(m)])) is not None:
            lines.add(f"from {module} import {name} as {name}")
        else:
            raise SystemExit(f"{facade.__name__}.{name}: no home for {value!r}")
    head = HEAD.format(name=facade.__name__)
    exported = "".join(f"    {name!r},\n" for name in names_of(facade)).replace("'", '"')
    text = head + "\n".join([*sorted(lines), "", f"__all__ = [\n{exported}]\n", *bodies])
    return text.rstrip() + "\n"


def is_module(name: str) -> bool:
    """Return whether there is a module of this name."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return False
    return True


def path_of(facade: ModuleType) -> Path:
    """Return where the .pyi of a facade lies: beside its source."""
    return Path(facade.__file__ or "").with_suffix(".pyi")


def main(arguments: list[str]) -> int:
    """Write the stubs, or compare them with what is there."""
    stale = []
    for name in FACADES:
        facade = importlib.import_module(name)
        text, path = stub_of(facade), path_of(facade)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(str(path.relative_to(SOURCE)))
            if "--check" not in arguments:
                path.write_text(text, encoding="utf-8")
    print("\n".join(stale) or "all stubs are in step")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
