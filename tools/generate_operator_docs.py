"""Write docs/operators.md from the operator registry and the importers' tables.

python tools/generate_operator_docs.py            # writes the page
python tools/generate_operator_docs.py --check    # says whether it is up to date
"""

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from operator_origins import Origins, origins, table

GROUPS = (
    ("floats", ("float16", "bfloat16", "float32", "float64")),
    ("integers", ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")),
    ("bool", ("bool",)),
)
PAGE = Path(__file__).parent.parent / "docs" / "operators.md"
HEAD = """# Operators

*Written by `tools/generate_operator_docs.py` from the registry; do not edit.*

Each operator is one section of a file in `src/slipway/relay/ops/`: attributes, type relation, NumPy
reference, tensor expression, fusion kind, counts, sample cases.  `relay.<name>` builds a call
(`relay.nn.conv2d`), but of `vision.select_boxes` and `vision.suppress_boxes`, which only importers
make; attributes not given have the default shown.  Types are those that
the first argument may hold; what only moves elements takes the small types too (docs/onnx.md).
"Tuned for" names the backends (`src/slipway/backends`) with a strategy of the operator's own; in
the others it has that of its fusion kind.  The last column has the operators of model formats that
become this one alone; the tables below say everything that an operator of a format may become, as
the importers report it for the examples of their tests.

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


def operators(formats: dict[str, Origins]) -> list[str]:
    """Return the table of relay operators."""
    from slipway.relay.op_registry import load_ops

    lines = [
        "| operator | arguments | attributes | types | fusion | tuned for | meaning | in models |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, definition in sorted(load_ops().items()):
        names = []
        for form, found in formats.items():
            alone = sorted(n for n, used in found.items() if used.get(name))
            names += [f"{form} {', '.join(alone)}"] if alone else []
        cells = (
            f"`{name}`",
            ", ".join(definition.arguments),
            attributes(definition).replace("|", "\\|"),
            element_types(definition),
            definition.pattern.name.lower(),
            tuned(name),
            definition.doc.replace("|", "\\|"),
            "; ".join(names),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def element_types(definition: Any) -> str:
    """Return the element types of the first argument with which the sample cases are typed."""
    from slipway.errors import TypeInferenceError

    served = set()
    for case in definition.cases:
        given = case.dtypes or ("float32",) * len(case.shapes)
        for dtype in (t for _, members in GROUPS for t in members):
            kinds = [dtype if k == given[0] else k for k in given] if given else []
            try:
                definition.infer(case.attrs, _types(case.shapes, kinds))
            except TypeInferenceError:
                continue
            if given:
                served.add(dtype)
    shown = [
        group if set(members) <= served else ", ".join(t for t in members if t in served)
        for group, members in GROUPS
        if served.intersection(members)
    ]
    return "all" if len(served) == sum(len(m) for _, m in GROUPS) else ", ".join(shown)


def _types(shapes: Any, kinds: list[str]) -> list[Any]:
    from slipway.relay.types import TensorType, TupleType

    return [
        TupleType(tuple(TensorType(tuple(s), kind) for s in shape))
        if isinstance(shape, list)
        else TensorType(tuple(shape), kind)
        for shape, kind in zip(shapes, kinds, strict=True)
    ]


def tuned(name: str) -> str:
    """Return the backends that have a strategy of the operator's own, not of its fusion kind."""
    from slipway.backends.strategy import registered

    own = {entry.home.split(".")[2] for entry in registered(name) if entry.op == name}
    return ", ".join(sorted(own))


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
        formats = origins()
        lines = [*operators(formats), *onnx_operators(), "", *table(formats["ONNX"])]
        lines += ["", "## TFLite", "", *table(formats["TFLite"])]
        lines += [*torch_operators(), "", *table(formats["PyTorch"])]
        return HEAD + "\n".join(lines) + "\n"


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
