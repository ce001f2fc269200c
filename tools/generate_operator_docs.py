"""Write docs/operators.md from the operator registry and the importers' tables.

python tools/generate_operator_docs.py            # writes the page
python tools/generate_operator_docs.py --check    # says whether it is up to date
"""

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "operators.md"
HEAD = """# Operators

*Written by `tools/generate_operator_docs.py` from the registry; do not edit.*

Each operator is one section of a file in `src/slipway/relay/ops/`: attributes, type relation, NumPy
reference, tensor expression, fusion kind, counts, sample cases.  `relay.<name>` or
`relay.nn.<name>` builds a call; attributes not given have the default shown.

"""


def attributes(definition: Any) -> str:
    """Return the attributes with their defaults, as one line."""
    if definition.attrs_type is None:
        return ""
    defaults = definition.attrs_type._DEFAULTS
    shown = []
    for name in definition.attrs_type.FIELDS:
        value = defaults.get(name)
        text = repr(value) if name in defaults else "required"
        shown.append(f"{name}={text}" if name in defaults else f"{name} ({text})")
    return f"`{', '.join(shown)}`"


def operators() -> list[str]:
    """Return the table of relay operators."""
    from slipway.relay.op_registry import load_ops

    lines = [
        "| operator | arguments | attributes | fusion | meaning |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, definition in sorted(load_ops().items()):
        cells = (
            f"`{name}`",
            ", ".join(definition.arguments),
            attributes(definition).replace("|", "\\|"),
            definition.pattern.name.lower(),
            definition.doc.replace("|", "\\|"),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def onnx_operators() -> list[str]:
    """Return what is said about the ONNX operators."""
    import onnx

    from slipway.frontends.onnx.converters import load_converters

    converters = load_converters()
    newest = {}
    for schema in onnx.defs.get_all_schemas():
        if schema.domain == "" and not schema.deprecated:
            newest[schema.name] = schema
    direct = sorted(n for n in newest if n in converters)
    through = sorted(
        n
        for n, s in newest.items()
        if n not in converters and (s.has_function or s.has_context_dependent_function)
    )
    missing = sorted(set(newest) - set(direct) - set(through))
    return [
        "",
        "## ONNX",
        "",
        f"With a converter ({len(direct)}): {', '.join(direct)}.",
        "",
        f"Through their ONNX definition by other operators ({len(through)}): {', '.join(through)}.",
        "",
        f"Not served ({len(missing)}): {', '.join(missing)}.",
    ]


def torch_operators() -> list[str]:
    """Return the names of the PyTorch operators that have a converter."""
    from slipway.frontends.torch.converters import REFUSED, load_converters

    names = sorted(set(load_converters()) - set(REFUSED))
    aten = [n for n in names if "::" not in n]
    others = [n for n in names if "::" in n]
    return [
        "",
        "## PyTorch",
        "",
        f"ATen operators with a converter, each in all its overloads ({len(aten)}): "
        f"{', '.join(aten)}.",
        "",
        f"Of other namespaces ({len(others)}): {', '.join(others)}.",
        "",
        "Other ATen operators are first taken apart by `torch.export` into these.",
    ]


def page() -> str:
    """Return the whole page."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return HEAD + "\n".join([*operators(), *onnx_operators(), *torch_operators()]) + "\n"


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether the page is current")
    args = parser.parse_args()
    text = page()
    if args.check:
        current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text
        print("docs/operators.md is " + ("up to date" if current else "out of date"))
        return 0 if current else 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
