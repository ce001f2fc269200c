"""The verifier of graphs: what holds in an IRModule between any two passes.

- types: each expression has the type that its operator's relation gives for its arguments now
- fields: arguments are expressions, attributes a record of the operator's, each field of its type
- scopes: a variable is used under the function or Let that binds it, and one thing binds it
- references: a called name is a function of the module, and takes what it is called with
- kernels: a Primitive function is closed, and consists of operators

What single passes promise besides (no Let behind Inline, kernels only behind KernelPerOp) is in
`PROMISES`.  And of every step it holds that constants keep their values, for graphs share them, and
that functions keep their types.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from slipway.errors import SlipwayError, TypeInferenceError
from slipway.ir.field_types import field_checks
from slipway.ir.function import GlobalVar, IRModule
from slipway.ir.node import Node
from slipway.ir.visit import post_order_by
from slipway.relay import op_registry
from slipway.relay.dims import SymbolDim
from slipway.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)
from slipway.relay.op_registry import Attrs, is_primitive
from slipway.relay.types import ANY, FuncType, TensorType, TupleType, Type
from slipway.relay.visit import children, post_order
from slipway.transform.verify import Step

# Passes whose result has other inputs or outputs than what they are given: it is what they are for.
NEW_SIGNATURE = frozenset(
    ["ChangeBatch", "DenseToSparse", "FixShapes", "InferType", "ToMixedPrecision"]
)
SAMPLE = 4096  # elements of a constant that tell whether somebody wrote to it


@dataclass(frozen=True)
class Sound:
    """A function without a fault: what can change while it is the same object, and what to ask.

    Types are written in place, and a name may come to mean another function of the module.
    """

    root: Function
    typed: tuple[tuple[Expr, Type | None], ...]
    calls: tuple[Call, ...]  # of functions of the module
    bodies: tuple[tuple[Function, Call], ...]  # among the attributes of calls
    constants: tuple[Constant, ...]

    def is_as_it_was(self) -> bool:
        """Return whether every expression has the type that it was found to have."""
        return all(expr.type is found for expr, found in self.typed)


class KnownSound:
    """What was found right, by id: expressions with their types, and whole functions.

    They are immutable, so that what one pass leaves as it was is not looked at again after it.
    """

    def __init__(self) -> None:
        self.typed: dict[int, tuple[Expr, Type | None]] = {}
        self.functions: dict[int, Sound] = {}


def graph_faults(module: IRModule, known: KnownSound | None = None) -> list[str]:
    """Return what is wrong in the graphs of `module`, one line each; `known` is added to."""
    checker = _Checker(module, KnownSound() if known is None else known)
    for name, function in module.items():
        if isinstance(function, Function):
            checker.closed(function, f"function {name!r}")
    return checker.faults


class GraphLaws:
    """The laws of a module, in the form in which `transform.verify` asks for them."""

    def __init__(self) -> None:
        self.known = KnownSound()
        self.prints: dict[int, tuple[Constant, int]] = {}

    def given(self, node: Node) -> list[str]:
        """Return what is wrong in a module that no pass has touched yet."""
        assert isinstance(node, IRModule)
        return graph_faults(node, self.known)

    def before(self, node: Node) -> object:
        """Return the module, with its constants' fingerprints taken."""
        assert isinstance(node, IRModule)
        for constant in self._constants(node):
            if id(constant) not in self.prints:
                self.prints[id(constant)] = constant, fingerprint(constant)
        return node

    def after(self, step: Step, before: object, node: Node) -> list[str]:
        """Return what is wrong in the result of a pass."""
        assert isinstance(before, IRModule)
        assert isinstance(node, IRModule)
        faults = graph_faults(node, self.known)
        if faults:
            return faults
        faults = [
            f"it wrote into a constant of type {constant.type}, which other graphs may share"
            for constant in self._constants(before)
            if fingerprint(constant) != self.prints[id(constant)][1]
        ]
        return faults + ([] if step.by_user else _broken_promises(step.name, before, node))

    def _constants(self, module: IRModule) -> list[Constant]:
        """Return the constants of a module's functions, as far as they were found right."""
        found: dict[int, Constant] = {}
        for _, function in module.items():
            sound = self.known.functions.get(id(function))
            found.update((id(c), c) for c in (() if sound is None else sound.constants))
        return list(found.values())


