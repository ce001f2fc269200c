"""The knobs of a template: what it defines while its space is collected, and one choice of each.

A template runs with a `ConfigSpace` once, which notes every ``define_*`` and answers with the first
choice; then with a `ConfigEntity`, which has one choice of every knob.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from slipway.autotvm.entities import (
    KINDS,
    AnnotateEntity,
    Entity,
    InstantiationError,
    OtherOptionEntity,
    ReorderEntity,
    SplitEntity,
)
from slipway.autotvm.indices import Indexed
from slipway.autotvm.knobs import (
    AnnotateSpace,
    MadeAxis,
    OtherOptionSpace,
    ReorderSpace,
    SplitSpace,
    TransformSpace,
    VirtualAxis,
    axes_of,
)
from slipway.errors import TuningError, did_you_mean
from slipway.tuning.space import Candidate, Choices, candidate_of

# What may be done to an axis, in the order in which features of a configuration count it.
_ANNOTATIONS = (
    "none", "vec", "unroll", "blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x",
    "threadIdx.y", "threadIdx.z", "vthread", "fuse",
)  # fmt: skip


class _Config:
    """What a template may ask of a configuration, whichever it is.

    ``define_*`` returns what stands for the axes that the knob makes, for other knobs.
    """

    is_fallback = False  # whether neither a tuner nor a log has chosen

    def __init__(self, entities: Mapping[str, Entity]) -> None:
        self._entities = dict(entities)
        self.flop = 0.0
        self.errors: list[str] = []
        self.code_hash: str | None = None

    def define_split(
        self,
        name: str,
        axis: Any,
        policy: str = "factors",
        *,
        num_outputs: int = 2,
        max_factor: int | None = None,
        no_tail: bool | None = None,
        candidate: Sequence[Sequence[int]] | None = None,
        filter: Callable[[SplitEntity], bool] | None = None,
    ) -> list[MadeAxis]:
        """Define a knob that splits an axis into `num_outputs`.

        `policy` says of what lengths: "factors" of the axis, "power2", both ("verbose"), or those
        of "candidate"; with `no_tail` they divide it.
        """

        def made() -> SplitSpace:
            return SplitSpace(
                name, axis, policy, num_outputs, max_factor, no_tail, candidate, filter
            )

        return self._define(name, made, num_outputs)

    def define_knob(self, name: str, candidate: Iterable[Any]) -> None:
        """Define a knob with a list of values; ``cfg[name].val`` is the chosen one."""
        self._define(name, lambda: OtherOptionSpace(list(candidate)), 0)

    def define_reorder(
        self, name: str, axes: Sequence[Any], policy: str, **options: Any
    ) -> list[MadeAxis]:
        """Define a knob that orders axes.

        `policy`: "identity", "all", "interval_all" (all of the axes ``interval=(begin, end)``), the
        orders of "candidate", "interleave" and "interleave_cuda" (chains of `spatial` axes and of
        `reduce` axes).
        """
        known = axes_of(axes)
        given = {id(axis): own for axis, own in zip(axes, known, strict=True)}

        def own(value: Any) -> Any:
            if isinstance(value, list | tuple) and not isinstance(value, MadeAxis):
                return [own(v) for v in value]
            return given.get(id(value), value)

        options = {
            key: own(value) if key in ("candidate", "spatial", "reduce") else value
            for key, value in options.items()
        }
        return self._define(name, lambda: ReorderSpace(name, known, policy, **options), len(known))

    def define_annotate(
        self, name: str, axes: Sequence[Any], policy: str, **options: Any
    ) -> list[MadeAxis]:
        """Define a knob that says what is done to axes.

        `policy`: words of "try" (nothing), "unroll" and "vec" with "_" between them, any of which
        each axis may have, lanes one at most; "bind_gpu" and "bind_gpu_virtual" bind them to
        threads; "locate_cache" chooses the `num_anchor` axes at which caches are computed.
        """
        return self._define(
            name, lambda: AnnotateSpace(name, axes_of(axes), policy, **options), len(axes)
        )

    @staticmethod
    def axis(var: Any) -> VirtualAxis:
        """Return what stands for an axis in ``define_*``, before there is a schedule."""
        return VirtualAxis(var)

    reduce_axis = axis

    def add_flop(self, flop: Any) -> None:
        """Say how many operations the template has; else they are counted."""
        self.flop += float(flop)

    def raise_error(self, msg: str) -> None:
        """Say that it is no configuration, and why: it is not compiled then."""
        self.errors.append(msg)

    def valid(self) -> bool:
        """Return whether nothing was said against it."""
        return not self.errors

    def multi_filter(self, filter: Callable[[Mapping[str, Entity]], bool]) -> None:
        """Say which choices go together, while the space is collected."""

    def _define(self, name: str, make: Callable[[], TransformSpace], axes: int) -> list[MadeAxis]:
        raise NotImplementedError

    def __contains__(self, name: str) -> bool:
        return name in self._entities

    def __iter__(self) -> Iterator[str]:
        return iter(self._entities)

    def __getitem__(self, name: str) -> Any:
        """Return the choice of a knob.  Raises TuningError for one that is not defined."""
        if name not in self._entities:
            raise TuningError(
                f"the template has no knob {name!r}; it has "
                f"{', '.join(self._entities) or 'none'}.{did_you_mean(name, self._entities)}"
            )
        return self._entities[name]


class ConfigEntity(_Config):
    """One choice of every knob; `index` is its number in the space."""

    def __init__(
        self,
        index: int,
        code_hash: str | None,
        entity_map: Mapping[str, Entity],
        constraints: Sequence[Any] = (),
    ) -> None:
        super().__init__(entity_map)
        self.index, self.code_hash = index, code_hash
        del constraints

    def _define(self, name: str, make: Callable[[], TransformSpace], axes: int) -> list[MadeAxis]:
        """Leave the choice as it is; there must be one."""
        self[name]
        return [MadeAxis(None, i) for i in range(axes)]

    def get_flatten_feature(self) -> Any:
        """Return the choices as numbers, in a row."""
        found: list[float] = []
        for entity in self._entities.values():
            if isinstance(entity, AnnotateEntity):
                found += [float(what == one) for what in entity.anns for one in _ANNOTATIONS]
            elif isinstance(entity, OtherOptionEntity):
                found.append(entity.val)
            else:
                found += entity.plain
        return np.array(found, dtype="float32")

    def get_other_option(self) -> dict[str, Any]:
        """Return the values of the knobs that have some."""
        return {n: e.val for n, e in self._entities.items() if isinstance(e, OtherOptionEntity)}

    def to_json_dict(self) -> dict[str, Any]:
        """Return it as classic TVM's logs have it."""
        entities = [[name, e.code, e.plain] for name, e in self._entities.items()]
        return {"index": self.index, "code_hash": self.code_hash, "entity": entities}

    @staticmethod
    def from_json_dict(json_dict: Mapping[str, Any]) -> ConfigEntity:
        """Return the configuration of a log's line.  Raises TuningError for another kind."""
        found: dict[str, Entity] = {}
        for name, code, plain in json_dict["entity"]:
            if code not in KINDS:
                raise TuningError(
                    f"the knob {name!r} of a log is of kind {code!r}, which templates here have "
                    f"not: {', '.join(KINDS)}"
                )
            found[name] = KINDS[code](plain)
        return ConfigEntity(int(json_dict["index"]), json_dict.get("code_hash"), found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConfigEntity) and self._entities == other._entities

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{list(self._entities.items())},{self.code_hash},{self.index}"


