"""One line of an examination: what was looked at, what was found, and what to do about it."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


class FindingState(enum.StrEnum):
    """How something is; what is optional and not there is `ABSENT`, which is no fault."""

    OK = "ok"
    ABSENT = "absent"
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """What was looked at and found; `advice` says what to do where it is not in order."""

    name: str
    state: FindingState
    text: str
    advice: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return plain values for JSON."""
        return {
            "name": self.name,
            "state": self.state.value,
            "text": self.text,
            "advice": self.advice,
        }


Findings = Iterator[Finding]


def ok(name: str, text: str) -> Finding:
    """Return a finding of what is in order."""
    return Finding(name, FindingState.OK, text)


def absent(name: str, text: str, advice: str) -> Finding:
    """Return a finding of what is not there and may be missing."""
    return Finding(name, FindingState.ABSENT, text, advice)


def wrong(name: str, text: str, advice: str) -> Finding:
    """Return a finding of a fault."""
    return Finding(name, FindingState.WRONG, text, advice)


def all_well(findings: Iterable[Finding]) -> bool:
    """Return whether nothing is wrong."""
    return all(finding.state is not FindingState.WRONG for finding in findings)
