"""What people say of a device: a note, tags, for whom it is kept and until when."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_NOTE = 400
MAX_TAGS = 12
MAX_TAG = 32
_WORDS = re.compile(r"[\s,;()@]+")


@dataclass(frozen=True)
class Remarks:
    """`reserved_until` is Unix time; a reservation ends by itself."""

    note: str = ""
    tags: tuple[str, ...] = ()
    reserved_for: str = ""
    reserved_until: float = 0.0
    is_drained: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is said."""
        return self == NO_REMARKS

    @property
    def is_reserved(self) -> bool:
        """Whether it is kept for somebody now."""
        return bool(self.reserved_for) and time.time() < self.reserved_until

    @property
    def reservation(self) -> str:
        """For whom it is kept and until when, on the tracker's clock; "" for nobody."""
        if not self.is_reserved:
            return ""
        return f"{self.reserved_for} until {until_text(self.reserved_until)}"

    def allows(self, holder: str) -> bool:
        """Return whether the device may go to a client of this name ("slipway 0.1 ana@here 7").

        A reservation names a person or a machine of it, whole words.
        """
        if not self.is_reserved:
            return True
        words = [word.lower() for word in _WORDS.split(holder)]
        wanted = [word.lower() for word in _WORDS.split(self.reserved_for)]
        return any(words[i : i + len(wanted)] == wanted for i in range(len(words)))

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "note": self.note,
            "tags": list(self.tags),
            "reserved_for": self.reserved_for,
            "reserved_until": self.reserved_until,
            "is_drained": self.is_drained,
        }


NO_REMARKS = Remarks()


def until_text(at: float) -> str:
    """Return a time (Unix) with its zone and how long it is from now."""
    minutes = max(0, round((at - time.time()) / 60))
    length = f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
    return f"{time.strftime('%a %H:%M %Z', time.localtime(at))} (in {length})"


def remarks_of(given: Mapping[str, Any]) -> Remarks:
    """Return what `Remarks.to_json` wrote."""
    return Remarks(
        str(given.get("note", "")),
        tuple(map(str, given.get("tags", ()))),
        str(given.get("reserved_for", "")),
        float(given.get("reserved_until", 0.0)),
        bool(given.get("is_drained", False)),
    )


def tags_of(text: str) -> tuple[str, ...]:
    """Return the tags of a text with commas: each once, bounded in number and length."""
    tags = (" ".join(tag.split())[:MAX_TAG] for tag in text.split(","))
    return tuple(dict.fromkeys(tag for tag in tags if tag))[:MAX_TAGS]
