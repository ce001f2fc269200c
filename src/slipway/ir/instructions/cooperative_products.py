"""Products of matrices that a subgroup holds together: Vulkan's ``VK_KHR_cooperative_matrix``.

A device says which sizes it multiplies, and the target says it again: ``f16:16x16x16`` is 16 rows
and 16 columns, summed over 16 steps.  Nothing says which elements of a matrix a thread has, so no
thread has sums of its own while they are added up.  Loops name what is done to whole matrices::

    warp_zero(name, c)                      c is the matrix whose first element is that thread's
    warp_product(name, a, b, i, j, c)       c += a @ b.T; rows of a are i elements apart, of b j
    warp_store(name, to, c)                 to[0 .. rows * columns) = c

(each a ``Call("int32", ..., (StringImm(name), ...))`` to which all threads of the subgroup come
together, with the same addresses).  To schedules a thread has some rows of a column, as AMD's have:
`backends/gpu/lowering/cooperative_sums.py` gives it those when the sums are done.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from slipway.errors import TargetError
from slipway.ir.instructions.warp_products import SumsLayout

STORE = "warp_store"
MATRIX = "matrix"  # the scope of memory that is matrices
_DTYPES = {
    "f16": ("float16", "float32"), "s8": ("int8", "int32"), "u8": ("uint8", "int32")
}  # fmt: skip # of operands, of sums
_SPELLED = re.compile(r"(\w+):(\d+)x(\d+)x(\d+)")


@dataclass(frozen=True)
class CooperativeProduct:
    """One size: `rows` x `columns` sums over `depth` steps, by subgroups of `lanes` threads."""

    kind: str
    rows: int
    columns: int
    depth: int
    lanes: int

    @property
    def name(self) -> str:
        """What calls say, and `named` reads."""
        return f"{self.kind}:{self.rows}x{self.columns}x{self.depth}:{self.lanes}"

    @property
    def a_dtype(self) -> str:
        """The type of the operands."""
        return _DTYPES[self.kind][0]

    @property
    def b_dtype(self) -> str:
        """The type of the second operand."""
        return self.a_dtype

    @property
    def c_dtype(self) -> str:
        """The type of the sums."""
        return _DTYPES[self.kind][1]

    @property
    def sums(self) -> int:
        """How many sums a thread has when they are done."""
        return self.rows * self.columns // self.lanes

    @property
    def layout(self) -> SumsLayout:
        """Which sums are a thread's when they are done."""
        groups = self.lanes // self.columns
        return SumsLayout(self.sums, 1, self.rows, self.columns, groups, self.columns)

    @property
    def pads(self) -> tuple[int, int]:
        """Bytes between rows of panels: they begin at multiples of 16, as Vulkan wants."""
        return 16, 16


def named(name: str) -> CooperativeProduct | None:
    """Return the product that a call names, or None where it is none of these."""
    spelled, _, lanes = name.rpartition(":")
    found = _SPELLED.fullmatch(spelled)
    if found is None or found[1] not in _DTYPES:
        return None
    return CooperativeProduct(found[1], *(int(size) for size in (*found.groups()[1:], lanes)))


@lru_cache(maxsize=64)
def read_sizes(spelled: tuple[str, ...], lanes: int) -> tuple[CooperativeProduct, ...]:
    """Return what a target says.  Raises TargetError for what is not spelled as it should be."""
    found = []
    for size in spelled:
        product = named(f"{size}:{lanes}")
        if product is None or 0 in (product.rows, product.columns, product.depth):
            raise TargetError(
                f"-cooperative_matrix={','.join(spelled)}: {size!r} is no size of matrices. It is "
                f"spelled TYPE:ROWSxCOLUMNSxDEPTH, as in f16:16x16x16; types are "
                f"{', '.join(_DTYPES)}"
            )
        found.append(product)
    return tuple(found)
