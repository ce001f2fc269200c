"""The text of a size in a .pt2 file: arithmetic of symbols, nothing else.

torch gives such a text to sympy, which evaluates it as Python.
"""

from __future__ import annotations

import ast

from slipway.errors import ModelError

_FUNCTIONS = (
    "Symbol", "Integer", "Rational", "Float", "Add", "Mul", "Pow", "Max", "Min", "Mod", "Abs",
    "And", "Or", "Not", "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "Equality", "Unequality",
    "StrictLessThan", "StrictGreaterThan", "LessThan", "GreaterThan", "Piecewise", "ExprCondPair",
    "floor", "ceiling", "sign", "FloorDiv", "CleanDiv", "CeilDiv", "ModularIndexing", "Where",
    "PythonMod", "CeilToInt", "FloorToInt", "TruncToInt", "TruncToFloat", "RoundToInt",
    "RoundDecimal", "ToFloat", "IntTrueDiv", "FloatTrueDiv", "PowByNatural", "FloatPow", "LShift",
    "RShift", "Identity", "IsNonOverlappingAndDenseIndicator", "OpaqueUnaryFn_sqrt",
)  # fmt: skip
_POWERS = ("Pow", "PowByNatural", "FloatPow", "LShift")
_HIGHEST = 8  # a power of numbers; of sizes it says the rank of something
_LONGEST = 20_000
_DEEPEST = 200  # how deep it nests: some Pythons parse more than sympy gets through
_LARGEST = 2**64
_PLAIN = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Tuple, ast.Load, ast.operator,
    ast.unaryop, ast.cmpop, ast.keyword,
)  # fmt: skip


def check_size_text(text: str, where: str) -> None:
    """Raise ModelError unless `text` is arithmetic of symbols that takes little to evaluate."""
    try:
        if len(text) > _LONGEST:
            raise ValueError
        level: list[ast.AST] = [ast.parse(text.strip(), mode="eval")]
        for _ in range(_DEEPEST):
            for node in level:
                _check(node)
            level = [child for node in level for child in ast.iter_child_nodes(node)]
        if level:
            raise ValueError
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ModelError(
            f"{where} has a size that is no arithmetic of symbols and numbers, and is not "
            f"evaluated: {text[:100]!r}. Export the model again"
        ) from None


def _check(node: ast.AST) -> None:
    """Raise ValueError for what no size is made of."""
    if isinstance(node, ast.Name):
        fits = "__" not in node.id
    elif isinstance(node, ast.Constant):
        number = node.value
        fits = isinstance(number, (int, float)) and abs(number) <= _LARGEST
        fits = fits or (isinstance(number, str) and number.isidentifier() and number.isascii())
    elif isinstance(node, ast.Call):
        fits = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
        if fits and isinstance(node.func, ast.Name) and node.func.id in _POWERS:
            fits = len(node.args) == 2 and _is_power(node.args[0], node.args[1])
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Pow, ast.LShift)):
        fits = _is_power(node.left, node.right)
    else:
        fits = isinstance(node, _PLAIN)
    if not fits:
        raise ValueError


def _is_power(base: ast.AST, exponent: ast.AST) -> bool:
    """Return whether a power stays small: a low one of no other power, or of an unknown height."""
    nested = (ast.Pow, ast.LShift)
    for node in ast.walk(base):
        if isinstance(node, nested) or (isinstance(node, ast.Name) and node.id in _POWERS):
            return False
    while isinstance(exponent, ast.Call) and len(exponent.args) in (1, 2):
        if isinstance(exponent.func, ast.Name) and exponent.func.id == "Symbol":
            return True
        if not isinstance(exponent.func, ast.Name) or exponent.func.id not in (
            "Integer", "Float", "Rational",
        ):  # fmt: skip
            return False
        exponent = exponent.args[0]
    if isinstance(exponent, ast.UnaryOp):
        exponent = exponent.operand
    if isinstance(exponent, ast.Name):
        return True
    number = getattr(exponent, "value", None)
    return isinstance(number, (int, float)) and abs(number) <= _HIGHEST
