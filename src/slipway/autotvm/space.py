"""The knobs of a template: what it defines while its space is collected, and one choice of each.

A template runs with a `ConfigSpace` once, which notes every ``define_*`` and answers with the first
choice; then with a `ConfigEntity`, which has one choice of every knob.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

from slipway import te
from slipway.errors import TuningError, did_you_mean
from slipway.ir.expr import IntImm, IterVar
from slipway.tuning.space import Candidate, Choices, candidate_of


@dataclass(frozen=True)
class SplitEntity:
    """The lengths of the axes that one is split into, the outermost first; -1: what is left."""

    size: list[int]
    code = "sp"

    @property
    def plain(self) -> Any:
        """The choice as JSON's values."""
        return list(self.size)

    def apply(self, sch: te.Schedule, op: te.Tensor | te.Operation, axis: IterVar) -> list[IterVar]:
        """Split `axis` of a stage and return the parts, the outermost first."""
        found = []
        for i in range(1, len(self.size)):
            outer, axis = sch[op].split(axis, math.prod(self.size[i:]))
            found.append(outer)
        return [*found, axis]


@dataclass(frozen=True)
class ReorderEntity:
    """An order of axes, by their numbers."""

    perm: tuple[int, ...]
    code = "re"

    @property
    def plain(self) -> Any:
        """The choice as JSON's values."""
        return list(self.perm)

    def apply(
        self, sch: te.Schedule, op: te.Tensor | te.Operation, axes: Sequence[IterVar]
    ) -> list[IterVar]:
        """Reorder axes of a stage and return them in their new order."""
        found = [axes[i] for i in self.perm]
        sch[op].reorder(*found)
        return found


@dataclass(frozen=True)
class OtherOptionEntity:
    """A choice of a list of values."""

    val: Any
    code = "ot"

    @property
    def plain(self) -> Any:
        """The choice as JSON's values."""
        return self.val


@dataclass(frozen=True)
class AnnotateEntity:
    """What is done to each of some axes: "none", "unroll" or "vec"."""

    anns: tuple[str, ...]
    code = "an"

    @property
    def plain(self) -> Any:
        """The choice as JSON's values."""
        return list(self.anns)

    def apply(
        self,
        sch: te.Schedule,
        op: te.Tensor | te.Operation,
        axes: Sequence[IterVar],
        axis_lens: Sequence[int] | None = None,
        max_unroll: int | None = None,
        vec_size: Sequence[int] | None = None,
    ) -> list[IterVar]:
        """Unroll and vectorize axes of a stage; those longer than `max_unroll` are not unrolled.

        With `axis_lens` and `vec_size` an axis is vectorized where its length is one of the sizes.
        """
        for number, (axis, what) in enumerate(zip(axes, self.anns, strict=True)):
            length = axis_lens[number] if axis_lens is not None else None
            if what == "unroll" and (max_unroll is None or length is None or length <= max_unroll):
                sch[op].unroll(axis)
            elif what == "vec" and (vec_size is None or length is None or length in vec_size):
                sch[op].vectorize(axis)
        return list(axes)


Entity = SplitEntity | ReorderEntity | AnnotateEntity | OtherOptionEntity
_KINDS: dict[str, Callable[[Any], Entity]] = {
    "sp": lambda plain: SplitEntity([int(n) for n in plain]),
    "re": lambda plain: ReorderEntity(tuple(int(n) for n in plain)),
    "an": lambda plain: AnnotateEntity(tuple(map(str, plain))),
    "ot": OtherOptionEntity,
}


