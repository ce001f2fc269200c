"""Regions of a graph: what lies between compiler_begin and compiler_end marks of one accelerator.

A region is a set of calls (with tuples between them) that one accelerator computes as one
function.  `find_regions` reads them from the marks; the marks themselves belong to no region.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from slipway.errors import LoweringError
from slipway.relay.expr import Constant, Expr, Function, Op, Var
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import children, post_order

BEGIN, END = "annotation.compiler_begin", "annotation.compiler_end"


@dataclass(eq=False)
class Region:
    """The expressions of one region in order, with its marks."""

    compiler: str
    inside: list[Any] = field(default_factory=list)
    begins: list[Any] = field(default_factory=list)
    ends: list[Any] = field(default_factory=list)


def find_regions(function: Function) -> list[Region]:
    """Return the regions, in the order of their first result.

    Raises LoweringError where marks of two accelerators meet inside of one.
    """
    order: list[Any] = list(post_order(function.body, into_functions=False))
    root: dict[int, int] = {}

    def find(number: int) -> int:
        while root[number] != number:
            root[number] = root[root[number]]
            number = root[number]
        return number

    inside: dict[int, Any] = {}
    waiting = [e.args[0] for e in order if is_call_of(e, END)]
    for expr in waiting:  # grows
        if id(expr) in inside or _is_leaf(expr) or is_call_of(expr, BEGIN):
            continue
        inside[id(expr)] = expr
        waiting += children(expr)
    for expr in inside.values():
        root.setdefault(id(expr), id(expr))
    for expr in inside.values():
        for child in children(expr):
            if id(child) in inside:
                root[find(id(child))] = find(id(expr))
    regions: dict[int, Region] = {}

    def region_of(expr: Any, compiler: str) -> Region:
        region = regions.setdefault(find(id(expr)), Region(compiler))
        if region.compiler != compiler:
            raise LoweringError(
                f"a part for {region.compiler!r} has marks of {compiler!r}: every way into it and "
                "out of it must be marked for one accelerator"
            )
        return region

    for expr in order:
        if is_call_of(expr, END):
            if id(expr.args[0]) in inside:
                region = region_of(expr.args[0], expr.attrs.compiler)
                region.ends.append(expr)
            continue
        for child in children(expr):
            if id(expr) in inside and is_call_of(child, BEGIN):
                mark: Any = child
                begins = region_of(expr, mark.attrs.compiler).begins
                if not any(mark is known for known in begins):
                    begins.append(mark)
    for expr in order:
        if id(expr) in inside:
            regions[find(id(expr))].inside.append(expr)
    return list(regions.values())


def _is_leaf(expr: Expr) -> bool:
    return isinstance(expr, (Var, Constant, Op, Function))
