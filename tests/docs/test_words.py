"""The field's words: those that docs/glossary.md says to use, in sources and documents alike."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUFFIXES = {".py", ".md", ".c", ".h", ".mjs", ".js", ".rs", ".toml"}
# A phrase of our own -> the field's.
INSTEAD = {
    r"greatest": "largest, maximum",
    r"side[ _]by[ _]side": "contiguous, packed, concatenated",
    r"written[ _]out": "unrolled, expanded",
    r"ask(s|ed|ing)?[ _]ahead": "prefetch",
    r"fused[ _]behind": "epilogue",
    r"fill(s|ed)?[ _]up": "pad",
    r"power of e": "exponential",
    r"(?<!lane[ _])by[ _]lane(?!-)": "lane-indexed",
    r"rest of (a|the) division": "remainder",
}
# What variables, parameters and attributes are not called.
IDENTIFIERS = {
    "place": "position, index, indices, offset, location",
    "places": "positions, indices, offsets",
    "least": "minimum, smallest, lower_bound",
    "near": "adjacent, contiguous, inner, hint",
    "ask": "request, query",
    "asks": "wants, requests",
    "asked": "requested, wanted, declared",
    "turn": "iteration, round, rotation",
    "turns": "iterations, rounds, rotations",
    "behind": "after, later, tail",
    "border": "halo, padding, outline",
    "squares": "mmla (of a matrix instruction)",
}
# A farm's device behind a proxy; sums of squares.
THEIR_OWN = {
    "behind": ("rpc/farm/", "benchmarks/operators.py", "benchmarks/sweep.py"),
    "squares": ("norm", "lrn", "relay/ops", "frontends/", "topi/testing", "fuzz_graphs"),
}
SAYS_SO = ("docs/glossary.md", "tests/docs/test_words.py")


@cache
def texts():
    return list(all_texts())


def all_texts():
    for folder in ("src/slipway", "docs", "benchmarks", "tools", "tests", "examples"):
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in SUFFIXES and name not in SAYS_SO and "/include/dlpack/" not in name:
                yield name, path.read_text(encoding="utf-8")


def test_texts_use_the_words_of_the_field():
    own = re.compile("|".join(rf"(?<![a-z]){phrase}(?![a-z])" for phrase in INSTEAD), re.IGNORECASE)
    found = [
        f"{name}:{number}: {match.group(0)!r}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        for match in own.finditer(line)
    ]
    assert not found, f"see docs/glossary.md; instead: {INSTEAD}\n" + "\n".join(found)


def test_the_glossary_has_one_line_per_term():
    lines = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    terms = [line.split("|")[1].strip() for line in lines if line.startswith("| ")][1:]
    assert terms[0] != "term"
    names = [name.strip().lower() for term in terms for name in term.split(",")]
    assert len(names) == len(set(names))
    assert terms == sorted(terms, key=str.lower)


def bound_names(tree):
    """Yield (name, line, what is assigned) of variables, parameters and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg, node.lineno, None
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield getattr(node, "id", None) or node.attr, node.lineno, None
        if isinstance(node, ast.Assign):
            for target in node.targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                for name in names:
                    if isinstance(name, ast.Name):
                        yield name.id, name.lineno, node.value


def is_number(value):
    """Return whether a value is what a division, a difference or the split of a loop leaves."""
    if isinstance(value, ast.BinOp):
        return isinstance(value.op, ast.Mod | ast.Sub)
    name = ast.unparse(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
    owner = ast.unparse(value.func).partition(".")[0] if name == "split" else "stage"
    return name in {"divmod", "floormod", "fmod", "split", "modular"} and owner == "stage"


def not_settled(name, line, value, file):
    if name in IDENTIFIERS and not any(part in file for part in THEIR_OWN.get(name, ())):
        return f"{file}:{line}: {name}; instead: {IDENTIFIERS[name]}"
    if name == "rest" and value is not None and is_number(value):
        return f"{file}:{line}: rest; instead: tail (of a loop), remainder (of a division)"
    if name == "words" and isinstance(value, ast.JoinedStr):
        return f"{file}:{line}: words; instead: message"
    return None


def test_identifiers_use_the_words_of_the_field():
    names = "|".join((*IDENTIFIERS, "rest", "words"))
    likely = re.compile(rf"\b(?:{names})\b(?:, \w+)*\s*(?:[=:,)]| in )")
    found = [
        fault
        for file, text in texts()
        if file.endswith(".py")
        if likely.search(text)
        for entry in bound_names(ast.parse(text))
        if (fault := not_settled(*entry, file))
    ]
    assert not found, "see docs/glossary.md\n" + "\n".join(found)


def code_of(text):
    """Return C, JavaScript or Rust without its comments and texts."""
    return re.sub(
        r"""/\*.*?\*/|(?<!:)//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`""",
        lambda match: "\n" * match[0].count("\n"),
        text,
        flags=re.DOTALL,
    )


def test_names_in_c_and_javascript_use_the_words_of_the_field():
    own = re.compile(rf"(?<![\w-])(?:{'|'.join(IDENTIFIERS)})(?![\w-])")
    found = [
        f"{file}:{number}: {match[0]}; instead: {IDENTIFIERS[match[0]]}"
        for file, text in texts()
        if file.startswith("src/") and file.endswith((".c", ".h", ".mjs", ".js", ".rs"))
        if own.search(text)
        for number, line in enumerate(code_of(text).splitlines(), 1)
        for match in own.finditer(line)
    ]
    assert not found, "see docs/glossary.md\n" + "\n".join(found)


def test_identifiers_that_mean_something_else_are_seen():
    wrong = """
rest = n % 4
a, rest = divmod(n, 4)
words = f"{n} is odd"
for place in n:
    self.least = 1
"""
    found = {not_settled(*entry, "f.py") for entry in bound_names(ast.parse(wrong))}
    assert len(found - {None}) == 5
    assert code_of("int at; /* a place */ f('x', \"place\"); // place").split() == [
        "int",
        "at;",
        "f(,",
        ");",
    ]
    fine = """
first, *rest = n
rest = n[1:]
head, rest = text.split(" ")
words = text.split()
"""
    assert not any(not_settled(*entry, "f.py") for entry in bound_names(ast.parse(fine)))
