"""The text form of relay: ``str(function)``, ``mod.astext()``.

::

    fn (%x: Tensor[(1, 64), float32], %w: Tensor[(10, 64), float32]) -> Tensor[(1, 10), float32] {
      %0 = nn.dense(%x, %w, units=10) /* ty=Tensor[(1, 10), float32] */;
      nn.softmax(%0, axis=-1)
    }

Calls are numbered in order of evaluation.  Constants up to a few numbers are literals, larger
ones as ``meta[relay.Constant][i]``.  Names of variables are made unique.
"""

from __future__ import annotations

from typing import Any

from slipway.ir.deep import Steps, run
from slipway.ir.function import GlobalVar, IRModule
from slipway.ir.node import Node
from slipway.ir.text.serialize import save_json
from slipway.ir.visit import post_order_by
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
from slipway.relay.visit import evaluated_before, free_vars

METADATA = "#[metadata]"


def astext(program: IRModule | Expr, show_meta_data: bool = False) -> str:
    """Return the text form of a module, a function or any other expression.

    With `show_meta_data` the types of free variables stand before it and the values of large
    constants behind it, as `relay.fromtext` reads them.
    """
    parts = [f for _, f in program.items()] if isinstance(program, IRModule) else [program]
    if not any(isinstance(part, Expr | GlobalVar) for part in parts):
        return str(program)
    printer = _Printer(whole=show_meta_data)
    if isinstance(program, IRModule):
        members = []
        for name, function in program.items():
            shown = printer.text(function) if isinstance(function, Function) else str(function)
            members.append(f"def @{name}{shown.removeprefix('fn')}")
        text = "\n\n".join(members)
    else:
        text = printer.text(program)
    if show_meta_data and printer.values:
        text += f"\n\n{METADATA}\n{save_json(tuple(printer.values))}\n"
    return text


