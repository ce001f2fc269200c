"""What an importer makes of each node of a model: one report, whatever the format.

The same list is the table of ``slipway check`` and, cut down to what is unsupported, the error of
an import.  Importers fill a `ReportBook` while they convert.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from slipway.errors import OpNotImplemented
from slipway.relay.expr import Call, Constant, Expr
from slipway.relay.visit import children

MAX_NAMES = 8  # nodes named per problem in an error

NATIVE = "native"  # one operator of the compiler
REWRITTEN = "rewritten"  # several operators, named in the detail
FOLDED = "folded"  # known at compile time, or nothing to do: costs nothing at run time
UNSUPPORTED = "unsupported"  # the detail says why
UNCHECKED = "unchecked"  # what feeds it is unsupported, and the file does not say its type
STATUSES = (FOLDED, NATIVE, REWRITTEN, UNCHECKED, UNSUPPORTED)  # from good to bad


@dataclass(frozen=True)
class NodeReport:
    """What becomes of one node of the model: a status of `STATUSES`, and what explains it."""

    name: str
    kind: str
    status: str
    detail: str


@dataclass
class ReportBook:
    """Reports in the order of the nodes; a node of an unrolled loop is entered once.

    `survey` asks for a report of every node; without it only problems are entered.
    """

    survey: bool = False
    entries: list[NodeReport] = field(default_factory=list)
    _numbers: dict[Hashable, int] = field(default_factory=dict)

    def enter(self, name: str, kind: str, status: str, detail: str, key: Hashable = None) -> None:
        """Add a report; of two for one node (one `key`, by default its name) the worse stays."""
        made = NodeReport(name, kind, status, detail)
        at = self._numbers.setdefault((name, kind) if key is None else key, len(self.entries))
        if at == len(self.entries):
            self.entries.append(made)
        elif STATUSES.index(status) > STATUSES.index(self.entries[at].status):
            self.entries[at] = made

    def problem(self, name: str, kind: str, why: str, key: Hashable = None) -> None:
        """Add a node that cannot be imported."""
        self.enter(name, kind, UNSUPPORTED, why, key)

    def unchecked(self, name: str, kind: str, key: Hashable = None) -> None:
        """Add a node whose inputs are of unknown type, because a node before it is unsupported."""
        self.enter(name, kind, UNCHECKED, "its inputs come from unsupported nodes", key)

    def done(self, name: str, kind: str, results: Sequence[Expr], key: Hashable = None) -> None:
        """Add a node that became `results`."""
        if self.survey:
            self.enter(name, kind, *status_of(results, name), key)

    def mark(self) -> int:
        """Return the present length, for `take`."""
        return len(self.entries)

    def take(self, mark: int) -> list[NodeReport]:
        """Remove the entries since `mark`, and return those that are problems."""
        later = self.entries[mark:]
        del self.entries[mark:]
        self._numbers = {key: at for key, at in self._numbers.items() if at < mark}
        return [entry for entry in later if entry.status == UNSUPPORTED]

    @property
    def problems(self) -> list[NodeReport]:
        """The nodes that cannot be imported."""
        return [entry for entry in self.entries if entry.status == UNSUPPORTED]

    def error(self, where: str = "") -> OpNotImplemented:
        """Return the error that names everything unsupported, gathered by operator and reason."""
        return OpNotImplemented(problem_text(self.entries, where))


def problem_text(entries: Iterable[NodeReport], where: str = "") -> str:
    """Return the message on what is unsupported; `where` is put after the count of nodes."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        if entry.status == UNSUPPORTED:
            grouped.setdefault((entry.kind, entry.detail), []).append(entry.name)
    kinds = len({kind for kind, _ in grouped})
    nodes = sum(len(names) for names in grouped.values())
    lines = [
        f"the model uses {kinds} operator{'s' * (kinds != 1)} that Slipway cannot import "
        f"({nodes} node{'s' * (nodes != 1)}{where}):"
    ]
    for (kind, problem), names in sorted(grouped.items()):
        shown = ", ".join(names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else "")
        lines.append(f"  {kind} x {len(names)} ({shown}): {problem}")
    return "\n".join(lines)


def counts(entries: Iterable[NodeReport]) -> dict[str, int]:
    """Return how many nodes have each status, in the order of `STATUSES`."""
    found = Counter(entry.status for entry in entries)
    return {status: found[status] for status in STATUSES if found[status]}


def status_of(results: Sequence[Expr], name: str) -> tuple[str, str]:
    """Return (status, detail) of the node `name`, which became `results`."""
    used = operators_of(results, name)
    if len(used) == 1:
        return NATIVE, used[0]
    if used:
        return REWRITTEN, ", ".join(used)
    constant = all(isinstance(result, Constant) for result in results)
    return FOLDED, "constant" if constant else "no operation"


def operators_of(results: Sequence[Expr], name: str) -> list[str]:
    """Return the relay operators that the node `name` became, each once, in order.

    A node inside the definition of `name` has a span that begins with it and a slash.
    """
    found: dict[str, None] = {}
    seen: set[int] = set()
    stack = list(reversed(results))
    while stack:
        expr = stack.pop()
        if id(expr) in seen:
            continue
        seen.add(id(expr))
        if isinstance(expr, Call):
            if expr.span != name and not expr.span.startswith(f"{name}/"):
                continue
            found[getattr(expr.op, "name", "function")] = None
        stack.extend(children(expr))
    return list(reversed(found))
