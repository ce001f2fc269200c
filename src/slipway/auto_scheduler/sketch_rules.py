"""Sketch rules of a script's own (classic): its steps for stages that it knows, with open lengths.

::

    def condition(policy, state, stage):        # PASS, APPLY, or APPLY_AND_SKIP_REST
    def apply(policy, state, stage):            # [[state, next stage], ...]
    SketchPolicy(task, init_search_callbacks=[PreloadCustomSketchRule(condition, apply, "mine")])

The stages are visited from the last to the first, as the sketches here do it; a rule that applies
takes a stage over, and each state it returns is a kind of sketch.  What it leaves open is chosen by
the search: lengths of splits that are None, and, of stages that it does not mark, threads, vectors
and unrolling.  Every candidate asks the rules again, as what they see depends on the knobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from slipway.auto_scheduler.analysis import Role, StageRole
from slipway.auto_scheduler.loop_state import State, StateObject, lengths_said
from slipway.auto_scheduler.sketch import CUT, MOST_INNER, UNROLLS, Knobs, Sketches, SketchWriter
from slipway.auto_scheduler.steps import MARKS, UNROLL, Step
from slipway.errors import TuningError
from slipway.ir.expr import IntImm, IterVar
from slipway.target import Target
from slipway.te.operation import ComputeOp, Operation
from slipway.te.primitives.relations import Split
from slipway.te.primitives.state import INLINE, ROOT
from slipway.te.stage import Stage
from slipway.tuning.space import Candidate, candidate_of, divisors, fitting

if TYPE_CHECKING:
    from slipway.auto_scheduler.compute_dag import ComputeDAG

MOST_SKETCHES = 256  # kinds that rules may make of a computation
OF_UNKNOWN = (1, 2, 4, 8, 16)  # inner lengths of a loop whose own is not known

MARKED = ("unrolled", "vectorized", "parallel")  # kinds of loops
Condition = Callable[[Any, StateObject, int], int | bool]
Apply = Callable[[Any, StateObject, int], Sequence[Any]]


class PreloadCustomSketchRule:
    """A callback before a search: sketches of one's own for stages that it knows (classic).

    ``meet_condition_func(policy, state, stage)`` says whether it applies: PASS, APPLY (beside the
    other rules), or APPLY_AND_SKIP_REST; ``apply_func(policy, state, stage)`` returns pairs of a
    state and the stage to visit next.
    """

    PASS, APPLY, APPLY_AND_SKIP_REST = 0, 1, 2

    def __init__(
        self,
        meet_condition_func: Condition,
        apply_func: Apply,
        rule_name: str = "CustomSketchRule",
    ) -> None:
        if not callable(meet_condition_func) or not callable(apply_func):
            raise TuningError(f"the sketch rule {rule_name!r} takes two functions")
        self.meet_condition_func, self.apply_func = meet_condition_func, apply_func
        self.rule_name = rule_name

    def met(self, policy: Any, state: StateObject, stage: int) -> int:
        """Return what the condition says.  Raises TuningError where that is none of the three."""
        said = self.meet_condition_func(policy, state, stage)
        try:
            if int(said) in (self.PASS, self.APPLY, self.APPLY_AND_SKIP_REST):
                return int(said)
        except (TypeError, ValueError):
            pass
        raise TuningError(
            f"the condition of the sketch rule {self.rule_name!r} returned {said!r}: it is "
            "PreloadCustomSketchRule.PASS, APPLY or APPLY_AND_SKIP_REST"
        )

    def applied(
        self, policy: Any, state: StateObject, stage: int
    ) -> list[tuple[StateObject | State, int]]:
        """Return the states that the rule makes, each with the next stage."""
        given = list(self.apply_func(policy, state, stage) or ())
        if len(given) == 2 and isinstance(given[0], StateObject | State):
            given = [given]  # one pair, as some rules of classic TVM return it
        found = []
        for pair in given:
            made, after = pair if isinstance(pair, list | tuple) and len(pair) == 2 else (None, -1)
            if not isinstance(made, StateObject | State) or isinstance(after, bool):
                raise TuningError(
                    f"the sketch rule {self.rule_name!r} returned {pair!r} for stage {stage}: it "
                    "returns a list of [state, next stage]"
                )
            found.append((made, int(after)))
        if not found:
            raise TuningError(
                f"the sketch rule {self.rule_name!r} applies to stage {stage} and returned no "
                "state: its condition returns PASS where there is nothing to do"
            )
        return found


class RuledSketches(Sketches):
    """The schedules of a computation that rules of a script make, with ours for other stages."""

    def __init__(
        self, dag: ComputeDAG, target: Target, policy: Any, rules: Sequence[PreloadCustomSketchRule]
    ) -> None:
        self.policy, self.rules = policy, list(rules)
        self.ways: dict[str, tuple[str, tuple[int, ...]]] = {}  # strategy -> (kind, choices)
        self.open: dict[str, list[OpenSplit]] = {}
        super().__init__(dag, target)

    def _found(self) -> tuple[dict[str, Knobs], dict[str, Candidate]]:
        values: dict[str, Knobs] = {}
        defaults: dict[str, Candidate] = {}
        for kind, choices, made in self._every():
            if kind == CUT and not any(self._is_cut(role) for role in made.own):
                continue
            name = "; ".join([kind, *made.names])
            if name in values:
                continue
            if len(values) == MOST_SKETCHES:
                raise TuningError(
                    f"the sketch rules make more than {MOST_SKETCHES} kinds of schedules: return "
                    "fewer states, or APPLY_AND_SKIP_REST where a rule is the only one that counts"
                )
            own = self._knobs(kind, made.own)
            values[name] = own | {n: legal for n, legal in made.legal.items() if len(legal) > 1}
            chosen = {n: value for n, value in made.chosen.items() if n in values[name]}
            defaults[name] = candidate_of(name, self._default(kind, own) | chosen)
            self.ways[name], self.open[name] = (kind, choices), made.open
        return values, defaults

    def _every(self) -> Iterator[tuple[str, tuple[int, ...], RuledWriter]]:
        """Yield each way to answer the rules' choices, what they are first choosing first."""
        for kind in self._kinds():
            waiting: list[tuple[int, ...]] = [()]
            while waiting:
                begun = waiting.pop()
                made = RuledWriter(self, kind, {}, begun)
                for at in reversed(range(len(begun), len(made.choices))):
                    before = (*begun, *[0] * (at - len(begun)))
                    others = range(made.choices[at] - 1, 0, -1)
                    waiting += [(*before, number) for number in others]
                yield kind, begun, made

    def canonical(self, candidate: Candidate) -> Candidate:
        """Return the candidate whose lengths are those that its schedule has."""
        knobs = dict(super().canonical(candidate).knobs)
        for split in self.open.get(candidate.strategy, ()):
            knobs |= {n: v for n, v in split.fitted(knobs).items() if n in knobs}
        return candidate_of(candidate.strategy, knobs)

    def predicted(self, candidate: Candidate) -> float | None:
        """Return a guess at the cycles; none where a rule made the schedule."""
        return super().predicted(candidate) if ";" not in candidate.strategy else None

    def steps_of(self, candidate: Candidate) -> list[Step]:
        """Return the steps of a candidate's schedule."""
        return RuledWriter(self, *self._way(candidate)).steps

    def _way(self, candidate: Candidate) -> tuple[str, dict[str, Any], tuple[int, ...]]:
        kind, choices = self.ways[candidate.strategy]
        return kind, dict(candidate.knobs), choices


