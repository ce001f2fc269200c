"""What a project's firmware prints, as people read it.

Firmware prints an output's bytes, for which it needs no number formatting of its own::

    output (float32): 0000803f000000c0   ->   output (float32): 1 -2
"""

from __future__ import annotations

import re

import numpy as np

from slipway.errors import printable

_OUTPUT = re.compile(r"(\S+ \((u?int(?:8|16|32|64)|float(?:16|32|64)|bool)\): )([0-9a-f]+)(\s*)")
# What would move the cursor, clear the screen or rename the window: a wrong speed sends anything.
_KEPT = "\t\r"
MANY = 32  # values; of more the first are shown
FIRST = 16


def readable(line: str) -> str:
    """Return a line with the values of an output in place of its bytes.

    Any other line stays, with control characters as escapes.
    """
    match = _OUTPUT.fullmatch(line)
    if match is None:
        return printable(line, _KEPT)
    head, dtype, digits, end = match.groups()
    kind = np.dtype(dtype).newbyteorder("<")
    if len(digits) % (2 * kind.itemsize):
        return line  # cut off
    values = np.frombuffer(bytes.fromhex(digits), kind)
    some = values if values.size <= MANY else values[:FIRST]
    shown = " ".join(f"{v:.6g}" if kind.kind == "f" else str(int(v)) for v in some)
    if values.size > MANY:
        shown += f" ... {values.size} values, the largest is number {int(values.argmax())}"
    return f"{head}{shown}{end}"
