"""InferType: give every expression its type.

Expressions are typed as they are built; what remains are variables without annotation, whose type
follows from an operator that uses them (the weight of a dense with `units`, say).  Such a variable
is replaced by a typed one of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slipway.errors import TypeInferenceError
from slipway.ir.function import GlobalVar, IRModule
from slipway.relay.expr import Call, Expr, Function, Let, Op, Var
from slipway.relay.op_registry import get
from slipway.relay.types import FuncType, Type
from slipway.relay.visit import post_order, rebuild, substitute


def infer_types(module: IRModule) -> IRModule:
    """Return `module` with every graph typed; calls of its functions have what those give.

    Raises TypeInferenceError naming the variable when a type does not follow.
    """
    given = {name: f for name, f in module.items() if isinstance(f, Function)}
    called = {name: _called(f) if len(given) > 1 else [] for name, f in given.items()}
    types = {name: f.type or _annotated(f) for name, f in given.items()}
    typed: dict[str, Function] = {}
    waiting = list(reversed(given))
    begun: set[str] = set()
    while waiting:
        name = waiting[-1]
        needed = [n for n in called[name] if types.get(n) is None and n in given]
        if name not in begun and needed:  # what it calls comes first
            begun.add(name)
            waiting += [n for n in needed if n not in begun]
            continue
        waiting.pop()
        if name not in typed:
            typed[name] = infer_type(given[name], types if called[name] else None)
            types[name] = typed[name].type
    if all(typed[name] is function for name, function in given.items()):
        return module
    functions = tuple((name, typed.get(name, f)) for name, f in module.items())
    return IRModule(functions, module.attrs)


def _called(function: Function) -> list[str]:
    """Return the functions of the module that a graph calls without knowing their types."""
    return [
        e.op.name
        for e in post_order(function)
        if isinstance(e, Call) and isinstance(e.op, GlobalVar) and e.op.function_type is None
    ]


def _annotated(function: Function) -> Type | None:
    """Return the type that a function's text gives: of each parameter, and of its result."""
    params = tuple(p.type_annotation for p in function.params)
    if function.ret_type is None or None in params:
        return None
    return FuncType(params, function.ret_type)  # type: ignore[arg-type]


def infer_type(
    function: Function, module_types: Mapping[str, Type | None] | None = None
) -> Function:
    """Return `function` with every expression typed.

    `module_types` are those of the functions that it may call by name.  Raises TypeInferenceError
    naming the variable when a type does not follow.
    """
    if function.type is not None and not module_types:
        return function
    typed: dict[int, Expr] = {}
    done: dict[int, Expr] = {}
    order = post_order(function)
    named = {id(e.value): e.var for e in order if isinstance(e, Let) and e.var.type is None}
    for expr in order:
        done_as = id(expr)
        if isinstance(expr, Call) and isinstance(expr.op, GlobalVar):
            known = expr.op.function_type or (module_types or {}).get(expr.op.name)
            expr = expr.replace(op=GlobalVar(expr.op.name, known))
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            _guess_arguments(expr, done, typed)
        elif isinstance(expr, Call) and isinstance(expr.op, Function) and expr.op.type is None:
            done[id(expr.op)] = _called_with(expr, done, typed, module_types)
            _take_types_of_parameters(expr, done, typed)
        done[done_as] = rebuild(expr, lambda child: typed.get(id(child)) or done[id(child)])
        if done_as in named and (value := done[done_as].type) is not None:
            typed[id(named[done_as])] = Var(named[done_as].name, value)
    result: Any = done[id(function)]
    if result.type is None:
        untyped = [p.name for p in result.params if p.type is None]
        what = f"variable %{untyped[0]}" if untyped else "a call in the function"
        raise TypeInferenceError(
            f"the type of {what} does not follow from its use: give it a shape, "
            'as in relay.var("x", shape=(1, 3, 224, 224))'
        )
    return result  # type: ignore[no-any-return]


def _called_with(
    call: Call,
    done: Mapping[int, Expr],
    typed: Mapping[int, Expr],
    module_types: Mapping[str, Type | None] | None,
) -> Expr:
    """Return the function that is called, with parameters of the types that it is called with."""
    function = done[id(call.op)]
    arguments = [typed.get(id(a)) or done[id(a)] for a in call.args]
    if not isinstance(function, Function) or function.type is not None:
        return function
    fresh = {
        param: Var(param.name, argument.type)
        for param, argument in zip(function.params, arguments, strict=False)
        if param.type is None and argument.type is not None
    }
    if len(function.params) != len(arguments) or not fresh:
        return function
    params = tuple(fresh.get(p, p) for p in function.params)
    return infer_type(
        function.replace(params=params, body=substitute(function.body, fresh)), module_types
    )


def _take_types_of_parameters(call: Call, done: Mapping[int, Expr], typed: dict[int, Expr]) -> None:
    """Type the untyped variables that a function is called with, where its body tells."""
    function = done[id(call.op)]
    for old, param in zip(call.args, getattr(function, "params", ()), strict=False):
        current = typed.get(id(old)) or done[id(old)]
        if current.type is None and isinstance(current, Var) and param.type is not None:
            typed[id(old)] = Var(current.name, param.type)


def _guess_arguments(call: Call, done: dict[int, Expr], typed: dict[int, Expr]) -> None:
    """Type the untyped variables among the arguments of `call`, where its operator tells."""
    arguments = [typed.get(id(a)) or done[id(a)] for a in call.args]
    if all(a.type is not None for a in arguments):
        return
    found = get(call.op.name).implied([a.type for a in arguments], call.attrs)
    for old, current, type_ in zip(call.args, arguments, found, strict=True):
        if current.type is None and isinstance(current, Var) and type_ is not None:
            typed[id(old)] = Var(current.name, type_)