class _Config:
    """What a template may ask of a configuration, whichever it is."""

    is_fallback = False  # whether neither a tuner nor a log has chosen

    def __init__(self, entities: Mapping[str, Entity]) -> None:
        self._entities = dict(entities)
        self.flop = 0.0

    def define_split(
        self,
        name: str,
        axis: IterVar | int,
        policy: str = "factors",
        *,
        num_outputs: int = 2,
        max_factor: int | None = None,
        candidate: Sequence[Sequence[int]] | None = None,
        filter: Callable[[SplitEntity], bool] | None = None,
    ) -> None:
        """Define a knob that splits an axis into `num_outputs`.

        `policy` says of what lengths: "factors" of the axis, "power2", or those of "candidate".
        """

        def made() -> list[SplitEntity]:
            sizes = _sizes(name, axis, policy, num_outputs, max_factor, candidate)
            found = [SplitEntity(list(size)) for size in sizes]
            return found if filter is None else [e for e in found if filter(e)]

        self._define(name, made)

    def define_knob(self, name: str, candidate: Iterable[Any]) -> None:
        """Define a knob with a list of values; ``cfg[name].val`` is the chosen one."""
        self._define(name, lambda: [OtherOptionEntity(value) for value in candidate])

    def define_reorder(
        self,
        name: str,
        axes: Sequence[Any],
        policy: str,
        *,
        candidate: Sequence[Sequence[Any]] | None = None,
    ) -> None:
        """Define a knob that orders axes: "identity", "all", or the orders of "candidate"."""
        self._define(name, lambda: [ReorderEntity(p) for p in _orders(axes, policy, candidate)])

    def define_annotate(self, name: str, axes: Sequence[Any], policy: str) -> None:
        """Define a knob that unrolls and vectorizes axes, the innermost last.

        `policy`: "unroll" all; "unroll_vec" all, the last as lanes; "try_unroll", "try_vec" and
        "try_unroll_vec" choose for each axis whether, and lanes for the last one only.
        """
        self._define(name, lambda: [AnnotateEntity(a) for a in _annotations(len(axes), policy)])

    def axis(self, var: IterVar | int) -> IterVar | int:
        """Return what stands for an axis in ``define_*``: the axis."""
        return var

    reduce_axis = axis

    def add_flop(self, flop: float) -> None:
        """Say how many operations the template has; else they are counted."""
        self.flop += float(flop)

    def _define(self, name: str, make: Callable[[], list[Any]]) -> None:
        raise NotImplementedError

    def __contains__(self, name: str) -> bool:
        return name in self._entities

    def __getitem__(self, name: str) -> Entity:
        """Return the choice of a knob.  Raises TuningError for one that is not defined."""
        if name not in self._entities:
            raise TuningError(
                f"the template has no knob {name!r}; it has "
                f"{', '.join(self._entities) or 'none'}.{did_you_mean(name, self._entities)}"
            )
        return self._entities[name]


class ConfigEntity(_Config):
    """One choice of every knob; `index` is its number in the space."""

    def __init__(self, index: int, entities: Mapping[str, Entity]) -> None:
        super().__init__(entities)
        self.index = index

    def _define(self, name: str, make: Callable[[], list[Any]]) -> None:
        """Leave the choice as it is; there must be one."""
        self[name]

    def to_json_dict(self) -> dict[str, Any]:
        """Return it as classic TVM's logs have it."""
        entities = [[name, e.code, e.plain] for name, e in self._entities.items()]
        return {"index": self.index, "code_hash": None, "entity": entities}

    @staticmethod
    def from_json_dict(json_dict: Mapping[str, Any]) -> ConfigEntity:
        """Return the configuration of a log's line.  Raises TuningError for another kind."""
        found: dict[str, Entity] = {}
        for name, code, plain in json_dict["entity"]:
            if code not in _KINDS:
                raise TuningError(
                    f"the knob {name!r} of a log is of kind {code!r}, which templates here have "
                    f"not: {', '.join(_KINDS)}"
                )
            found[name] = _KINDS[code](plain)
        return ConfigEntity(int(json_dict["index"]), found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConfigEntity) and self._entities == other._entities

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        chosen = ", ".join(f"{name}={e.plain}" for name, e in self._entities.items())
        return f"{{{chosen}}},{self.index}"


class ConfigSpace(_Config):
    """All choices: `space_map` has those of each knob.  The first knob varies fastest."""

    def __init__(self) -> None:
        super().__init__({})
        self.space_map: dict[str, list[Entity]] = {}

    def _define(self, name: str, make: Callable[[], list[Any]]) -> None:
        if name in self.space_map:
            return
        found = make()
        if not found:
            raise TuningError(f"the knob {name!r} has no value to choose from")
        self.space_map[name] = found
        self._entities[name] = found[0]

    def __len__(self) -> int:
        return math.prod(map(len, self.space_map.values()))

    def get(self, index: int) -> ConfigEntity:
        """Return a configuration by its number.  Raises IndexError beyond the last."""
        if not 0 <= index < len(self):
            raise IndexError(f"there is no configuration {index}; there are {len(self)}")
        left, found = index, {}
        for name, entities in self.space_map.items():
            left, at = divmod(left, len(entities))
            found[name] = entities[at]
        return ConfigEntity(index, found)

    def __iter__(self) -> Iterator[ConfigEntity]:
        return (self.get(index) for index in range(len(self)))

    # As the search sees it: knobs whose values are the numbers of choices.

    def choices(self, default: int) -> Choices:
        """Return the space for a search that starts at the configuration `default`."""
        values = {name: tuple(range(len(e))) for name, e in self.space_map.items()}
        return Choices({"template": values}, {"template": self.candidate(default)})

    def candidate(self, index: int) -> Candidate:
        """Return a configuration as the search knows it."""
        left, knobs = index, {}
        for name, entities in self.space_map.items():
            left, knobs[name] = divmod(left, len(entities))
        return candidate_of("template", knobs)

    def index_of(self, candidate: Candidate) -> int:
        """Return the number of what a search chose."""
        knobs, index, step = dict(candidate.knobs), 0, 1
        for name, entities in self.space_map.items():
            index += knobs[name] * step
            step *= len(entities)
        return index

    def __repr__(self) -> str:
        knobs = ", ".join(f"{name}: {len(e)}" for name, e in self.space_map.items())
        return f"ConfigSpace(len={len(self)}, {knobs})"


