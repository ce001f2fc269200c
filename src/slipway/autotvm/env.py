"""What holds for all templates of a process (classic)."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass
class AutotvmGlobalScope:
    """`silent`: no warning of a template without a log.  The others say nothing here."""

    in_tuning: bool = False
    silent: bool = False


GLOBAL_SCOPE = AutotvmGlobalScope()


def reset_global_scope(global_scope: AutotvmGlobalScope) -> None:
    """Take the values of another one, as a process that was started does."""
    for field in fields(global_scope):
        setattr(GLOBAL_SCOPE, field.name, getattr(global_scope, field.name))
