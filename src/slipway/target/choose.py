"""What a user gives as `target`, in any of the classic forms, as a Target to compile for."""

from __future__ import annotations

from collections.abc import Mapping

from slipway.errors import TargetError
from slipway.target.target import Target, TargetLike


def one_target(target: TargetLike, host: TargetLike = None, what: str = "models") -> Target:
    """Return the one target for `what`; without one that of ``with Target(...):``, or "llvm".

    A Target, its text or dictionary, or the classic ``{device: target}`` with one device.  Raises
    TargetError for several.
    """
    if isinstance(target, Mapping) and "kind" not in target:
        if len(target) != 1:
            raise TargetError(
                f"got targets for {len(target)} devices; {what} are compiled for one, so give its "
                "target alone"
            )
        (target,) = target.values()
    if target is None:
        target = Target.current(allow_none=True) or "llvm"
    return target if isinstance(target, Target) and host is None else Target(target, host)
