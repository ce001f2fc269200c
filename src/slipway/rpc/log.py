"""Logs of trackers, proxies and servers: lines for people, or JSON lines for programs.

An event has a name and fields beside its words; `session` is the same in the tracker's and in the
device's log.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from slipway.errors import printable

FORMATS = ("text", "json")


class _TextLines(logging.Formatter):
    """One line for each event: what peers say of themselves may hold anything."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return printable(super().formatMessage(record))


class _JsonLines(logging.Formatter):
    def __init__(self, program: str) -> None:
        super().__init__()
        self._program = program

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "program": self._program,
            "event": getattr(record, "event", "message"),
            "message": record.getMessage(),
            **{name: value for name, value in fields.items() if value != ""},
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)


def configure(program: str, log_format: str = "text") -> None:
    """Send this process's log to stderr, in one of `FORMATS`."""
    handler = logging.StreamHandler(sys.stderr)
    if log_format == "json":
        handler.setFormatter(_JsonLines(program))
    else:
        handler.setFormatter(_TextLines(f"INFO:root:{program}: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)


def tell(logger: logging.Logger, event: str, message: str, **fields: Any) -> None:
    """Log an event with its fields; costs nothing where nobody listens."""
    if logger.isEnabledFor(logging.INFO):
        logger.info("%s", message, extra={"event": event, "fields": fields})