class FallbackConfigEntity(ConfigSpace):
    """What a template gets where no log knows it: the first of its space, or what it says itself.

    ::

        if cfg.is_fallback:
            cfg.fallback_split("tile_x", [-1, 8])
            cfg["unroll"] = OtherOptionEntity(True)
    """

    is_fallback = True

    def __setitem__(self, name: str, entity: Entity) -> None:
        """Choose for a knob."""
        self._entities[name] = entity

    def fallback_split(self, name: str, constraints: Sequence[int]) -> None:
        """Choose the longest parts, the innermost first, that are no longer than these; -1: any.

        Raises TuningError for a knob that is not split so, and where no split is that short.
        """
        entity, splits = self[name], self.space_map.get(name, [])
        if not isinstance(entity, SplitEntity) or len(entity.size) != len(constraints):
            raise TuningError(
                f"fallback_split({name!r}, {list(constraints)}): the knob is {entity}, no split "
                f"into {len(constraints)}"
            )
        left = [tuple(e.size) for e in splits if isinstance(e, SplitEntity)]
        whole = max(math.prod(size[1:]) for size in left)
        for part, limit in reversed(list(enumerate(constraints))):
            lengths = {s: s[part] if part else whole // math.prod(s[1:]) for s in left}
            left = [s for s, n in lengths.items() if limit == -1 or n <= limit]
            if not left:
                raise TuningError(
                    f"fallback_split({name!r}, {list(constraints)}): no split of the space has a "
                    f"part {part} of at most {limit}"
                )
            left = [s for s in left if lengths[s] == max(lengths[t] for t in left)]
        inner = left[0][1:]
        self._entities[name] = SplitEntity([whole // math.prod(inner), *inner])


def _sizes(
    name: str,
    axis: IterVar | int,
    policy: str,
    parts: int,
    most: int | None,
    candidate: Sequence[Sequence[int]] | None,
) -> list[tuple[int, ...]]:
    """Return the lengths that an axis may be split into, the outermost of which is -1."""
    if policy == "candidate" or candidate is not None:
        return [tuple(int(n) for n in size) for size in candidate or ()]
    if policy not in ("factors", "power2", "verbose"):
        raise TuningError(
            f"define_split({name!r}): the policy {policy!r} is not one of factors, power2, "
            "verbose, candidate"
        )
    if parts < 1:
        raise TuningError(f"define_split({name!r}): num_outputs is {parts}, and at least 1")
    length = _length(name, axis)
    if policy == "factors":
        lengths = [n for n in range(1, length + 1) if length % n == 0]
    else:
        lengths = [1 << i for i in range(length.bit_length()) if 1 << i <= length]
        if policy == "verbose":
            lengths = sorted({*lengths, *(n for n in range(1, length + 1) if length % n == 0)})
    lengths = [n for n in lengths if most is None or n <= most]
    found: list[tuple[int, ...]] = [()]
    for _ in range(parts - 1):
        found = [
            (*size, n)
            for size in found
            for n in lengths
            if (length % (math.prod(size) * n) == 0 if policy == "factors" else True)
            and math.prod(size) * n <= length
        ]
    return [(-1, *size) for size in found]


def _length(name: str, axis: IterVar | int) -> int:
    extent = axis.extent if isinstance(axis, IterVar) else axis
    if not isinstance(extent, int | IntImm):
        raise TuningError(f"define_split({name!r}): the axis has no fixed length: {extent}")
    return int(extent)


def _orders(
    axes: Sequence[Any], policy: str, candidate: Sequence[Sequence[Any]] | None
) -> list[tuple[int, ...]]:
    count = len(axes)
    if policy == "identity":
        return [tuple(range(count))]
    if policy == "all":
        return list(permutations(range(count)))
    if policy == "candidate":
        numbers = {id(axis): i for i, axis in enumerate(axes)}
        return [
            tuple(a if isinstance(a, int) else numbers[id(a)] for a in one)
            for one in candidate or ()
        ]
    raise TuningError(
        f"define_reorder: the policy {policy!r} is not one of identity, all, candidate"
    )


def _annotations(count: int, policy: str) -> list[tuple[str, ...]]:
    """Return what may be done to `count` axes."""
    if policy == "unroll":
        return [("unroll",) * count]
    if policy == "unroll_vec":
        return [(*("unroll",) * (count - 1), "vec")]
    choices = {"try_unroll": ("none", "unroll"), "try_vec": ("none",),
             "try_unroll_vec": ("none", "unroll")}.get(policy)  # fmt: skip
    if choices is None:
        raise TuningError(
            f"define_annotate: {policy!r} is no policy; there are unroll, unroll_vec, try_unroll, "
            "try_vec and try_unroll_vec"
        )
    last = (*choices, "vec") if policy.endswith("vec") else choices
    return list(product(*[choices] * (count - 1), last))
