"""The words of relay's text: what `relay.text.parser` puts together."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from slipway.errors import GraphTextError

_DIGITS = r"(?:\d+\.?\d*(?:[eE][+-]?\d+)?|inf|nan)"
_TOKEN = re.compile(
    rf"""(?P<space>\s+)
      | (?P<version>\#\[version\s*=\s*"[^"]*"\s*\]|v\d+\.\d+\.\d+(?![\w.]))
      | (?P<arrow>->)
      | (?P<local>%[A-Za-z0-9_./:\-]*[A-Za-z0-9_])
      | (?P<module>@[A-Za-z0-9_.]+)
      | (?P<meta>meta\[[A-Za-z0-9_.]+\]\[\d+\])
      | (?P<string>"[^"]*"|'[^']*')
      | (?P<number>{_DIGITS}(?![A-Za-z_.]*\()(?:u?int\d+|float\d+|bfloat16|bool|[fiu]\d*)?)
      | (?P<word>[A-Za-z_][A-Za-z0-9_.]*)
      | (?P<infix>==|!=|<=|>=|[+*/<>-])
      | (?P<sign>[(){{}}\[\],:;=.?])""",
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(rf"(-?{_DIGITS})(.*)")
_COMMENT = re.compile(r"""/\*|\*/|//[^\n]*|"[^"]*"|'[^'\n]*'|%[A-Za-z0-9_./:\-]+""")
# The letters behind a number -> the dtype; digits after them say the bits.
_LETTERS = {"f": "float", "i": "int", "u": "uint"}


def error_at(text: str, problem: str, position: int, name: str = "from_string") -> GraphTextError:
    """Return the error of `problem` at a position, with line and column, and the text's name."""
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    source = "" if name == "from_string" else f" {name}"
    return GraphTextError(f"relay text{source}, line {line}, column {column}: {problem}")


def without_comments(text: str) -> str:
    """Return `text` with blanks in place of comments, which may be nested; lines stay."""
    parts: list[str] = []
    last, depth, opened = 0, 0, 0
    for match in _COMMENT.finditer(text):
        word = match.group()
        if word == "/*":
            if depth == 0:
                parts.append(text[last : match.start()])
                last = opened = match.start()
            depth += 1
        elif word == "*/":
            depth -= 1
            if depth < 0:
                raise error_at(text, "'*/' ends no comment", match.start())
            if depth == 0:
                parts.append(_blank(text[last : match.end()]))
                last = match.end()
        elif word.startswith("//") and depth == 0:
            parts += [text[last : match.start()], _blank(word)]
            last = match.end()
    if depth:
        raise error_at(text, "this comment has no end", opened)
    return "".join([*parts, text[last:]])


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def tokens(code: str) -> Iterator[tuple[str, str, int]]:
    """Yield (kind, text, position) of each word."""
    position = 0
    while position < len(code):
        match = _TOKEN.match(code, position)
        if match is None:
            raise error_at(code, f"{code[position]!r} begins nothing", position)
        kind = match.lastgroup or ""
        if kind != "space":
            yield kind, match.group(), position
        position = match.end()


def number(text: str) -> np.ndarray:
    """Return the value that a number with its suffix stands for: ``1``, ``2i64``, ``1.5e-3f``.

    Without a suffix a whole number is int32, or int64 where it needs the digits.  Raises
    OverflowError for what its dtype cannot hold, and TypeError for a suffix that is no dtype.
    """
    match = _NUMBER.fullmatch(text)
    assert match is not None
    digits, suffix = match.groups()
    whole = re.fullmatch(r"-?\d+", digits) is not None
    value = int(digits) if whole else float(digits)
    if not suffix:
        small = whole and -(2**31) <= value < 2**31
        dtype = "float32" if not whole else "int32" if small else "int64"
    elif suffix[0] in _LETTERS and (len(suffix) == 1 or suffix[1:].isdigit()):
        dtype = _LETTERS[suffix[0]] + (suffix[1:] or "32")
    else:
        dtype = suffix
    kind = np.dtype(dtype)
    if whole and kind.kind in "iu" and not np.iinfo(kind).min <= value <= np.iinfo(kind).max:
        raise OverflowError(f"it is no number of type {dtype}")
    with np.errstate(over="ignore"):
        made = np.asarray(value, dtype)
    if np.issubdtype(made.dtype, np.floating) and np.isinf(made) and digits.lstrip("-") != "inf":
        raise OverflowError(f"the largest {dtype} is {np.finfo(made.dtype).max}")
    return made