class ConfigSpace(Indexed, _Config):
    """All choices: `space_map` has those of each knob.  The first knob varies fastest."""

    def __init__(self) -> None:
        Indexed.__init__(self)
        _Config.__init__(self, {})
        self.space_map: dict[str, TransformSpace] = {}

    def _define(self, name: str, make: Callable[[], TransformSpace], axes: int) -> list[MadeAxis]:
        if self.is_fallback and name in self._entities:
            return [MadeAxis(None, i) for i in range(axes)]
        found = make()
        if not len(found):
            raise TuningError(f"the knob {name!r} has no value to choose from")
        self.space_map[name] = found
        self._entities[name] = found[0]
        self.clear_cache()
        return [MadeAxis(found, i) for i in range(axes)]

    def get(self, index: int) -> ConfigEntity:
        """Return a configuration by its number.  Raises IndexError for a number of none."""
        if not 0 <= index < self.range_length:
            raise IndexError(f"there is no configuration {index}; there are {self.range_length}")
        if not self.is_index_valid(index):
            raise IndexError(f"multi_filter refuses the configuration {index}")
        return ConfigEntity(index, self.code_hash, self.entities_at(index))

    # As the search sees it: knobs whose values are the numbers of choices.

    def choices(self, default: int) -> Choices:
        """Return the space for a search that starts at the configuration `default`."""
        values = {name: tuple(range(len(e))) for name, e in self.space_map.items()}
        return _Filtered(self, {"template": values}, {"template": self.candidate(default)})

    def candidate(self, index: int) -> Candidate:
        """Return a configuration as the search knows it."""
        return candidate_of(
            "template", dict(zip(self.space_map, self.point2knob(index), strict=True))
        )

    def index_of(self, candidate: Candidate) -> int:
        """Return the number of what a search chose."""
        knobs = dict(candidate.knobs)
        return self.knob2point([knobs[name] for name in self.space_map])

    def __repr__(self) -> str:
        knobs = "".join(f"  {i:2} {n}: {e}\n" for i, (n, e) in enumerate(self.space_map.items()))
        return f"ConfigSpace (len={len(self)}, space_map=\n{knobs})"


