"""The wrong changes of a source file: one mutant per operator, constant and statement.

A mutant is one change of the syntax tree: a comparison at its boundary or reversed, + for -,
`and` for `or`, a `not` left out, a whole number one higher or lower, True for False, min for max,
any for all, a condition negated, a statement or a return value left out.  Texts, annotations,
assertions, what an error says and tables of names stay as they are.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_SWAPPED = {"min": "max", "minimum": "maximum", "any": "all"}
_SWAPPED |= {other: name for name, other in _SWAPPED.items()}
_NEGATED = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant)  # which have changes of their own
_LEFT_OUT = (ast.Assert, ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Mutant:
    """One change of one file, `node` and `choice` saying which when the file is parsed again.

    `owner` is the outermost function around it, or "" where that is the module; `lines` are those
    of the statement, so that a test which runs none of them cannot notice it.
    """

    name: str  # the same while the function and the changed expression are
    owner: str
    before: str
    after: str
    lines: tuple[int, int]
    node: int
    choice: int

    def __str__(self) -> str:
        return f"{self.name} {self.owner or 'module'}: {self.before} -> {self.after}"


def mutants_of(source: str, module: str) -> list[Mutant]:
    """Return the mutants of a file in the order of its text; `module` is part of their names."""
    tree = _parsed(source)
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    seen: Counter[tuple[str, str, str]] = Counter()
    found = []
    for site in _sites(tree):
        for choice, (before, after) in enumerate(_texts(site)):
            what = (site.owner, before, after)
            seen[what] += 1
            digest = hashlib.sha256("\0".join([module, *what, str(seen[what])]).encode())
            found.append(
                Mutant(
                    digest.hexdigest()[:8],
                    site.owner,
                    _short(before),
                    _short(after),
                    site.lines,
                    numbers[id(site.node)],
                    choice,
                )
            )
    return found


def apply(source: str, mutant: Mutant) -> ast.Module:
    """Return the syntax tree of `source` with the mutant's change."""
    tree = _parsed(source)
    for number, node in enumerate(ast.walk(tree)):
        if number == mutant.node:
            change, _ = _changes(node)[mutant.choice]
            change()
            return ast.fix_missing_locations(tree)
    raise ValueError(f"{mutant} is no mutant of this source")


def _parsed(source: str) -> ast.Module:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            node.slice.is_index = True  # type: ignore[attr-defined]
    return tree


@dataclass(frozen=True)
class _Site:
    node: ast.AST
    shown: ast.AST  # the expression that a reader needs to recognise the change
    owner: str
    lines: tuple[int, int]


def _sites(tree: ast.Module) -> Iterator[_Site]:
    yield from _under(tree, "", [], (0, 0))


def _under(
    node: ast.AST,
    owner: str,
    scopes: list[str],
    lines: tuple[int, int],
    above: ast.AST | None = None,
) -> Iterator[_Site]:
    if isinstance(node, _LEFT_OUT) or _is_text(node) or _is_for_types(node):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return  # an assertion
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        scopes = [*scopes, node.name]
        if isinstance(node, _FUNCTIONS) and not owner:
            owner = ".".join(scopes)
    if isinstance(node, ast.stmt):
        lines, above = _own_lines(node), None
    if _changes(node):
        yield _Site(node, above if isinstance(node, ast.Constant) and above else node, owner, lines)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                around = node if isinstance(node, ast.expr) else above
                yield from _under(child, owner, scopes, lines, around)


def _own_lines(node: ast.stmt) -> tuple[int, int]:
    """Return the lines of a statement, of a compound one those before its body."""
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno
    return node.lineno, max(node.lineno, last or 0)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _texts(site: _Site) -> list[tuple[str, str]]:
    before = _written(site.shown)
    texts = []
    for change, undo in _changes(site.node):
        change()
        texts.append((before, _written(site.shown)))
        undo()
    return texts


def _written(node: ast.AST) -> str:
    if isinstance(node, (ast.If, ast.While)):
        return f"if {ast.unparse(node.test)}"
    if getattr(node, "left_out", False):
        return "pass"
    return ast.unparse(node)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 70 else line[:67] + "..."


Change = tuple[Callable[[], None], Callable[[], None]]


def _changes(node: ast.AST) -> list[Change]:
    """Return what may be changed at this node: (change it, change it back) each."""
    match node:
        case ast.Compare(ops=[op]):
            return [_set(node, "ops", [other()]) for other in _COMPARISONS[type(op)]]
        case ast.Compare():
            return [
                _set(node, "ops", [*node.ops[:n], other(), *node.ops[n + 1 :]])
                for n, op in enumerate(node.ops)
                for other in _COMPARISONS[type(op)]
            ]
        case ast.BinOp(op=ast.Add()) | ast.AugAssign(op=ast.Add()):
            return [_set(node, "op", ast.Sub())]
        case ast.BinOp(op=ast.Sub()) | ast.AugAssign(op=ast.Sub()):
            return [_set(node, "op", ast.Add())]
        case ast.BoolOp(op=op):
            return [_set(node, "op", ast.Or() if isinstance(op, ast.And) else ast.And())]
        case ast.UnaryOp(op=ast.Not()):
            return [_become(node, node.operand)]
        case ast.UnaryOp(op=ast.USub()):
            return [_become(node, node.operand)]
        case ast.Constant(value=bool(value)):
            return [_set(node, "value", not value)]
        case ast.Constant(value=0) if getattr(node, "is_index", False):
            return [_set(node, "value", 1)]  # the last of one element is its first
        case ast.Constant(value=int(value)):
            return [_set(node, "value", value + 1), _set(node, "value", value - 1)]
        case ast.Call(func=ast.Name(id=name)) if name in _SWAPPED:
            return [_set(node.func, "id", _SWAPPED[name])]
        case ast.Call(func=ast.Attribute(attr=name)) if name in _SWAPPED:
            return [_set(node.func, "attr", _SWAPPED[name])]
        case ast.If() | ast.While() | ast.IfExp() if not isinstance(node.test, _NEGATED):
            return [_set(node, "test", ast.UnaryOp(ast.Not(), node.test))]
        case ast.Return(value=value) if value is not None and not _is_no(value):
            return [_set(node, "value", ast.Constant(None))]
        case (
            ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom())
            | ast.Continue()
            | ast.Break()
        ):
            return [_leave_out(node)]
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return [_leave_out(node)]
    return []


def _is_no(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value in (None, False)


def _set(node: ast.AST, field: str, value: object) -> Change:
    old = getattr(node, field)
    return (lambda: setattr(node, field, value)), (lambda: setattr(node, field, old))


def _become(node: ast.AST, other: ast.AST) -> Change:
    """Make `node` another expression in its place: the tree's parents need not be known."""
    kind, fields = type(node), dict(vars(node))

    def change() -> None:
        node.__class__ = type(other)
        vars(node).clear()
        vars(node).update(vars(other))

    def undo() -> None:
        node.__class__ = kind
        vars(node).clear()
        vars(node).update(fields)

    return change, undo


def _leave_out(node: ast.stmt) -> Change:
    nothing = ast.Pass(lineno=node.lineno, col_offset=node.col_offset)
    nothing.left_out = True  # type: ignore[attr-defined]
    return _become(node, nothing)
