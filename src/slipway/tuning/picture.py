"""A page about a search: how the best came down, what was tried, what failed, and what won."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from slipway.toolchain.link import write_file
from slipway.tuning.database import Database, TrialRow
from slipway.tuning.task import TuningTask

WIDTH, HEIGHT = 560, 120
STYLE = """
:root { color-scheme: light dark; --line: #0a62a9; --bad: #b3261e; --quiet: #666; }
@media (prefers-color-scheme: dark) { :root { --line: #7cc4ff; --bad: #ff9d94; --quiet: #aaa; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
svg { width: 100%; height: auto; border: 1px solid var(--quiet); }
polyline { fill: none; stroke: var(--line); stroke-width: 2; }
circle { fill: var(--quiet); } circle.bad { fill: var(--bad); }
code { overflow-wrap: anywhere; } .quiet { color: var(--quiet); }
"""


@dataclass(frozen=True)
class Curve:
    """What is shown of a task: the score of each trial, and the best so far, 1 at first."""

    scores: tuple[float, ...]
    best: tuple[float, ...]


def curve_of(trials: Sequence[TrialRow]) -> Curve:
    """Return the scores of trials and the best so far; only what was verified may be the best."""
    best, lowest = [], 1.0
    for trial in trials:
        if trial.verified and not trial.kind:
            lowest = min(lowest, trial.score)
        best.append(lowest)
    return Curve(tuple(trial.score for trial in trials), tuple(best))


def search_page(
    tasks: Sequence[TuningTask],
    database: Database,
    device: str,
    title: str,
    why: Mapping[str, str] | None = None,
) -> str:
    """Return a self-contained page about what a database knows of tasks on a device.

    `why` explains the choices, by the tasks' keys.
    """
    parts = [_section(t, database.trials(t, device), (why or {}).get(t.key, "")) for t in tasks]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f'<p class="quiet">On {escape(device)}. A score is the time over that of the default; '
        "a dot is a trial, the line the best one whose results were right.</p>"
        + "".join(parts)
        + "</body></html>\n"
    )


def write_search_page(
    path: Path,
    tasks: Sequence[TuningTask],
    database: Database,
    device: str,
    title: str,
    why: Mapping[str, str] | None = None,
) -> None:
    """Write the page about a search."""
    write_file(path, search_page(tasks, database, device, title, why).encode())


def _section(task: TuningTask, trials: Sequence[TrialRow], why: str = "") -> str:
    name = task.layers[0] if task.layers else task.name
    head = f"<h2>{escape(name)}</h2><p><code>{escape(str(task))}</code></p>"
    if not trials:
        return head + '<p class="quiet">Nothing was tried.</p>'
    failed = Counter(trial.kind for trial in trials if trial.kind)
    won = min((t for t in trials if t.verified and not t.kind), key=lambda t: t.score, default=None)
    parts = [f"{len(trials)} trials"]
    parts += [f"{count} failed ({escape(kind)})" for kind, count in sorted(failed.items())]
    if won is None or won.score >= 1:
        parts.append("nothing was faster than the default")
    else:
        parts.append(f"the best takes {won.score:.2f} of the default's time: ")
        parts[-1] += f"<code>{escape(won.candidate.text)}</code>"
    first = next((t.error for t in trials if t.error), "")
    told = f'<p class="quiet">The first failure: {escape(first)}</p>' if first else ""
    reason = f"<details><summary>Why</summary><p>{escape(why)}</p></details>" if why else ""
    return head + _picture(curve_of(trials)) + f"<p>{'; '.join(parts)}</p>" + reason + told


def _picture(curve: Curve) -> str:
    """Return scores from 0 to twice the default's time, in the order of the trials."""
    step = WIDTH / max(1, len(curve.scores))

    def at(index: int, score: float) -> tuple[float, float]:
        return (index + 0.5) * step, HEIGHT * (1 - min(score, 2.0) / 2)

    dots = []
    for index, score in enumerate(curve.scores):
        x, y = at(index, score)
        kind = "" if score < float("inf") else ' class="bad"'
        dots.append(f'<circle{kind} cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>')
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(i, s) for i, s in enumerate(curve.best)))
    caption = f"Scores of {len(curve.scores)} trials; the best is {min(curve.best):.2f}"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{caption}">'
        f'{"".join(dots)}<polyline points="{line}"/></svg>'
    )
