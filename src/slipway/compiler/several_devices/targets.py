"""What a user gives as targets of several kinds of device, as one Target for each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slipway.backends.backend import compile_target
from slipway.errors import TargetError
from slipway.runtime.devices import Device
from slipway.target import Target
from slipway.target.kinds import KINDS
from slipway.transform.context import PassContext

if TYPE_CHECKING:
    from slipway.target.target import TargetLike


_PROCESSOR = 1


def without_accelerators(target: TargetLike) -> TargetLike:
    """Return `target` without those that only take parts of models: the host's where none is left.

    The parts are functions of the module, each for a code generator by name.
    """
    if isinstance(target, Target):
        return (target.host or "llvm") if target.kind.takes_parts else target
    if isinstance(target, Mapping) and "kind" not in target and target:
        found = {key: one for key, one in target.items() if not _takes_parts(one)}
        return found or _host_of(next(iter(target.values())))
    if isinstance(target, Sequence) and not isinstance(target, str) and target:
        several = [one for one in target if not _takes_parts(one)]
        if len(several) == len(target):
            return target
        return several if len(several) > 1 else (several or [_host_of(target[0])])[0]
    if isinstance(target, str | Mapping) and _takes_parts(target):
        return _host_of(target)
    return target


def _host_of(target: TargetLike) -> TargetLike:
    return Target(target).host or "llvm"


def _takes_parts(target: TargetLike) -> bool:
    if isinstance(target, Target):
        return target.kind.takes_parts
    name = target.get("kind") if isinstance(target, Mapping) else str(target).split(" ", 1)[0]
    kind = KINDS.get(str(name))
    return kind is not None and kind.takes_parts


def several_targets(target: TargetLike, host: TargetLike = None) -> dict[int, Target]:
    """Return the Target of each kind of device, the processor's first; {} unless several are given.

    `target` is ``{"cpu": "llvm", "opencl": "opencl"}`` (keys may be devices or DLPack's numbers
    too) or a list of targets.  Without one of the processor, it is that of `host`, or of the other
    targets' host.  Raises TargetError for a key that is not of its target's kind, and for two
    targets of one kind.
    """
    given: list[tuple[Any, Any]] = []
    if isinstance(target, Mapping) and "kind" not in target:
        given = list(target.items())
    elif isinstance(target, Sequence) and not isinstance(target, str | Target):
        given = [(None, one) for one in target]
    if len(given) < 2:
        return {}
    made: dict[int, Target] = {}
    for key, one in given:
        chosen = compile_target(one)
        kind = chosen.kind.device_type
        if key is not None and _number_of(key) != kind:
            raise TargetError(
                f"the target for {key!r} is {chosen.kind.name}, which is for "
                f"{Device(kind, 0).type_name}: give each kind of device its own"
            )
        if kind in made:
            raise TargetError(
                f"two targets are for {Device(kind, 0).type_name}: a model is compiled for one of "
                "each kind of device"
            )
        made[kind] = chosen
    hosts = [one.host for one in made.values() if one.host is not None]
    if _PROCESSOR not in made:
        made[_PROCESSOR] = compile_target(host or (hosts[0] if hosts else "llvm"))
    processor = made.pop(_PROCESSOR)
    return {
        _PROCESSOR: processor,
        **{kind: Target(one, processor) for kind, one in made.items()},
    }


def _number_of(key: Any) -> int:
    if isinstance(key, Target):
        return key.kind.device_type
    if isinstance(key, str | int):
        return Device(key).device_type
    return int(key.device_type)


def fallback_device(targets: Mapping[int, Target]) -> int | None:
    """Return the kind that the PassContext wants for what no mark speaks of; None: no wish."""
    chosen = PassContext.current().option("relay.fallback_device_type", None)
    if chosen is None:
        return None
    if int(chosen) not in targets:
        raise TargetError(
            f"relay.fallback_device_type is {Device(int(chosen), 0).type_name}, for which there is "
            "no target"
        )
    return int(chosen)