class _Printer:
    def __init__(self, whole: bool = False) -> None:
        self.whole = whole  # an expression begins with its free variables and their types
        self.names: dict[int, str] = {}
        self.taken: set[str] = set()
        self.constants: dict[int, int] = {}
        self.values: list[Any] = []  # the arrays that meta[...] stands for
        self.keep: list[Any] = []
        self.next = 0

    def text(self, expr: Any) -> str:
        if isinstance(expr, Function):
            return "\n".join(run(self.function(expr, "")))
        if isinstance(expr, GlobalVar):
            return f"@{expr.name}"
        free = free_vars(expr) if self.whole and isinstance(expr, Expr) else []
        lines = [f"free_var {self.declared(v)};" for v in free]
        result = run(self.block(expr, "", lines))
        return "\n".join([*lines, result])

    def function(self, function: Function, pad: str) -> Steps[list[str]]:
        params = ", ".join(map(self.declared, function.params))
        shown = [
            (k, v)
            for k, v in function.attrs
            if k not in ("output_names", "counted_outputs", "meanings")
        ]
        attrs = "".join(
            f", {k}={v!r}" if params or i else f"{k}={v!r}" for i, (k, v) in enumerate(shown)
        )
        result = f" -> {function.ret_type}" if function.ret_type is not None else ""
        lines: list[str] = []
        last = yield self.block(function.body, pad + "  ", lines)
        return [f"fn ({params}{attrs}){result} {{", *lines, last, pad + "}"]

    def variable(self, var: Any) -> str:
        if id(var) not in self.names:
            name, number = f"%{var.name}", 0
            while name in self.taken:
                number += 1
                name = f"%{var.name}_{number}"
            self.names[id(var)] = name
            self.taken.add(name)
            self.keep.append(var)
        return self.names[id(var)]

    def declared(self, var: Var) -> str:
        """A variable and its type, where that is known."""
        name = self.variable(var)
        return name if var.type is None else f"{name}: {var.type}"

    def block(self, root: Expr, pad: str, lines: list[str]) -> Steps[str]:
        """Append the statements before `root` to `lines`; return the line that gives its value."""
        for expr in _statements(root, self.names):
            if expr is root:
                break
            name = f"%{self.next}"
            self.next += 1
            body = yield self.value(expr, pad)
            self.names[id(expr)] = name
            self.taken.add(name)
            self.keep.append(expr)
            note = f" /* ty={expr.type} */" if isinstance(expr, Call) and expr.type else ""
            lines.append(f"{pad}{name} = {body}{note};")
        text = yield self.value(root, pad)
        return pad + str(text)

    def atom(self, expr: Expr) -> str:
        known = self.names.get(id(expr))
        if known is not None:
            return known
        match expr:
            case Var():
                return self.variable(expr)
            case Constant():
                return self.constant(expr)
            case Tuple():
                inner = ", ".join(self.atom(f) for f in expr.fields)
                return f"({inner},)" if len(expr.fields) == 1 else f"({inner})"
            case TupleGetItem():
                return f"{self.atom(expr.tuple_value)}.{expr.index}"
            case Op():
                return expr.name
            case GlobalVar():
                return f"@{expr.name}"
            case Call() | Function() | Let() | If():
                return run(self.value(expr, "  "))
            case _:  # no expression of relay: only a damaged document has one
                return f"<{type(expr).__name__}>"

    def constant(self, expr: Constant) -> str:
        array = expr.array
        if array.size == 1 and array.ndim == 0:
            return f"{array.item()!r}{_suffix(array.dtype.name)}"
        number = self.constants.setdefault(id(expr), len(self.constants))
        if number == len(self.values):
            self.values.append(array)
        self.keep.append(expr)
        return f"meta[relay.Constant][{number}]"

    def value(self, expr: Any, pad: str) -> Steps[str]:
        match expr:
            case Call():
                callee = yield self.callee(expr.op, pad)
                parts = [self.atom(a) for a in expr.args]
                if isinstance(expr.attrs, Node):
                    for name in expr.attrs.FIELDS:
                        text = yield self.attribute(getattr(expr.attrs, name), pad)
                        parts.append(f"{name}={text}")
                return f"{callee}({', '.join(parts)})"
            case Function():
                return "\n".join((yield self.function(expr, pad)))
            case Let():
                lets: str = yield self.lets(expr, pad)
                return lets
            case If():
                parts = []
                for branch in (expr.true_branch, expr.false_branch):
                    inner: list[str] = []
                    last = yield self.block(branch, pad + "  ", inner)
                    parts.append("\n".join(["{", *inner, last, pad + "}"]))
                return f"if ({self.atom(expr.cond)}) {parts[0]} else {parts[1]}"
            case _:
                return self.atom(expr)

    def lets(self, expr: Let, pad: str) -> Steps[str]:
        """A Let, and those that its body begins with, one below the other."""
        written: list[str] = []
        body: Expr = expr
        while isinstance(body, Let) and id(body) not in self.names:
            lines: list[str] = []
            value = yield self.block(body.value, pad, lines)
            written += [line.strip() for line in lines]
            written.append(f"let {self.variable(body.var)} = {value.strip()};")
            body = body.body
        inner: list[str] = []
        last = yield self.block(body, pad, inner)
        return "\n".join([*written, *inner, pad + last.strip()]).strip()

    def attribute(self, value: Any, pad: str) -> Steps[str]:
        """An attribute of an operator; a function, such as the body of a scan, in full."""
        if not isinstance(value, Function):
            return _attr(value)
        around, self.names = self.names, {}  # it sees nothing of the function around it
        lines = yield self.function(value, pad)
        self.names = around
        return "\n".join(lines)

    def callee(self, op: Any, pad: str) -> Steps[str]:
        if isinstance(op, GlobalVar):
            return f"@{op.name}"
        if isinstance(op, Op):
            return op.name
        if isinstance(op, Function) and id(op) not in self.names:
            return "\n".join((yield self.function(op, pad)))
        return self.atom(op)


def _statements(root: Expr, known: dict[int, str]) -> list[Expr]:
    """The expressions that get a number: calls, functions, choices and Lets, in order."""
    return [
        expr
        for expr in post_order_by([root], evaluated_before, known)
        if expr is root or not isinstance(expr, (Var, Constant, Tuple, TupleGetItem, Op))
    ]


def _suffix(dtype: str) -> str:
    return {"float32": "f", "int32": "", "bool": ""}.get(dtype, dtype)


def _attr(value: Any) -> str:
    if isinstance(value, tuple):
        inner = ", ".join(_attr(v) for v in value)
        return f"[{inner}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)
