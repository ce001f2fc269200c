"""Helpers of tuning (classic): see `slipway.auto_scheduler`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

from slipway.auto_scheduler.workload_registry import name_of_function
from slipway.autotvm.measure import check_remote, request_remote
from slipway.autotvm.task.template import deserialize_args, serialize_args
from slipway.classic.placeholders import TUNING, placeholder_of
from slipway.topi.utils import get_const_int, get_const_tuple

__all__ = [
    "array_mean", "calc_workload_dis_factor", "check_remote", "decode_workload_key",
    "deserialize_args", "get_const_int", "get_const_tuple", "get_func_name", "list_to_tuple",
    "request_remote", "serialize_args",
]  # fmt: skip

Named = tuple[str, tuple[Any, ...] | None]


def decode_workload_key(workload_key: str) -> Named:
    """Return the name of a workload and its arguments, lists laid out flat.

    A key that is no list of JSON is a name, with None.
    """
    try:
        parts = json.loads(workload_key)
    except ValueError:
        return workload_key, None
    if not isinstance(parts, list) or not parts:
        return workload_key, None
    return parts[0], tuple(_flat(parts[1:]))


def calc_workload_dis_factor(target_workload_pair: Named, workload_pair: Named) -> float:
    """Return how many times a workload fits into another of the same computation.

    That is the product of the quotients of their numbers; infinite where one is no multiple, or
    anything else differs.
    """
    (name, wanted), (other, given) = target_workload_pair, workload_pair
    pairs = list(zip(wanted or (), given or (), strict=False))
    if name != other or len(wanted or ()) != len(given or ()):
        return math.inf
    factor = 1.0
    for one, two in pairs:
        if one == two:
            continue
        if not (isinstance(one, int) and isinstance(two, int)) or not two or one % two or not one:
            return math.inf
        factor *= one / two
    return factor


def get_func_name(func: Callable[..., Any]) -> str:
    """Return what a function is registered as, where nothing else is said."""
    return name_of_function(func)


def list_to_tuple(x: Iterable[Any]) -> tuple[Any, ...]:
    """Return lists, at any depth, as tuples."""
    return tuple(list_to_tuple(one) if isinstance(one, list) else one for one in x)


def array_mean(arr: Iterable[Any]) -> float:
    """Return the mean of numbers."""
    values = [float(one) for one in arr]
    return sum(values) / len(values)


def _flat(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for one in values:
        found += _flat(one) if isinstance(one, list) else [one]
    return found


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, TUNING)
