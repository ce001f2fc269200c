"""The name of a layer as tables show it."""

from __future__ import annotations

import re

_NAMES = re.compile(r"[\w./:-]+;[\w./:;-]*")


def layer_name(name: str) -> str:
    """Return the first of the names that a converter joined, and a mark where there are more.

    TFLite's converter calls a fused operator by all that it was fused of, a;b;c.
    """
    return f"{name.partition(';')[0]} …" if _NAMES.fullmatch(name) else name
