"""The open sizes of a program: what its callers give, and what kernels are told.

A program's run function gets the sizes of its open dimensions, checks them against their ranges,
and evaluates the formulas that kernels and copies ask for.  Sizes that values decide
(`relay.sized`) it reads as soon as they are computed, checks them alike, and tells its caller.
Memory is planned for the upper ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from slipway import dtypes
from slipway.compiler.open_sizes import formula_of
from slipway.relay.dims import is_open, line_of
from slipway.relay.types import TensorType
from slipway.runtime.graph.graph_sizes import Formula, OpenSize


@dataclass(frozen=True)
class ProgramSize:
    """A size: the model's name for it, the program's, its range, and an input's axis.

    The axis has `times` as many elements and `more`; `port` is -1 for a size that a value decides.
    """

    name: str
    c_name: str
    low: int
    high: int
    port: int
    axis: int = 0
    times: int = 1
    more: int = 0

    @property
    def is_found(self) -> bool:
        """Whether a value decides the size, which the run tells its caller then."""
        return self.port < 0


def program_sizes(
    sizes: Iterable[OpenSize],
    inputs: Iterable[TensorType],
    c_name: Callable[[str], str],
    tellers: Iterable[str] = (),
) -> tuple[ProgramSize, ...]:
    """Return `sizes` with their origins; an axis of some input tells each (`relay.dims.Line`).

    `tellers` names those that values decide: they come last.
    """
    sources: dict[str, tuple[int, int, int, int]] = {}
    for port, type_ in enumerate(inputs):
        for axis, extent in enumerate(type_.shape):
            line = line_of(extent)
            if line is not None:
                sources.setdefault(line.variable.name, (port, axis, line.times, line.more))
    sources |= {name: (-1, 0, 1, 0) for name in tellers}
    found = sorted(sizes, key=lambda size: sources[size.name][0] < 0)
    return tuple(
        ProgramSize(s.name, c_name(s.name), s.low, s.high, *sources[s.name]) for s in found
    )


def c_text(formula: Formula, name_of: Callable[[str], str]) -> str:
    """Return a formula as a C expression of int64_t."""
    stack: list[str] = []
    for token in formula:
        if isinstance(token, int):
            stack.append(f"(int64_t){token}")
        elif token not in _C:
            stack.append(name_of(token))
        else:
            b, a = stack.pop(), stack.pop()
            stack.append(_C[token].format(a=a, b=b))
    return stack.pop()


_MODULO = "((({a}) % ({b}) + ({b})) % ({b}))"
_C = {
    "+": "({a} + {b})", "-": "({a} - {b})", "*": "({a} * {b})",
    "//": f"((({{a}}) - {_MODULO}) / ({{b}}))", "%": _MODULO,
    "min()": "({a} < {b} ? {a} : {b})", "max()": "({a} > {b} ? {a} : {b})",
}  # fmt: skip


def llvm_value(formula: Formula, put: Callable[[str], str], value_of: Callable[[str], str]) -> str:
    """Emit a formula in i64 and return its value."""
    stack: list[str] = []
    for token in formula:
        if isinstance(token, int):
            stack.append(str(token))
        elif token not in _C:
            stack.append(value_of(token))
        else:
            b, a = stack.pop(), stack.pop()
            stack.append(_operation(token, a, b, put))
    return stack.pop()


def _operation(token: str, a: str, b: str, put: Callable[[str], str]) -> str:
    if token in _PLAIN:
        return put(f"{_PLAIN[token]} i64 {a}, {b}")
    if token in _COMPARED:
        test = put(f"icmp {_COMPARED[token]} i64 {a}, {b}")
        return put(f"select i1 {test}, i64 {a}, i64 {b}")
    left = put(f"srem i64 {a}, {b}")
    above = put(f"add i64 {left}, {b}")
    modulo = put(f"srem i64 {above}, {b}")
    if token == "%":
        return modulo
    whole = put(f"sub i64 {a}, {modulo}")
    return put(f"sdiv i64 {whole}, {b}")


_PLAIN = {"+": "add", "-": "sub", "*": "mul"}
_COMPARED = {"min()": "slt", "max()": "sgt"}


def bytes_formula(type_: TensorType) -> Formula:
    """Return the bytes of a tensor as a formula."""
    tokens: list[int | str] = [dtypes.bytes_of(type_.dtype)]
    for extent in type_.shape:
        tokens += [*dim_formula(extent), "*"]
    return tuple(tokens)


def dim_formula(extent: int) -> Formula:
    """Return the formula of an extent, open or not."""
    return formula_of(extent) if is_open(extent) else (int(extent),)
