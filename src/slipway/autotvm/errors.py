"""How a trial ended (classic), by number."""

from __future__ import annotations

from enum import IntEnum


class MeasureErrorNo(IntEnum):
    """How a trial ended."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


# What `tuning.schedules.single` calls the ends of a build.
BUILD_ERRORS = {
    "": MeasureErrorNo.NO_ERROR, "build": MeasureErrorNo.COMPILE_HOST,
    "build time": MeasureErrorNo.BUILD_TIMEOUT,
}  # fmt: skip
