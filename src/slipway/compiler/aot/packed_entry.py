"""A program's function in the calling convention: the tensors it takes, and what it refuses.

The arguments are checked by the code that checks those of kernels (codegen/glue), so that a wrong
one is an error with a message; what the two languages say here is what comes after it.
"""

from __future__ import annotations

from dataclasses import dataclass

from slipway.codegen.packed import TensorParameter, tensors_signature
from slipway.compiler.aot.program import AotProgram
from slipway.compiler.aot.sizes import ProgramSize, dim_formula
from slipway.compiler.open_sizes import largest_shape
from slipway.relay.dims import is_open
from slipway.runtime.graph.graph_sizes import Formula

FAILED = "a kernel found its input unusable"
NO_POOLS = "the workspace is the caller's, which only the C interface can give"


@dataclass(frozen=True)
class SizeCheck:
    """A size of which extent `slot` is `times` and `more`, its range, and the refusal."""

    slot: int
    times: int
    more: int
    low: int
    high: int
    message: str


@dataclass(frozen=True)
class FormulaCheck:
    """An extent that must be what its formula says once the sizes are known."""

    slot: int
    formula: Formula
    message: str


@dataclass(frozen=True)
class PackedEntry:
    """What the function checks: `words` for packed.c, then sizes, then formulas.

    `slots` extents are bound by the first check: each formula has one.  `told` are the sizes that
    shapes tell, one for each of `sizes`; `found` those that values decide, which the function
    writes into a tensor behind the outputs.
    """

    name: str
    words: list[int]
    slots: int
    sizes: list[SizeCheck]
    formulas: list[FormulaCheck]
    told: list[ProgramSize]
    found: list[ProgramSize]

    @property
    def out_of_range(self) -> str:
        """The error for a value that is none of the sizes it may be."""
        ranges = ", ".join(f"{s.name} from {s.low} to {s.high}" for s in self.found)
        return f"{self.name}: a size that the run found is out of its range: {ranges}"


def packed_entry(program: AotProgram, name: str) -> PackedEntry:
    """Return the checks of the function `name`: a tensor for each input, then each output.

    An output whose size values decide has its largest shape, and a vector "sizes" (int64) comes
    last, for the sizes that the run finds.
    """
    ports = [*program.inputs, *program.outputs]
    told = [size for size in program.sizes if not size.is_found]
    found = [size for size in program.sizes if size.is_found]
    names = {size.name for size in found}
    slots: dict[Formula, int] = {}
    formulas: list[FormulaCheck] = []
    parameters = []
    for number, port in enumerate(ports):
        dims = []
        for axis, extent in enumerate(port.type.shape):
            if not is_open(extent):
                dims.append(int(extent))
                continue
            formula = dim_formula(extent)
            if not names.isdisjoint(formula):
                dims.append(largest_shape(port.type)[axis])
                continue
            if formula not in slots:
                slots[formula] = len(slots)
                message = f"{_extent_name(name, number, port.name, axis)} is not {extent}"
                formulas.append(FormulaCheck(slots[formula], formula, message))
            dims.append(-1 - slots[formula])
        parameters.append(TensorParameter(port.name, port.type.dtype, dims))
    sizes = []
    for size in told:
        port = ports[size.port]
        slot = slots[dim_formula(port.type.shape[size.axis])]
        where = _extent_name(name, size.port, port.name, size.axis)
        times = f"{size.times} times " if size.times > 1 else ""
        more = f" {'+' if size.more > 0 else '-'} {abs(size.more)}" if size.more else ""
        ends = f"{size.name} is from {size.low} to {size.high}" if more else (
            f"which is from {size.low} to {size.high}")  # fmt: skip
        message = f"{where} is not {times}{size.name}{more}, {ends}"
        sizes.append(SizeCheck(slot, size.times, size.more, size.low, size.high, message))
    if found:
        parameters.append(TensorParameter("sizes", "int64", [len(found)]))
    told_by = {size.slot for size in sizes}
    words = tensors_signature(name, parameters).words
    rest = [check for check in formulas if check.slot not in told_by]
    return PackedEntry(name, words, len(slots), sizes, rest, told, found)


def _extent_name(name: str, number: int, port: str, axis: int) -> str:
    return f"{name}: argument {number} ({port}): shape[{axis}]"
