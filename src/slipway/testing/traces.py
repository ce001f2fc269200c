"""Whether the steps of a schedule, written down and read again, give the same function."""

from __future__ import annotations

from collections.abc import Sequence

from slipway import tir
from slipway.blocks.schedule import Schedule, Trace
from slipway.errors import ArgumentValueError, ScheduleError
from slipway.ir.function import IRModule, PrimFunc
from slipway.ir.structural import assert_structural_equal


def verify_trace_roundtrip(
    sch: Schedule,
    mod: PrimFunc | IRModule,
    *,
    debug_mask: str | int = "all",
    text_format: str | Sequence[str] = ("python", "json"),
) -> Schedule:
    """Take the steps of `sch` on `mod` again, from their text, and compare; return that schedule.

    Raises ScheduleError where the steps have another text then, and StructuralMismatchError where
    the function is another one.
    """
    if not isinstance(text_format, str):
        done = [
            verify_trace_roundtrip(sch, mod, debug_mask=debug_mask, text_format=one)
            for one in text_format
        ]
        return done[-1]
    again = Schedule(mod, debug_mask=debug_mask)
    lines = sch.trace.as_python()
    if text_format == "json":
        Trace.apply_json_to_schedule(sch.trace.as_json(), again)
    elif text_format == "python":
        exec("\n".join(lines), {**vars(tir), "tir": tir}, {"sch": again})
    else:
        raise ArgumentValueError(f"text_format is {text_format!r}, not 'python' or 'json'")
    assert_structural_equal(again.mod, sch.mod)
    if again.trace.as_python() != lines:
        raise ScheduleError(
            "the steps have another text when they are taken again:\n"
            + "\n".join([*lines, "and", *again.trace.as_python()])
        )
    return again
