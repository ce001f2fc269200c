"""What a model's artifact holds beside its library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ModelParts:
    """What an artifact of a model holds beside its library; the parameters in pieces."""

    graph_json: str
    graph_binary: bytes
    param_pieces: Sequence[Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def params(self) -> bytes:
        """The parameters as one."""
        return b"".join(self.param_pieces)
