"""Targets from what scripts have: lists, dicts by device, a target and its host apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from slipway.target.kinds import list_kinds
from slipway.target.tags import list_tags

if TYPE_CHECKING:
    from typing import Self

    from slipway.target.target import TargetLike


class TargetForms:
    """The part of a Target that makes others: with a host, of a list, of a table."""

    if TYPE_CHECKING:
        host: Self | None

        def __init__(self, text: Any = None, host: TargetLike = None) -> None: ...

    def with_host(self, host: TargetLike) -> Self:
        """Return this target with another host."""
        return type(self)(self, host=host)

    @staticmethod
    def list_kinds() -> list[str]:
        """Return the names of all kinds of target."""
        return list_kinds()

    @staticmethod
    def list_tags() -> list[str]:
        """Return the names of all known devices."""
        return list_tags()

    @classmethod
    def canon_target_and_host(
        cls, target: TargetLike, host: TargetLike = None
    ) -> tuple[Self | None, Self | None]:
        """Return (target with its host, host) from whatever spells them."""
        if target is None:
            return None, None
        made = cls(target, host=host)
        return made, made.host

    @classmethod
    def check_and_update_host_consist(
        cls, target: TargetLike, host: TargetLike = None, target_is_dict_key: bool = True
    ) -> tuple[Any, Self | None]:
        """Return (target with its host, host), as TVM 0.8 spelled it.

        Of a dict by target, or by device (`target_is_dict_key` False), every target gets the host.
        """
        if not isinstance(target, Mapping) or "kind" in target or "tag" in target:
            return cls.canon_target_and_host(target, host)
        if target_is_dict_key:
            return cls.canon_target_map_and_host(target, host)
        made = {device: cls(one, host=host) for device, one in target.items()}
        return made, next((t.host for t in made.values()), None)

    @classmethod
    def canon_multi_target_and_host(
        cls, target: TargetLike, target_host: TargetLike = None
    ) -> list[Self]:
        """Return the targets, each with its host, that one, a list or a dict by device spells."""
        if isinstance(target, Mapping) and "kind" not in target and "tag" not in target:
            target = list(target.values())
        given = list(target) if isinstance(target, (list, tuple)) else [target]
        return [cls(one, host=target_host) for one in given]

    @classmethod
    def canon_target_map_and_host(
        cls, target_map: Mapping[Any, Any], target_host: TargetLike = None
    ) -> tuple[dict[Self, Any], Self | None]:
        """Return a table whose keys spell targets with targets for keys, and the host."""
        made = {cls(t, host=target_host): value for t, value in target_map.items()}
        return made, next((t.host for t in made), None)
