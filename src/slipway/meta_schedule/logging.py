"""Loggers of searches (classic): what is said goes to the logger "slipway.tuning"."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slipway.classic.placeholders import SCHEDULES, placeholder_of

ROOT = "slipway.tuning"


def get_logger(name: str) -> logging.Logger:
    """Return the logger of a name, below that of searches."""
    return logging.getLogger(f"{ROOT}.{name}")


def get_loggers_from_work_dir(
    work_dir: str | Path, task_names: Sequence[str]
) -> list[logging.Logger]:
    """Return a logger for each task, which also writes to a file in ``work_dir/logs``."""
    folder = Path(work_dir) / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for number, name in enumerate(task_names):
        logger = get_logger(f"task_{number}_{name}")
        if not logger.handlers:
            logger.addHandler(
                logging.FileHandler(folder / f"{logger.name}.log", encoding="utf-8", delay=True)
            )
        found.append(logger)
    return found


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, SCHEDULES)