def _stays(before: Any, after: Any) -> bool:
    """Return whether a type is as it was, or has sizes now where it had unknown ones."""
    if before is None or before == after:
        return True
    if isinstance(before, FuncType) and isinstance(after, FuncType):
        pairs = zip((*before.arg_types, before.ret_type), (*after.arg_types, after.ret_type),
                    strict=False)  # fmt: skip
        return len(before.arg_types) == len(after.arg_types) and all(_stays(*p) for p in pairs)
    if isinstance(before, TupleType) and isinstance(after, TupleType):
        return len(before.fields) == len(after.fields) and all(
            map(_stays, before.fields, after.fields)
        )
    if not isinstance(before, TensorType) or not isinstance(after, TensorType):
        return False
    return (before.dtype, before.rank) == (after.dtype, after.rank) and all(
        b is ANY or b == a for b, a in zip(before.shape, after.shape, strict=True)
    )


def _broken_promises(name: str, before: IRModule, after: IRModule) -> list[str]:
    made = dict(after.items())
    faults = []
    for key, function in before.items():
        result = made.get(key)
        if not isinstance(function, Function) or not isinstance(result, Function):
            continue
        if name in PROMISES:
            faults += PROMISES[name](result)
        if name not in NEW_SIGNATURE and not _stays(function.type, result.type):
            faults.append(f"function {key!r} had type {function.type}, and has {result.type}")
    return faults