class OpenSplit:
    """A split with lengths that are knobs: their names, the outermost first, and what is given."""

    def __init__(
        self, names: Sequence[str | None], given: Sequence[int | None], length: object
    ) -> None:
        self.names, self.given = names, given
        self.length = length if isinstance(length, int) else None

    def fitted(self, knobs: Mapping[str, Any]) -> dict[str, int]:
        """Return the lengths that divide what is left of the loop, where its length is known."""
        left = self.length
        if left is not None:
            for known in self.given:
                left = -(-left // known) if known else left
        found: dict[str, int] = {}
        for name in reversed([n for n in self.names if n is not None]):
            value = int(knobs.get(name, 1))
            if left is not None:
                value = fitting(value, left)
                left //= value
            found[name] = value
        return found

    def filled(self, knobs: Mapping[str, Any]) -> list[int]:
        """Return all lengths of the split."""
        found = self.fitted(knobs)
        pairs = zip(self.names, self.given, strict=True)
        return [found[name] if name is not None else int(known or 1) for name, known in pairs]


class RuledWriter(SketchWriter):
    """Writes the steps of one candidate, asking the rules at each stage.

    `choices` are the numbers of alternatives where there were several, of which `begun` says the
    first ones; `legal` the knobs that the rules leave open, with the values `chosen` for them.
    """

    def __init__(
        self, sketches: RuledSketches, kind: str, knobs: Mapping[str, Any], begun: Sequence[int]
    ) -> None:
        self.ruled = sketches
        self.replay = sketches.dag.replay(())
        self.begun = list(begun)
        self.choices: list[int] = []
        self.names: list[str] = []
        self.own: list[StageRole] = []
        self.legal: Knobs = {}
        self.chosen: dict[str, int] = {}
        self.open: list[OpenSplit] = []
        self._ours: set[int] = set()  # stages with the steps of a sketch of ours, by identity
        self._touched: set[Operation] = set()  # operations to which rules gave steps
        super().__init__(sketches, kind, knobs)

    def _write_all(self) -> None:
        stage = len(self.replay.stages) - 1
        left = 16 * (stage + 1) + 64
        while stage >= 0:
            stage, left = self._visit(stage), left - 1
            if not left or stage >= len(self.replay.stages):
                names = ", ".join(rule.rule_name for rule in self.ruled.rules)
                raise TuningError(
                    f"the sketch rules ({names}) do not come to an end: the next stage was "
                    f"{stage} of {len(self.replay.stages)}; it is one before the present one"
                )
        for number in range(len(self.replay.stages)):
            self._mark(number)

    def _number(self, op: int) -> int:
        wanted = self.sketches.dag.ops[op]
        return next(n for n, s in enumerate(self.replay.stages) if s.origin_op is wanted)

    def _do(self, *step: Any) -> int:
        self.replay.do(list(step))
        return super()._do(*step)

    def _visit(self, stage: int) -> int:
        """Give one stage its steps and return the next one."""
        state = StateObject(self.sketches.dag, self.steps)
        found: list[tuple[str, StateObject | State | None, int]] = []
        is_last_word = False
        for rule in self.ruled.rules:
            met = rule.met(self.ruled.policy, state, stage)
            if met == rule.PASS:
                continue
            name = f"{rule.rule_name} at {self.replay.stages[stage].op.name}"
            made = rule.applied(self.ruled.policy, state, stage)
            found += [
                (f"{name}, {n}" if len(made) > 1 else name, *pair) for n, pair in enumerate(made)
            ]
            is_last_word = met == rule.APPLY_AND_SKIP_REST
            if is_last_word:
                break
        if not is_last_word:
            found.append(("", None, stage - 1))
        name, begun, after = found[self._choice(len(found))]
        if begun is None:
            self._own(stage)
            return stage - 1
        self.names.append(name)
        self._take(name, begun)
        return after

    def _choice(self, many: int) -> int:
        if many == 1:
            return 0
        self.choices.append(many)
        at = len(self.choices) - 1
        return self.begun[at] if at < len(self.begun) else 0

    def _own(self, stage: int) -> None:
        """Give a stage the steps that our sketch has for its role."""
        op = self.replay.stages[stage].origin_op
        numbers = {known: n for n, known in enumerate(self.sketches.dag.ops)}
        if op not in numbers or op in self._touched:
            return
        role = self.sketches.roles[numbers[op]]
        ops = self.sketches.dag.ops
        if role.follower is not None and ops[role.follower] in self._touched:
            role = replace(role, follower=None)
        if role.role is Role.FOLLOWER:
            return  # its product gives it steps, unless a rule takes that over
        before = {id(s) for s in self.replay.stages}
        self.own.append(role)
        self._write(role)
        self._ours |= {id(s) for s in self.replay.stages} - before
        for number in (role.number, role.follower):
            if number is not None:
                self._ours.add(id(self.replay.stages[self._number(number)]))

    def _take(self, name: str, made: StateObject | State) -> None:
        """Take the steps that a rule has added."""
        steps = list(made.transform_steps)
        if steps[: len(self.steps)] != self.steps:
            raise TuningError(
                f"the sketch rule {name} returned a state that is not the one it was given with "
                "more steps"
            )
        for step in steps[len(self.steps) :]:
            for number in step[1:3] if step[0] == "CA" else step[1:2]:
                self._touched.add(self.replay.stages[number].origin_op)
            if step[0] == "SP" and None in step[4]:
                step = self._filled(step)
            self._do(*step)

    def _filled(self, step: Step) -> Step:
        kind, stage, loop, length, given, inner = step
        axis = self.replay.axes[stage][loop]
        word = f"{self.replay.stages[stage].op.name}.{axis.name}"
        names = [None if n is not None else self._fresh(f"{word}/{at}")
                 for at, n in enumerate(given)]  # fmt: skip
        split = OpenSplit(names, given, length)
        for at, name in enumerate(names):
            if name is not None:
                legal = divisors(length) if split.length is not None else OF_UNKNOWN
                self._knob_of(name, [n for n in legal if n <= MOST_INNER],
                              8 if at == len(given) - 1 else 1)  # fmt: skip
        filled = split.filled(self.chosen)
        self.chosen |= {n: v for n, v in zip(names, filled, strict=True) if n is not None}
        self.open.append(split)
        return [kind, stage, loop, length, filled, inner]

    def _fresh(self, name: str) -> str:
        found, number = name, 1
        while found in self.legal:
            found, number = f"{name}.{number}", number + 1
        return found

    def _knob_of(self, name: str, legal: Sequence[int], wanted: int) -> int:
        """Return the value of a knob that the rules leave open, which is noted."""
        self.legal[name] = tuple(legal)
        value = self._knob(name, max((n for n in legal if n <= wanted), default=legal[0]))
        self.chosen[name] = value
        return value

    # What the rules left unmarked.

    def _mark(self, number: int) -> None:
        stage = self.replay.stages[number]
        if id(stage) in self._ours or not isinstance(stage.op, ComputeOp) or _is_marked(stage):
            return
        if stage.attach_type == INLINE or not self.replay.axes[number]:
            return
        word = self._fresh(stage.op.name)
        held = {s.attach_ivar for s in self.replay.stages if s.attach_stage is stage}
        last = self.replay.axes[number][-1]
        if last.kind == "data" and last not in held:
            self._vectorize(number, word, last)
        axes = self.replay.axes[number]
        if stage.attach_type == ROOT:
            outer: list[int] = []
            for at, axis in enumerate(axes):
                if axis.kind != "data" or axis in stage.iter_var_attrs or (outer and axis in held):
                    break
                outer.append(at)
                if axis in held:  # what is computed in it would be lost in a fused loop
                    break
            if outer and self._knob_of(f"{word}/parallel", (0, 1), 1):
                if len(outer) > 1:
                    self._do("FU", number, outer)
                self._do("AN", number, 0, MARKS.index("parallel"))
        if stage.op.reduce_axis:
            unroll = self._knob_of(f"{word}/unroll", UNROLLS, 0)
            if unroll:
                self._do("PR", number, 0, f"{UNROLL}${unroll}")

    def _vectorize(self, number: int, word: str, last: IterVar) -> None:
        stage, lanes = self.replay.stages[number], self.ruled._lanes(self.replay.stages[number].op)
        length = self._length(stage, last)
        position = len(self.replay.axes[number]) - 1
        if length is None or length == 1:
            return
        if length <= MOST_INNER:
            if self._knob_of(f"{word}/vector", (0, 1), 1):
                self._do("AN", number, position, MARKS.index("vectorize"))
            return
        vector = self._knob_of(f"{word}/vector", (0, lanes, 2 * lanes, 4 * lanes), 2 * lanes)
        if vector:
            self._do("SP", number, position, length, [vector], 1)
            self._do("AN", number, position + 1, MARKS.index("vectorize"))

    def _length(self, stage: Stage, axis: IterVar) -> int | None:
        for relation in stage.relations:
            if isinstance(relation, Split) and relation.inner is axis:
                return int(relation.factor) if isinstance(relation.factor, IntImm) else None
        return lengths_said(self.replay).get(axis)


def _is_marked(stage: Stage) -> bool:
    """Return whether a loop of a stage is marked as anything."""
    return any(
        attr.bind_thread is not None or attr.pragmas or str(attr.kind) in MARKED
        for attr in stage.iter_var_attrs.values()
    )
