"""Inline: Lets, calls of local functions and of module functions become plain dataflow.

``let %x = v; f(%x)  ->  f(v)``, shared where it is used twice, so nothing is computed twice.
`inline` is the compiler's own, which leaves no call of any function; `inline_marked` is classic
TVM's pass, which puts in place the functions of the module that are marked ``Inline``.
"""

from __future__ import annotations

from typing import Any

from slipway.errors import LoweringError
from slipway.ir.function import GlobalVar, IRModule
from slipway.relay.expr import Call, Expr, Function, Let
from slipway.relay.op_registry import is_primitive
from slipway.relay.visit import post_order, rebuild, substitute


def inline(function: Function, module: IRModule | None = None) -> Function:
    """Return `function` without Lets and without calls of functions, kernels excepted.

    Raises LoweringError when functions call each other without end.
    """
    if module is not None:
        _need_an_end(function, module)
    while True:
        result = _inline_once(function, module)
        if result is function:
            return function
        function = result


def _need_an_end(function: Function, module: IRModule) -> None:
    """Raise LoweringError if a function that `function` needs calls itself, perhaps by others."""
    calls: dict[str, list[str]] = {}
    waiting = [("", function)]
    while waiting:
        name, caller = waiting.pop()
        calls[name] = []
        for expr in post_order(caller):
            target = expr.op if isinstance(expr, Call) else None
            if isinstance(target, GlobalVar) and isinstance(
                called := module[target.name], Function
            ):
                calls[name].append(target.name)
                if target.name not in calls:
                    calls[target.name] = []
                    waiting.append((target.name, called))
    ended: set[str] = set()
    while len(ended) < len(calls):
        more = {n for n, others in calls.items() if n not in ended and ended.issuperset(others)}
        if not more:
            raise LoweringError(
                "the module's functions call each other without end; recursion is not inlined"
            )
        ended |= more


def _inline_once(function: Function, module: IRModule | None) -> Function:
    done: dict[int, Expr] = {}
    order = post_order(function, into_functions=False)
    values = {id(e.var): e.value for e in order if isinstance(e, Let)}
    for expr in order:
        if isinstance(expr, Function) and expr is not function:
            done[id(expr)] = expr
            continue
        if id(expr) in values:  # the name of a Let, whose value comes before it
            done[id(expr)] = done[id(values[id(expr)])]
            continue
        if isinstance(expr, Let):
            done[id(expr)] = done[id(expr.body)]
            continue
        fresh: Any = rebuild(expr, lambda child: done[id(child)])
        if isinstance(fresh, Call):
            target = _target(fresh, module)
            if target is not None and target.attr("Compiler"):
                # A kernel already, of a code generator of the user's.
                fresh = fresh.replace(op=target.with_attr("Primitive", 1))
            elif target is not None:
                binding = dict(zip(target.params, fresh.args, strict=True))
                fresh = substitute(target.body, binding)
        done[id(expr)] = fresh
    return done[id(function)]  # type: ignore[return-value]


def _target(call: Call, module: IRModule | None) -> Function | None:
    """The function that `call` names, if it is to be inlined."""
    target: Any = call.op
    if isinstance(target, GlobalVar) and module is not None:
        target = module[target.name]
    if not isinstance(target, Function):
        return None
    if is_primitive(target) and target is call.op:
        return None
    return target if target.attr("Compiler") or not is_primitive(target) else None


def inline_marked(module: IRModule) -> IRModule:
    """Return `module` with its marked functions in the place of their calls.

    A marked function leaves the module once it has been put somewhere; one that calls itself,
    perhaps through others, stays as it is.  A function without attributes that is written where
    it is called is put in place too.
    """
    graphs = {name: f for name, f in module.items() if isinstance(f, Function)}
    calls = {name: _mentioned(f) & graphs.keys() for name, f in graphs.items()}
    marked = {
        name for name, f in graphs.items() if f.attr("Inline") and not _recursive(name, calls)
    }
    done: dict[str, Function] = {}
    for name in _callees_first(calls):
        done[name] = _put_in(graphs[name], {n: done[n] for n in calls[name] & marked if n in done})
    left = {n for name, f in done.items() if name not in marked for n in _mentioned(f)}
    called = set().union(*calls.values()) if calls else set()
    gone = {name for name in marked & called if name not in left}
    return IRModule(
        tuple((name, done.get(name, f)) for name, f in module.items() if name not in gone),
        module.attrs,
    )


def _mentioned(function: Function) -> set[str]:
    """The functions of the module that a graph calls, or hands on."""
    found: set[str] = set()
    for expr in post_order(function):
        parts = (expr.op, *expr.args) if isinstance(expr, Call) else ()
        found |= {part.name for part in parts if isinstance(part, GlobalVar)}
    return found


def _recursive(name: str, calls: dict[str, set[str]]) -> bool:
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        more = calls[waiting.pop()] - reached
        reached |= more
        waiting += more
    return name in reached


def _callees_first(calls: dict[str, set[str]]) -> list[str]:
    order: list[str] = []
    seen: set[str] = set()
    for root in calls:
        stack = [(root, False)]
        while stack:
            name, ready = stack.pop()
            if ready:
                order.append(name)
            elif name not in seen:
                seen.add(name)
                stack.append((name, True))
                stack += [(n, False) for n in sorted(calls[name])]
    return order


def _put_in(function: Function, bodies: dict[str, Function]) -> Function:
    done: dict[int, Expr] = {}
    for expr in post_order(function):
        fresh: Any = rebuild(expr, lambda child: done[id(child)])
        callee = fresh.op if isinstance(fresh, Call) else None
        if isinstance(callee, GlobalVar) and callee.name in bodies:
            body = bodies[callee.name]
            if body.attr("Compiler"):  # stays a function of its own, where it is called
                fresh = fresh.replace(op=body)
            else:
                fresh = substitute(body.body, dict(zip(body.params, fresh.args, strict=True)))
        elif (
            isinstance(callee, Function) and not callee.attrs
        ):  # a function written where it is called
            fresh = substitute(callee.body, dict(zip(callee.params, fresh.args, strict=True)))
        done[id(expr)] = fresh
    return done[id(function)]  # type: ignore[return-value]
