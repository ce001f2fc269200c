"""The field's words: those that docs/glossary.md says to use, in sources and documents alike."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUFFIXES = {".py", ".md", ".c", ".h", ".mjs", ".rs", ".toml"}
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
SAYS_SO = ("docs/glossary.md", "tests/docs/test_words.py")


def texts():
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
