"""The readable text form of IR: ``str(node)``.

Expressions print as Python-like formulas, statements as indented loops::

    def main(A: float32[1024], B: float32[1024]):
        parallel for i in range(1024):
            B[i] = A[i] + 1f

Names are made unique within one printed object (``i``, ``i_1``).  A node of another language has
a ``__str__`` of its own; every other one prints as ``ClassName(field=value, ...)``.
"""

from __future__ import annotations

import json
from typing import Any

from slipway import dtypes
from slipway.ir import expr as E
from slipway.ir import function as F
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.node import Node

_BINARY = {
    E.Add: ("+", 6), E.Sub: ("-", 6), E.Mul: ("*", 7), E.FloorDiv: ("//", 7), E.FloorMod: ("%", 7),
    E.LT: ("<", 4), E.LE: ("<=", 4), E.GT: (">", 4), E.GE: (">=", 4), E.EQ: ("==", 4),
    E.NE: ("!=", 4), E.And: ("and", 2), E.Or: ("or", 1),
}  # fmt: skip
_NAMED = {E.Min: "min", E.Max: "max", E.Mod: "truncmod"}
_INFIX_CALLS = {
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
    "shift_left": "<<", "shift_right": ">>",
}  # fmt: skip


def to_text(node: Node) -> str:
    """Return the text form of any IR object."""
    return _Printer().any(node)


