"""``relay.frontend``: the importers under their classic names; see `slipway.frontends`."""

from __future__ import annotations

import importlib
from typing import Any

_PLACES = {
    "from_onnx": "slipway.frontends.onnx.importer:from_onnx",
    "from_tflite": "slipway.frontends.tflite.importer:from_tflite",
    "from_pytorch": "slipway.frontends.torch.importer:from_pytorch",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'slipway.relay.frontend' has no attribute {name!r}")
    module, _, attribute = place.partition(":")
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_PLACES)
