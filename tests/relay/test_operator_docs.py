"""docs/operators.md lists every operator."""

from pathlib import Path

from slipway.relay.op_registry import load_ops

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"


def test_every_operator_is_in_the_page():
    text = PAGE.read_text(encoding="utf-8")
    missing = [name for name in load_ops() if f"| `{name}` |" not in text]
    assert not missing, "run: python tools/generate_operator_docs.py"
