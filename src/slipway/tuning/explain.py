"""Why a kernel is computed the way it is: its tile, its traffic, its limit, and the other ways."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slipway.backends.backend import compile_target
from slipway.backends.primitive import schedule_primitive
from slipway.compiler.cost import kernel_cost
from slipway.ir.function import IRModule
from slipway.relay.types import flatten
from slipway.target import Target
from slipway.tuning.database import Database, TrialRow
from slipway.tuning.space import Candidate, candidate_of
from slipway.tuning.task import TuningTask, extract_tasks

LOOKED_AT = 256  # other choices that the cost model is asked about
CLEARLY_LESS = 0.98  # of the chosen one's predicted cycles
NAMED = 3  # of them, and of the trials


@dataclass(frozen=True)
class Explanation:
    """What can be said of the choice for one task; cycles are predicted, of one core.

    `arithmetic_cycles` and `memory_cycles` are the fewest that the core's multiply-adds and the
    level that the bytes lie in allow; `others` are choices with their predicted cycles over those
    of this one, `trials` what was measured, the best first; `is_default` says that neither a record
    nor an option changed the choice.
    """

    task: TuningTask
    chosen: Candidate
    cycles: float | None
    flops: float
    bytes: float
    arithmetic_cycles: float
    memory_cycles: float
    level: str
    others: tuple[tuple[Candidate, float], ...]
    trials: tuple[TrialRow, ...] = ()
    is_default: bool = True

    @property
    def limit(self) -> str:
        """What bounds the kernel, whichever way it is computed: "arithmetic", or "traffic"."""
        return "arithmetic" if self.arithmetic_cycles >= self.memory_cycles else "traffic"

    @property
    def paragraph(self) -> str:
        """The explanation in words."""
        sentences = [chosen_text(self.chosen), self._bound(), self._predicted(), self._compared()]
        sentences.append(measured_text(self.chosen, self.trials) if self.trials else self._rule())
        return " ".join(word for word in sentences if word)

    @property
    def _is_float32(self) -> bool:
        return flatten(self.task.problem.in_types[0])[0].dtype == "float32"

    def _bound(self) -> str:
        most = max(self.arithmetic_cycles, self.memory_cycles)
        rate = "" if self._is_float32 else ", at float32's rate,"
        if not self.flops:
            return (
                f"It multiplies nothing: the {self.bytes / 1024:,.1f} KB that it reads and writes "
                f"take {most:,.0f} cycles at least ({self.level})."
            )
        return (
            f"Its {self.flops / 2e6:.3g} million multiply-adds take{rate} "
            f"{self.arithmetic_cycles:,.0f} cycles at least, the {self.bytes / 1024:,.1f} KB that "
            f"it reads and writes {self.memory_cycles:,.0f} ({self.level}): {self.limit} is its "
            f"limit, {most:,.0f} cycles."
        )

    def _predicted(self) -> str:
        if self.cycles is None:
            return "No cost model speaks of it."
        most = max(self.arithmetic_cycles, self.memory_cycles)
        if self.cycles < most:
            return (
                f"Its main loop is predicted to take {self.cycles:,.0f}: it does with fewer "
                "multiply-adds than the definition has, or the model counts a part of the work."
            )
        share = f"{most / self.cycles:.0%} of the limit's rate"
        return f"Its main loop is predicted to take {self.cycles:,.0f}, {share}."

    def _compared(self) -> str:
        if not self.others:
            return "There is no other way to compute it that has a cost model."
        named = "; ".join(f"{c} {ratio:.2f} times" for c, ratio in self.others[:NAMED])
        return f"The nearest others by prediction: {named}."

    def _rule(self) -> str:
        """Say what decided, where nothing was measured: predictions do not compare strategies."""
        if not self.is_default:
            return "Nothing was measured here: a record or an option decided."
        ahead = [c for c, ratio in self.others if ratio < CLEARLY_LESS]
        text = "Nothing was measured: the first strategy that applies was taken, as it sets itself"
        if not ahead:
            return f"{text}."
        return (
            f"{text}. A prediction that is lower does not overrule that, being of a main loop "
            "only; `slipway tune` measures."
        )

    @property
    def values(self) -> dict[str, Any]:
        """The explanation as plain values, for JSON."""
        return {
            **values_of(self.task, self.chosen, self.trials),
            "predicted_cycles": self.cycles,
            "arithmetic_cycles": self.arithmetic_cycles,
            "traffic_cycles": self.memory_cycles,
            "flops": self.flops,
            "bytes": self.bytes,
            "limit": self.limit,
            "others": [{"choice": str(c), "cycles_ratio": ratio} for c, ratio in self.others[:8]],
            "paragraph": self.paragraph,
        }


def chosen_text(chosen: Candidate) -> str:
    """Say which strategy and knobs are chosen."""
    tile = ", ".join(f"{name} {value}" for name, value in chosen.knobs)
    return f"It is computed by {chosen.strategy}" + (f" with {tile}." if tile else ".")


def measured_text(chosen: Candidate, trials: Sequence[TrialRow]) -> str:
    """Say what was measured of a task, and where the choice stands in it."""
    good = [t for t in trials if not t.kind]
    if not trials:
        return "Nothing was measured: the prediction decided."
    failed = len(trials) - len(good)
    text = f"Measured were {len(trials)} choices" + (f", {failed} failed" if failed else "")
    mine = next((t for t in good if t.candidate == chosen and t.verified), None)
    if mine is None:
        return f"{text}; none was faster than what is chosen without tuning."
    steps = [f"{why} {t.score / mine.score:.2f}" for why, t in neighbours(mine, good)[:NAMED]]
    around = f" One step from it: {', '.join(steps)} times its time." if steps else ""
    return f"{text}; it takes {mine.score:.2f} of the time without tuning.{around}"


def values_of(task: TuningTask, chosen: Candidate, trials: Sequence[TrialRow]) -> dict[str, Any]:
    """Return what is said of every choice, on processors and GPUs, as plain values."""
    return {
        "layers": list(task.layers),
        "operator": task.op,
        "calls": task.weight,
        "strategy": chosen.strategy,
        "knobs": dict(chosen.knobs),
        "trials": len(trials),
    }


def neighbours(mine: TrialRow, trials: Sequence[TrialRow]) -> list[tuple[str, TrialRow]]:
    """Return the trials that differ from one in a single knob, with what differs, slowest first."""
    found = {}
    own = dict(mine.candidate.knobs)
    for trial in trials:
        if trial.candidate.strategy == mine.candidate.strategy:
            theirs = dict(trial.candidate.knobs)
            differ = [name for name in own if own[name] != theirs.get(name)]
            if len(differ) == 1:
                found[f"{differ[0]} {theirs.get(differ[0])}"] = trial
    return sorted(found.items(), key=lambda item: -item[1].score)


def explain_task(
    task: TuningTask, database: Database | None = None, device: str = "local"
) -> Explanation:
    """Return why a task is computed the way it is, by the records and wishes that count now."""
    choice = schedule_primitive(task.function, task.target).choice
    assert choice is not None  # or it would be no task
    chosen = candidate_of(choice.strategy.name, choice.knobs)
    space, cost, core = task.space, kernel_cost(task.function), task.target.core
    predicted = space.predicted(chosen)
    width = max(core.fma_bits // 32, 1)
    level, rate = _level(task.target, cost.bytes)
    trials = sorted(database.trials(task, device), key=lambda t: t.score) if database else []
    return Explanation(
        task, chosen, predicted, cost.flops, cost.bytes,
        cost.flops / 2 / width, cost.bytes / rate, level,
        _others(task, chosen, predicted), tuple(trials), chosen == space.default,
    )  # fmt: skip


def explain_model(
    module: IRModule,
    target: Target | str,
    params: Mapping[str, Any] | None = None,
    database: Database | None = None,
    device: str = "local",
) -> list[Explanation]:
    """Explain the kernels of a model that can be computed in more than one way, by their work."""
    tasks = extract_tasks(module, compile_target(target), params)
    return [explain_task(task, database, device) for task in tasks]


def _level(target: Target, size: float) -> tuple[str, float]:
    """Return where so many bytes lie, and how many of them a cycle brings from there."""
    core = target.core
    if size <= core.l1_bytes:
        return "in the first-level cache", core.load_bits / 8
    if size <= core.l2_bytes:
        return "from the second level", float(core.l2_stream_bytes)
    return "from beyond the second level", core.l2_stream_bytes / 2


def _others(
    task: TuningTask, chosen: Candidate, predicted: float | None
) -> tuple[tuple[Candidate, float], ...]:
    """Return the other choices that the cost models like, with their cycles over the chosen's."""
    if not predicted:
        return ()
    space, rng = task.space, random.Random(0)
    every = [*space.defaults.values(), *space.neighbours(chosen)]
    every += [space.sample(rng) for _ in range(LOOKED_AT)]
    found = {}
    for candidate in dict.fromkeys(every):
        cycles = space.predicted(candidate)
        if candidate != chosen and cycles:
            found[candidate] = cycles / predicted
    return tuple(sorted(found.items(), key=lambda item: item[1]))
