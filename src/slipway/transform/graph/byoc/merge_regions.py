"""MergeCompilerRegions: parts for one accelerator that follow each other become one part.

    end(f(begin(end(g(begin(%x))))))  ->  end(f(g(begin(%x))))

Two are joined unless a way from the one to the other leads through something outside of both:
the joined part would wait for what waits for it.
"""

from __future__ import annotations

from typing import Any

from slipway.relay.expr import Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import children, post_order, rebuild
from slipway.transform.graph.byoc.regions import BEGIN, END, Region, find_regions


def merge_regions(function: Function) -> Function:
    """Return `function` with neighbouring parts joined."""
    order = post_order(function.body, into_functions=False)
    of: dict[int, Region] = {}
    for region in find_regions(function):
        for expr in (*region.inside, *region.begins, *region.ends):
            of[id(expr)] = region
    merged: dict[int, Region] = {}

    def current(region: Region | None) -> Region | None:
        while region is not None and id(region) in merged:
            region = merged[id(region)]
        return region

    def joins(begin: Any) -> bool:
        end = begin.args[0]
        return is_call_of(end, END) and end.attrs.compiler == begin.attrs.compiler

    for begin in order:
        if not is_call_of(begin, BEGIN) or not joins(begin):
            continue
        first = current(of.get(id(begin.args[0])))
        second = current(of.get(id(begin)))
        if first is None or second is None or first is second:
            continue
        if not _has_detour(order, of, current, first, second):
            first.inside += second.inside
            merged[id(second)] = first

    done: dict[int, Any] = {}
    for expr in post_order(function, into_functions=False):
        if isinstance(expr, Function) and expr is not function:
            done[id(expr)] = expr
        elif (
            is_call_of(expr, BEGIN)
            and joins(expr)
            and current(of[id(expr)]) is current(of[id(expr.args[0])])
        ):
            done[id(expr)] = done[id(expr.args[0].args[0])]  # type: ignore[attr-defined]
        else:
            done[id(expr)] = rebuild(expr, lambda child: done[id(child)])
    return done[id(function)]  # type: ignore[no-any-return]


def _has_detour(
    order: list[Any], of: dict[int, Region], current: Any, first: Region, second: Region
) -> bool:
    """Return whether `second` needs something outside of both that needs `first`."""
    needs: dict[int, bool] = {}  # of what lies outside: whether it comes after `first`
    for expr in order:
        region = current(of.get(id(expr)))
        below = any(
            needs.get(id(child), False) or current(of.get(id(child))) is first
            for child in children(expr)
        )
        if region is first:
            continue
        if region is second:
            if is_call_of(expr, BEGIN) and needs.get(id(expr.args[0]), False):
                return True
            continue
        # A whole region waits for each of its inputs.
        if region is not None and below:
            for other in order:
                if current(of.get(id(other))) is region:
                    needs[id(other)] = True
        needs[id(expr)] = needs.get(id(expr), False) or below
    return False
