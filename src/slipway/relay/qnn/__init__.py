"""``relay.qnn``: operators on quantised tensors; those of ``relay.qnn.op`` are here too."""

from typing import Any

from slipway.lazy import load, offer

_HOMES = {"op": "slipway.relay.qnn.op", "transform": "slipway.relay.qnn.transform"}
_offered, _ = offer(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES or name.startswith("_"):
        return _offered(name)
    return getattr(load("slipway.relay.qnn.op"), name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, *dir(load("slipway.relay.qnn.op"))])
