"""PartitionGraph: each part between marks becomes a function of the module.

The function has the attributes "Compiler" (whose code generator compiles it), "global_symbol" (its
name), "Primitive" and "Inline"; "main" calls it by name.
"""

from __future__ import annotations

import re
from typing import Any

from slipway.ir.function import GlobalVar, IRModule
from slipway.relay.expr import Call, Constant, Function, Tuple, TupleGetItem, Var
from slipway.relay.op_registry import is_call_of
from slipway.relay.types import FuncType
from slipway.relay.visit import post_order, rebuild, substitute
from slipway.transform.graph.byoc.regions import BEGIN, END, Region, find_regions


def partition_graph(
    module: IRModule, mod_name: str = "default", bind_constants: bool = True
) -> IRModule:
    """Return `module` with a function for each part of each of its functions.

    With `bind_constants` the constants of a part lie in its function; without, they are parameters.
    """
    for name, function in module.items():
        if not isinstance(function, Function) or function.attr("Compiler"):
            continue
        regions = find_regions(function)
        made, parts = _cut(function, name, regions, mod_name, bind_constants)
        if parts:
            module = module.update(name, made)
        for symbol, part in parts.items():
            module = module.update(symbol, part)
    return module


def _cut(
    function: Function, name: str, regions: list[Region], mod_name: str, bind_constants: bool
) -> tuple[Function, dict[str, Function]]:
    parts: dict[str, Function] = {}
    result_of: dict[int, tuple[Region, int]] = {}
    made: dict[int, tuple[GlobalVar, list[Any], int]] = {}
    for region in regions:
        number = sum(part.attr("Compiler") == region.compiler for part in parts.values())
        symbol = re.sub(r"\W", "_", f"tvmgen_{mod_name}_{region.compiler}_{name}_{number}")
        part, inputs = _as_function(region, symbol, bind_constants)
        parts[symbol] = part
        kind = part.checked_type
        assert isinstance(kind, FuncType)
        outputs = _outputs(region)
        made[id(region)] = GlobalVar(symbol, kind), inputs, len(outputs)
        for end in region.ends:
            index = next(i for i, value in enumerate(outputs) if value is end.args[0])
            result_of[id(end)] = region, index
    calls: dict[int, Any] = {}
    done: dict[int, Any] = {}
    for expr in post_order(function, into_functions=False):
        if isinstance(expr, Function) and expr is not function:
            done[id(expr)] = expr
        elif id(expr) in result_of:
            region, index = result_of[id(expr)]
            variable, inputs, count = made[id(region)]
            if id(region) not in calls:
                calls[id(region)] = Call(variable, tuple(done.get(id(e), e) for e in inputs))
            call = calls[id(region)]
            done[id(expr)] = TupleGetItem(call, index) if count > 1 else call
        elif is_call_of(expr, BEGIN, END):
            done[id(expr)] = done[id(expr.args[0])]
        else:
            done[id(expr)] = rebuild(expr, lambda child: done[id(child)])
    return done[id(function)], parts


def _outputs(region: Region) -> list[Any]:
    return list({id(end.args[0]): end.args[0] for end in region.ends}.values())


def _as_function(region: Region, symbol: str, bind_constants: bool) -> tuple[Function, list[Any]]:
    """Return a region as a function, and what it is called with."""
    inputs: dict[int, Any] = {}
    table: dict[Any, Any] = {}
    for begin in region.begins:
        if bind_constants and isinstance(begin.args[0], Constant):
            table[begin] = begin.args[0]
        else:
            inputs.setdefault(id(begin.args[0]), begin.args[0])
    constants = [] if bind_constants else _constants(region)
    for constant in constants:
        inputs.setdefault(id(constant), constant)
    params = {key: Var(f"{symbol}_i{i}", e.type) for i, (key, e) in enumerate(inputs.items())}
    table.update((b, params[id(b.args[0])]) for b in region.begins if b not in table)
    table.update((constant, params[id(constant)]) for constant in constants)
    outputs = _outputs(region)
    body = outputs[0] if len(outputs) == 1 else Tuple(tuple(outputs))
    attrs = (
        ("Compiler", region.compiler), ("global_symbol", symbol), ("Primitive", 1), ("Inline", 1),
    )  # fmt: skip
    return Function(tuple(params.values()), substitute(body, table), None, attrs), [
        *inputs.values()
    ]


def _constants(region: Region) -> list[Constant]:
    """The constants that the calls of a region read; those inside of composite functions stay."""
    found: dict[int, Constant] = {}
    for expr in region.inside:
        for child in getattr(expr, "args", getattr(expr, "fields", ())):
            if isinstance(child, Constant):
                found.setdefault(id(child), child)
    return list(found.values())
