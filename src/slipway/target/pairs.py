"""Two targets in one text: a device, and the processor that drives it.

"cpu+opencl" and "opencl, llvm -mtriple=aarch64-linux-gnu" are OpenCL with that host.
"""

from __future__ import annotations

import re

from slipway.errors import TargetError
from slipway.target.kinds import find_kind
from slipway.target.tags import find_tag

_BETWEEN = re.compile(r"[+,]")


def device_and_host(text: str) -> tuple[str, str] | None:
    """Return the two texts of a device and its processor, in this order; None for one target.

    Raises TargetError for more than two, and for two devices or two processors.
    """
    parts = _parts_of(text)
    if len(parts) == 1:
        return None
    if not all(parts):
        raise TargetError(
            f"target {text!r} ends with a comma or a plus sign, or begins with one: "
            "a target is missing there"
        )
    on_cpu = [_is_cpu(part) for part in parts]
    if sorted(on_cpu) != [False, True]:
        raise TargetError(
            f"target {text!r} names {len(parts)} targets, and one is wanted, or a device and the "
            'processor that drives it: "opencl, llvm". For several kinds of device give '
            'relay.build a target for each: {"cpu": "llvm", "opencl": "opencl"}'
        )
    processor = parts[on_cpu.index(True)]
    return parts[on_cpu.index(False)], processor


def _parts_of(text: str) -> list[str]:
    """Return the texts between commas and plus signs, but for those within options."""
    parts: list[list[str]] = [[]]
    for word in text.split():
        if not parts[-1]:
            first, *others = _BETWEEN.split(word)
            parts[-1].append(first)
            parts += [[other] if other else [] for other in others]
        elif word in ("+", ","):
            parts.append([])
        elif word.endswith(","):
            parts[-1].append(word[:-1])
            parts.append([])
        else:
            parts[-1].append(word)
    return [" ".join(words) for words in parts]


def _is_cpu(text: str) -> bool:
    """Return whether a target is a processor's; raise TargetError for one that is not known."""
    name = text.split(" ", 1)[0]
    kind = str(find_tag(name)["kind"]) if "/" in name else name
    return find_kind(kind).is_cpu