class _Printer:
    """Writes nodes as text; names are made unique within one printed object."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.taken: set[str] = set()
        self.keep: list[Node] = []

    def name(self, node: Any) -> str:
        key = id(node)
        if key not in self.names:
            base, number = node.name or "v", 0
            text = base
            while text in self.taken:
                number += 1
                text = f"{base}_{number}"
            self.names[key] = text
            self.taken.add(text)
            self.keep.append(node)
        return self.names[key]

    def any(self, node: Any) -> str:
        if isinstance(node, E.PrimExpr):
            return self.expr(node)
        if isinstance(node, S.Stmt):
            return "\n".join(self.stmt(node, 0))
        if isinstance(node, F.PrimFunc):
            return self.function(node)
        if isinstance(node, F.IRModule):
            return "\n\n".join(self.module_member(name, f) for name, f in node.functions)
        if isinstance(node, Buffer):
            return f"{self.name(node)}: {self.buffer_type(node)}"
        if isinstance(node, E.IterVar):
            dom = f", {self.any(node.dom)}" if node.dom is not None else ""
            return f"iter_var({self.name(node.var)}{dom}, {node.kind})"
        if isinstance(node, E.Range):
            return f"range({self.expr(node.min)}, extent={self.expr(node.extent)})"
        if isinstance(node, Node):
            if type(node).__str__ is not Node.__str__:
                return str(node)
            fields = (f"{n}={self.any(getattr(node, n))}" for n in node.FIELDS)
            return f"{type(node).__name__}({', '.join(fields)})"
        if isinstance(node, tuple):
            inner = ", ".join(self.any(item) for item in node)
            return f"({inner},)" if len(node) == 1 else f"({inner})"
        return repr(node)

    def module_member(self, name: str, function: Any) -> str:
        if isinstance(function, F.PrimFunc):
            return self.function(function, name)
        return f"def @{name}{self.any(function).removeprefix('fn')}"

    def buffer_type(self, buffer: Buffer) -> str:
        text = f"{buffer.dtype}[{', '.join(self.expr(s) for s in buffer.shape)}]"
        if buffer.strides:
            text += f" strides [{', '.join(self.expr(s) for s in buffer.strides)}]"
        if buffer.elem_offset is not None:
            text += f" offset {self.expr(buffer.elem_offset)}"
        return text if buffer.scope == "global" else f"{text} @{buffer.scope}"

    def function(self, function: F.PrimFunc, name: str | None = None) -> str:
        params = []
        for var in function.params:
            buffer = function.buffer_of(var)
            if buffer is None:
                params.append(f"{self.name(var)}: {var.dtype}")
            else:
                params.append(f"{self.name(buffer)}: {self.buffer_type(buffer)}")
        head = f"def {name or function.name}({', '.join(params)}):"
        return "\n".join([head, *self.stmt(function.body, 1)])

    # -- expressions ---------------------------------------------------------------------------

    def expr(self, root: Any, level: int = 0) -> str:
        """Write from left to right with an explicit stack: an expression may be of any depth."""
        written: list[str] = []
        stack: list[Any] = [(root, level)]
        while stack:
            part = stack.pop()
            if isinstance(part, str):
                written.append(part)
            else:
                stack += self.parts(*part)[::-1]
        return "".join(written)

    def parts(self, node: Any, level: int) -> list[Any]:
        """Return texts, and (expression, level) of what stands between them."""
        kind = type(node)
        if kind in _BINARY:
            sign, own = _BINARY[kind]
            return _bracketed([(node.a, own), f" {sign} ", (node.b, own + 1)], own < level)
        match node:
            case E.Var():
                return [self.name(node)]
            case E.IntImm():
                if node.dtype == "bool":
                    return ["true" if node.value else "false"]
                tag = "" if node.dtype == "int32" else _tag(node.dtype)
                return [f"{node.value}{tag}"]
            case E.FloatImm():
                return [f"{node.value:.9g}{_tag(node.dtype)}"]
            case E.StringImm():
                return [json.dumps(node.value, ensure_ascii=False)]
            case E.Div() if dtypes.is_float(node.dtype):
                return _bracketed([(node.a, 7), " / ", (node.b, 8)], level > 7)
            case E.Div():
                return call_parts("truncdiv", [node.a, node.b])
            case E.Min() | E.Max() | E.Mod():
                return call_parts(_NAMED[kind], [node.a, node.b])
            case E.Not():
                return ["not ", (node.a, 8)]
            case E.Cast():
                return call_parts(node.dtype, [node.value])
            case E.Select():
                return call_parts("select", [node.condition, node.true_value, node.false_value])
            case E.BufferLoad():
                return [self.name(node.buffer), *_list("[", node.indices, "]")]
            case E.ProducerLoad():
                return [node.producer.name, *_list("[", node.indices, "]")]
            case E.Ramp():
                return ["ramp(", (node.base, 0), ", ", (node.stride, 0), f", {node.num_lanes})"]
            case E.Broadcast():
                return ["broadcast(", (node.value, 0), f", {node.num_lanes})"]
            case E.Shuffle():
                return ["shuffle(", *_list("[", node.vectors, "]"), f", {list(node.indices)})"]
            case E.Let():
                head = f"let {self.name(node.var)} = "
                return [head, (node.value, 0), " in ", (node.body, 0)]
            case E.Call() if node.op in _INFIX_CALLS:
                between = f" {_INFIX_CALLS[node.op]} "
                return _bracketed(_joined(between, [(a, 6) for a in node.args]), level > 0)
            case E.Call():
                return call_parts(node.op, node.args)
            case E.Reduce():
                axes = ", ".join(self.name(a.var) for a in node.axis)
                result = _list("[", node.combiner.result, "]")
                source = _list("[", node.source, "]")
                return ["reduce(", *result, ", ", *source, f", axis=[{axes}])[{node.value_index}]"]
            case _:
                return [self.any(node)]

    def indices(self, indices: tuple[Any, ...]) -> str:
        return ", ".join(self.expr(i) for i in indices)

    # -- statements ----------------------------------------------------------------------------

    def stmt(self, root: S.Stmt, depth: int) -> list[str]:
        """Return the lines of a statement, which may hold others to any depth."""
        lines: list[str] = []
        stack: list[Any] = [(root, depth)]
        while stack:
            part = stack.pop()
            if isinstance(part, str):
                lines.append(part)
            else:
                stack += self.lines(*part)[::-1]
        return lines

    def lines(self, node: S.Stmt, depth: int) -> list[Any]:
        """Return lines, and (statement, depth) of what stands between them."""
        pad = "    " * depth
        match node:
            case S.BufferStore():
                target = f"{self.name(node.buffer)}[{self.indices(node.indices)}]"
                return [f"{pad}{target} = {self.expr(node.value)}"]
            case S.ProducerStore():
                target = f"{node.producer.name}[{self.indices(node.indices)}]"
                return [f"{pad}{target} = {self.expr(node.value)}"]
            case S.ProducerRealize():
                bounds = ", ".join(
                    f"{self.expr(r.min)}:+{self.expr(r.extent)}" for r in node.bounds
                )
                head = f"{pad}realize {node.producer.name}[{bounds}] {node.scope}".rstrip()
                return [head, (node.body, depth)]
            case S.For():
                return [self.loop_head(node, pad), (node.body, depth + 1)]
            case S.While():
                return [f"{pad}while {self.expr(node.condition)}:", (node.body, depth + 1)]
            case S.IfThenElse():
                chosen: list[Any] = [
                    f"{pad}if {self.expr(node.condition)}:", (node.then_case, depth + 1)
                ]  # fmt: skip
                if node.else_case is not None:
                    chosen += [f"{pad}else:", (node.else_case, depth + 1)]
                return chosen
            case S.SeqStmt():
                return [(inner, depth) for inner in node.stmts]
            case S.LetStmt():
                head = f"{pad}let {self.name(node.var)} = {self.expr(node.value)}"
                return [head, (node.body, depth)]
            case S.Allocate():
                head = f"{pad}allocate {self.name(node.buffer)}: {self.buffer_type(node.buffer)}"
                return [head, (node.body, depth)]
            case S.AttrStmt():
                what = f"{self.any(node.node)}, " if node.node is not None else ""
                return [f"{pad}attr {node.key}({what}{self.any(node.value)})", (node.body, depth)]
            case S.AssertStmt():
                head = f"{pad}assert {self.expr(node.condition)}, {node.message.value!r}"
                return [head, (node.body, depth)]
            case S.Block():
                return self.block(node, depth)
            case S.Evaluate():
                return [f"{pad}{self.expr(node.value)}" if not S.is_nop(node) else f"{pad}pass"]
            case _:
                return [pad + self.any(node)]

    def block(self, node: S.Block, depth: int) -> list[Any]:
        """Return the lines of a block: its axes with their values, its condition, what it does."""
        inner = "    " * (depth + 1)
        lines: list[Any] = [f"{'    ' * depth}block {node.name}:"]
        for axis, value in zip(node.axes, node.bindings, strict=True):
            extent = self.expr(axis.extent)
            lines.append(
                f"{inner}{self.name(axis.var)} = {axis.kind}({extent}, {self.expr(value)})"
            )
        if not (isinstance(node.predicate, E.IntImm) and node.predicate.value):
            lines.append(f"{inner}where {self.expr(node.predicate)}")
        if node.init is not None:
            lines += [f"{inner}init:", (node.init, depth + 2)]
        return [*lines, (node.body, depth + 1)]

    def loop_head(self, node: S.For, pad: str) -> str:
        kind = "" if node.kind == S.ForKind.SERIAL else node.kind + " "
        if node.thread is not None:
            kind = f"{node.thread.thread_tag} "
        first, span = self.expr(node.min), self.expr(node.extent)
        if first != "0":
            span = f"{first}, extent={span}"
        note = f"  # {dict(node.annotations)}" if node.annotations else ""
        return f"{pad}{kind}for {self.name(node.loop_var)} in range({span}):{note}"


def _joined(between: str, parts: list[Any]) -> list[Any]:
    return [p for i, part in enumerate(parts) for p in ((between, part) if i else (part,))]


def _list(first: str, items: Any, last: str) -> list[Any]:
    return [first, *_joined(", ", [(item, 0) for item in items]), last]


def call_parts(name: str, arguments: Any) -> list[Any]:
    """Return the parts of a call."""
    return [name, *_list("(", arguments, ")")]


def _bracketed(parts: list[Any], needed: bool) -> list[Any]:
    return ["(", *parts, ")"] if needed else parts


def _tag(dtype: str) -> str:
    """The short suffix of a constant: 1i64, 0.5f, 2u8."""
    parts = dtypes.parse(dtype)
    if dtype == "float32":
        return "f"
    return {"float": "f", "bfloat": "bf", "int": "i", "uint": "u"}.get(parts.code, "h") + str(
        parts.bits
    )


Printer = _Printer  # for the printers of other languages
