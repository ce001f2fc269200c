"""What holds for all templates of a process (classic)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class AutotvmGlobalScope:
    """`silent`: no warning of a template without a log.  The others say nothing here."""

    in_tuning: bool = False
    silent: bool = False


GLOBAL_SCOPE = AutotvmGlobalScope()
