"""The lines of one LLVM function under construction, and the caches that follow its blocks."""

from __future__ import annotations


class Writer:
    """Appends instructions; `block` is the label of the block being filled.

    `scopes` holds values that may be used again where their block dominates: a scope is entered
    with each loop body and branch, and forgotten on leaving it.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.entry: list[str] = []  # allocas, which go in front of everything
        self.block = "entry"
        self.count = 0
        self.scopes: list[dict[object, str]] = [{}]

    def name(self) -> str:
        """Return a fresh SSA name."""
        self.count += 1
        return f"%v{self.count}"

    def label(self, hint: str) -> str:
        """Return a fresh block label."""
        self.count += 1
        return f"{hint}{self.count}"

    def put(self, rhs: str) -> str:
        """Append ``%fresh = rhs`` and return the name."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {rhs}")
        return name

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {text}")

    def start(self, label: str) -> None:
        """Begin the block `label`."""
        self.lines.append(f"{label}:")
        self.block = label

    def branch(self, label: str) -> None:
        """End the block with a jump."""
        self.lines.append(f"  br label %{label}")

    def branch_if(self, condition: str, yes: str, no: str, weights: str = "") -> None:
        """End the block with a choice."""
        self.lines.append(f"  br i1 {condition}, label %{yes}, label %{no}{weights}")

    def known(self, key: object) -> str | None:
        """Return the value cached for `key` in any scope around, or None."""
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        return None

    def remember(self, key: object, value: str) -> str:
        """Cache `value` for `key` in the innermost scope."""
        self.scopes[-1][key] = value
        return value