def fingerprint(constant: Constant) -> int:
    """Return a number that tells the values of two arrays apart, from a sample of large ones."""
    flat = constant.array.reshape(-1)
    step = max(1, flat.size // SAMPLE)
    return zlib.crc32(flat[::step].tobytes())


class _Checker:
    def __init__(self, module: IRModule, known: KnownSound) -> None:
        self.module = module
        self.known = known
        self.faults: list[str] = []
        self.broken: dict[int, Expr] = {}  # whose fields are not what they should be: not entered

    def fault(self, text: str) -> None:
        if text not in self.faults:
            self.faults.append(text)

    def closed(self, root: Function, what: str) -> None:
        """Check a function that uses no variable but its own."""
        sound = self.known.functions.get(id(root))
        count = len(self.faults)
        if sound is None or not sound.is_as_it_was():
            sound = self._looked_through(root, what)
        for call in sound.calls:
            self._reference(call)
        for body, call in sound.bodies:
            self.closed(body, f"the body of {_named(call)}")
        if len(self.faults) == count:
            self.known.functions[id(root)] = sound

    def _looked_through(self, root: Function, what: str) -> Sound:
        """Check what is in a function, and return it."""
        roots: list[Expr] = [root]
        order = [e for e in post_order_by(roots, self._below) if id(e) not in self.broken]
        if id(root) in self.broken:
            return Sound(root, (), (), (), ())
        self._scopes(root, order, what)
        calls, bodies, constants = [], [], []
        for expr in order:
            if not self._is_known(expr):
                count = len(self.faults)
                self._types(expr)
                if len(self.faults) == count:
                    self.known.typed[id(expr)] = expr, expr.type
            if isinstance(expr, Call):
                if isinstance(expr.op, GlobalVar):
                    calls.append(expr)
                bodies += [(body, expr) for body in _inner_functions(expr)]
            elif isinstance(expr, Constant):
                constants.append(expr)
            elif isinstance(expr, Function) and is_primitive(expr) and expr is not root:
                self._kernel(expr)
        typed = tuple((expr, expr.type) for expr in order)
        return Sound(root, typed, tuple(calls), tuple(bodies), tuple(constants))

    def _is_known(self, expr: Expr) -> bool:
        known = self.known.typed.get(id(expr))
        return known is not None and known[1] is expr.type

    def _below(self, expr: Expr) -> tuple[Expr, ...]:
        """Return the children of an expression whose fields hold what they should."""
        if self._is_known(expr):
            return children(expr)
        for (name, fits), value in zip(field_checks(type(expr)), _values(expr), strict=True):
            if not fits(value):
                self.fault(f"{_named(expr)} has the {name} {value!r}")
                self.broken[id(expr)] = expr
        if isinstance(expr, Call) and not isinstance(expr.op, (Expr, GlobalVar)):
            self.fault(f"a call calls {expr.op!r}")
            self.broken[id(expr)] = expr
        return () if id(expr) in self.broken else children(expr)

    # -- scopes --------------------------------------------------------------------------------

    def _scopes(self, root: Function, order: list[Expr], what: str) -> None:
        """Check that each variable is bound once, and used by nothing outside of what binds it."""
        number: dict[int, int] = {}  # of a variable: its bit in the sets below
        names: list[Var] = []
        free: dict[int, int] = {}  # of an expression: the variables that it needs from outside
        binders: dict[int, Expr] = {}

        def bit(variable: Var) -> int:
            if id(variable) not in number:
                number[id(variable)] = len(names)
                names.append(variable)
            return 1 << number[id(variable)]

        def bind(variable: Var, binder: Expr) -> int:
            if id(variable) in binders:
                self.fault(f"variable %{variable.name} is bound twice in {what}")
            binders[id(variable)] = binder
            return bit(variable)

        for expr in order:
            needs = 0
            for child in (expr.body,) if isinstance(expr, Function) else children(expr):
                needs |= free.get(id(child), 0)
            if isinstance(expr, Var):
                needs = bit(expr)
            elif isinstance(expr, Function):
                for param in expr.params:
                    needs &= ~bind(param, expr)
            elif isinstance(expr, Let):
                own = bind(expr.var, expr)
                value = free.get(id(expr.value), 0)
                if isinstance(expr.value, Function):
                    value &= ~own  # a local function may call itself
                needs = (free.get(id(expr.body), 0) & ~own) | value
            free[id(expr)] = needs
            if is_primitive(expr) and needs and expr is not root:
                self.fault(f"a kernel in {what} uses {_variables(names, needs)} of the outside")
        if free[id(root)]:
            left = [v for v in names if free[id(root)] >> number[id(v)] & 1]
            for variable in left:
                where = "is used outside its scope" if id(variable) in binders else "is free"
                self.fault(f"variable %{variable.name} {where} in {what}")

    # -- types ---------------------------------------------------------------------------------

    def _types(self, expr: Expr) -> None:
        if isinstance(expr, Call) and not self._attributes(expr):
            return
        try:
            wanted = _inferred(expr)
        except TypeInferenceError as error:
            self.fault(f"{_named(expr)} does not type: {error}")
            return
        except SlipwayError as error:  # an operator that there is not
            self.fault(str(error))
            return
        if expr.type != wanted:
            self.fault(f"{_named(expr)} has type {expr.type}, but is {wanted}")

    def _attributes(self, call: Call) -> bool:
        """Check each field of a record; that the record is the operator's, typing asks."""
        count = len(self.faults)
        if isinstance(call.attrs, Attrs):
            checks = field_checks(type(call.attrs))
            for (name, fits), value in zip(checks, _values(call.attrs), strict=True):
                if not fits(_sized(value)):
                    kind = type(value).__name__
                    self.fault(f"attribute {name!r} of {_named(call)} is the {kind} {value!r}")
        elif call.attrs is not None:
            self.fault(f"{_named(call)} has the attributes {call.attrs!r}, which are no record")
        return len(self.faults) == count

    def _reference(self, call: Call) -> None:
        assert isinstance(call.op, GlobalVar)
        name = call.op.name
        if name not in self.module:
            self.fault(f"a call refers to @{name}, which is no function of the module")
            return
        called = self.module[name]
        if not isinstance(called, Function):
            return
        given = [a.type for a in call.args]
        wanted = [p.type for p in called.params]
        same = all(None in (g, w) or g == w for g, w in zip(given, wanted, strict=False))
        if len(given) != len(wanted) or not same:
            self.fault(f"@{name} over ({_listed(wanted)}) is called with ({_listed(given)})")

    def _kernel(self, kernel: Function) -> None:
        for expr in post_order(kernel):
            if isinstance(expr, Function) and expr.attr("Composite") is not None:
                continue  # what an accelerator computes in one piece
            if isinstance(expr, (Let, If)) or (isinstance(expr, Function) and expr is not kernel):
                self.fault(f"a kernel has a {type(expr).__name__} inside")
            elif isinstance(expr, Call) and not isinstance(expr.op, (Op, Function)):
                self.fault(f"a kernel calls {_named(expr)}, which is no operator")


def _inferred(expr: Expr) -> Type | None:
    """Return the type of `expr` anew, from the types of what is directly inside it."""
    match expr:
        case Var():
            return expr.type_annotation
        case Constant():
            return TensorType(expr.array.shape, expr.array.dtype.name)
        case Call():
            return op_registry.infer_call(expr)
        case Tuple():
            fields = [f.type for f in expr.fields]
            whole = [t for t in fields if t is not None]
            return TupleType(tuple(whole)) if len(whole) == len(fields) else None
        case TupleGetItem():
            outer = expr.tuple_value.type
            if outer is None:
                return None
            if not isinstance(outer, TupleType) or not 0 <= expr.index < len(outer.fields):
                raise TypeInferenceError(f"there is no field {expr.index} in {outer}")
            return outer.fields[expr.index]
        case Function():
            return _function_type(expr)
        case Let():
            if None not in (expr.var.type, expr.value.type) and expr.var.type != expr.value.type:
                raise TypeInferenceError(f"{expr.var.type} is given a value of {expr.value.type}")
            return expr.body.type
        case If():
            if expr.cond.type not in (None, TensorType((), "bool")):
                raise TypeInferenceError(f"its condition is {expr.cond.type}")
            first, second = expr.true_branch.type, expr.false_branch.type
            if None not in (first, second) and first != second:
                raise TypeInferenceError(f"its branches differ: {first} and {second}")
            return second if first is None else first
        case _:
            return expr.type


def _function_type(function: Function) -> Type | None:
    result = function.body.type
    if None not in (result, function.ret_type) and result != function.ret_type:
        raise TypeInferenceError(f"it is declared as {function.ret_type}, and returns {result}")
    result = function.ret_type if result is None else result
    params = [p.type for p in function.params]
    known = tuple(t for t in params if t is not None)
    return None if result is None or len(known) != len(params) else FuncType(known, result)


def _sized(value: object) -> object:
    """Return an attribute with numbers for sizes: an open dimension stands where they do."""
    if isinstance(value, tuple):
        return tuple(map(_sized, value))
    return 1 if isinstance(value, SymbolDim) else value


def _values(node: Expr | Attrs) -> Iterator[object]:
    return (getattr(node, name) for name in node.FIELDS)


def _inner_functions(call: Call) -> list[Function]:
    """Return the functions among the attributes of a call: the body of a loop."""
    if not isinstance(call.attrs, Attrs):
        return []
    return [value for value in _values(call.attrs) if isinstance(value, Function)]


def _named(expr: Expr) -> str:
    match expr:
        case Var():
            return f"variable %{expr.name}"
        case Call():
            called = getattr(expr.op, "name", None) or type(expr.op).__name__
            return f"the call of {called}" + (f" (node {expr.span!r})" if expr.span else "")
        case _:
            return f"a {type(expr).__name__}"


def _listed(types: Iterable[Type | None]) -> str:
    return ", ".join("?" if t is None else str(t) for t in types)


def _variables(names: list[Var], bits: int) -> str:
    return ", ".join(f"%{v.name}" for n, v in enumerate(names) if bits >> n & 1)


# -- what single passes promise -------------------------------------------------------------------


def _is_typed(function: Function) -> list[str]:
    untyped = [e for e in post_order(function) if e.type is None and not isinstance(e, Op)]
    return [f"{_named(untyped[0])} has no type"] if untyped else []


def _is_flat(function: Function) -> list[str]:
    lets = [e for e in post_order(function, into_functions=False) if isinstance(e, Let)]
    return [f"Let %{lets[0].var.name} is left"] if lets else []


def _calls_kernels(function: Function) -> list[str]:
    calls = [e for e in post_order(function, into_functions=False) if isinstance(e, Call)]
    others = [e for e in calls if not is_primitive(e.op)]
    return [f"{_named(others[0])} is in no kernel"] if others else []


PROMISES: dict[str, Callable[[Function], list[str]]] = {
    "InferType": _is_typed,
    "Inline": _is_flat,
    "KernelPerOp": _calls_kernels,
    "ToGraphNormalForm": _is_flat,
}