class _Filtered(Choices):
    """The space of a template, without what its `multi_filter` refuses."""

    def __init__(self, config_space: ConfigSpace, values: Any, defaults: Any) -> None:
        super().__init__(values, defaults)
        self._config_space = config_space

    def allows(self, candidate: Candidate) -> bool:
        """Return whether the template has the combination."""
        return self._config_space.is_index_valid(self._config_space.index_of(candidate))


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
        entity, splits = self[name], self.space_map.get(name, ())
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

    def fallback_with_reference_log(self, ref_log: Iterable[tuple[Any, Any]]) -> None:
        """Take after the configuration of a log whose splits are of the most similar lengths."""
        splits = [n for n, s in self.space_map.items() if isinstance(s, SplitSpace)]

        def likeness(config: Any) -> float:
            return sum(
                math.gcd(self.space_map[n].product, abs(math.prod(config[n].size)))  # type: ignore[attr-defined]
                / max(self.space_map[n].product, abs(math.prod(config[n].size)))  # type: ignore[attr-defined]
                for n in splits
            )

        known = [
            inp.config for inp, _ in ref_log
            if all(n in inp.config for n in self.space_map)
        ]  # fmt: skip
        if not known:
            return
        like = max(known, key=likeness)
        for name in splits:
            self.fallback_split(name, [-1, *like[name].size[1:]])
        for name in self.space_map:
            if name not in splits:
                self._entities[name] = like[name]


__all__ = [
    "AnnotateEntity", "AnnotateSpace", "ConfigEntity", "ConfigSpace", "Entity",
    "FallbackConfigEntity", "InstantiationError", "MadeAxis", "OtherOptionEntity",
    "OtherOptionSpace", "ReorderEntity", "ReorderSpace", "SplitEntity", "SplitSpace",
    "TransformSpace", "VirtualAxis",
]  # fmt: skip
