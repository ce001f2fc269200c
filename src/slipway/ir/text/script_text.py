"""Functions of loops as TVMScript: text that `slipway.script.from_source` reads back."""

from __future__ import annotations

import keyword
import re
from typing import Any

from slipway import dtypes
from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.function import IRModule, PrimFunc
from slipway.ir.text.printer import Printer, call_parts
from slipway.ir.visit import walk

_LOOPS = {
    S.ForKind.SERIAL: "T.serial", S.ForKind.PARALLEL: "T.parallel",
    S.ForKind.VECTORIZED: "T.vectorized", S.ForKind.UNROLLED: "T.unroll",
    S.ForKind.THREAD: "T.thread_binding",
}  # fmt: skip
_AXES = {"data": "spatial", "reduce": "reduce", "ordered": "scan", "opaque": "opaque"}
_ATTRIBUTES = {"noalias": "tir.noalias"}
_PLAIN = (bool, int, float, str)


def script(node: IRModule | PrimFunc) -> str:
    """Return a module or a function as TVMScript.  Raises LoweringError for a graph."""
    if isinstance(node, PrimFunc):
        return "\n".join([_HEAD, *_Script().lines_of(node, node.name, 0)])
    lines = [_HEAD, "@tvm.script.ir_module", "class Module:"]
    for name, func in node.items():
        if not isinstance(func, PrimFunc):
            raise LoweringError(
                f"{name!r} is a graph, which TVMScript does not write: print the module instead"
            )
        lines += [*_Script().lines_of(func, name, 1), ""]
    return "\n".join(lines).rstrip()


_TAKEN = ("T", "tvm", "range", "float")  # what the text itself speaks of
_HEAD = "# from tvm.script import tir as T"


class _Script(Printer):
    def __init__(self) -> None:
        super().__init__()
        self.owner: dict[int, Buffer] = {}  # of a variable: the buffer whose memory it is
        self.views: dict[int, list[Buffer]] = {}  # of an owner: other buffers over its memory

    def lines_of(self, func: PrimFunc, name: str, depth: int) -> list[str]:
        pad, inner = "    " * depth, "    " * (depth + 1)
        scalars = {id(p) for p in func.params}
        free: dict[int, E.Var] = {}
        for _, buffer in func.buffer_map:
            for size in (*buffer.shape, *buffer.strides, *(
                [buffer.elem_offset] if buffer.elem_offset is not None else []
            )):  # fmt: skip
                free.update((id(n), n) for n in walk(size) if isinstance(n, E.Var)
                            and id(n) not in scalars)  # fmt: skip
        params, head = [], []
        for var in func.params:
            matched = func.buffer_of(var)
            if matched is None:
                params.append(f"{self.name(var)}: T.{_scalar(var.dtype)}")
            elif free:
                params.append(f"{self.name(var)}: T.handle")
                head.append(f"{self.name(matched)} = T.match_buffer({self.name(var)}, "
                            f"{self.described(matched)})")  # fmt: skip
            else:
                params.append(f"{self.name(matched)}: T.Buffer({self.described(matched)})")
        declared = [f'{self.name(v)} = T.var("{v.dtype}")' for v in free.values()]
        attrs = {
            _ATTRIBUTES.get(k, k): v
            for k, v in func.attrs
            if isinstance(v, _PLAIN) and k != "tir.blocks"
        }
        own = [n.buffer for n in walk(func.body) if isinstance(n, S.Allocate)]
        for buffer in (*(b for _, b in func.buffer_map), *own):
            if id(buffer.data) not in scalars:
                self.owner[id(buffer.data)] = buffer
        used = [n.buffer for n in walk(func.body) if isinstance(n, E.BufferLoad | S.BufferStore)]
        for buffer in dict.fromkeys(used):
            owner = self.owner.get(id(buffer.data), buffer)
            if owner is not buffer:
                self.views.setdefault(id(owner), []).append(buffer)
        for _, buffer in func.buffer_map:
            head += self.declared_views(buffer)
        lines = [f"{pad}@T.prim_func", f"{pad}def {name}({', '.join(params)}):"]
        lines.append(f"{inner}T.func_attr({attrs!r})")
        lines += [inner + line for line in (*declared, *head)]
        return [*lines, *self.stmt(func.body, depth + 1)]

    def name(self, node: Any) -> str:
        if id(node) in self.owner:
            return f"{self.name(self.owner[id(node)])}.data"
        if id(node) not in self.names:
            plain = re.sub(r"\W", "_", node.name or "v")
            plain = f"_{plain}" if plain[:1].isdigit() or keyword.iskeyword(plain) else plain
            number, text = 0, plain
            while text in self.taken or text in _TAKEN:
                number += 1
                text = f"{plain}_{number}"
            self.names[id(node)] = text
            self.taken.add(text)
            self.keep.append(node)
        return self.names[id(node)]

    def declared_views(self, owner: Buffer) -> list[str]:
        """The lines that declare the other buffers over the memory of one."""
        return [
            f"{self.name(view)} = T.Buffer({self.described(view)}, data={self.name(owner)}.data)"
            for view in self.views.get(id(owner), ())
        ]

    def described(self, buffer: Buffer) -> str:
        sizes = ", ".join(self.expr(s) for s in buffer.shape)
        text = f'({sizes}{"," * (buffer.ndim == 1)}), "{buffer.dtype}"'
        if buffer.strides:
            text += f", strides=[{', '.join(self.expr(s) for s in buffer.strides)}]"
        if buffer.elem_offset is not None:
            text += f", elem_offset={self.expr(buffer.elem_offset)}"
        if buffer.axis_separators:
            text += f", axis_separators={list(buffer.axis_separators)}"
        return text if buffer.scope == "global" else f'{text}, scope="{buffer.scope}"'

    def parts(self, node: Any, level: int) -> list[Any]:
        match node:
            case E.IntImm():
                if node.dtype == "bool":
                    return [f"T.boolean({bool(node.value)})"]
                plain = node.dtype == "int32"
                return [str(node.value) if plain else f"T.{node.dtype}({node.value})"]
            case E.FloatImm():
                value = repr(float(node.value))
                value = f'float("{value}")' if value in ("inf", "-inf", "nan") else value
                return [f"T.{node.dtype}({value})" if node.dtype in _FLOATS
                        else f'T.const({value}, "{node.dtype}")']  # fmt: skip
            case E.Cast():
                return ["T.cast(", (node.value, 0), f', "{node.dtype}")']
            case E.Min() | E.Max():
                return call_parts("T.min" if isinstance(node, E.Min) else "T.max", [node.a, node.b])
            case E.Div() if not dtypes.is_float(node.dtype):
                return call_parts("T.truncdiv", [node.a, node.b])
            case E.Mod():
                return call_parts("T.truncmod", [node.a, node.b])
            case E.Select():
                return call_parts("T.Select", [node.condition, node.true_value, node.false_value])
            case E.Ramp():
                return ["T.ramp(", (node.base, 0), ", ", (node.stride, 0), f", {node.num_lanes})"]
            case E.Broadcast():
                return ["T.broadcast(", (node.value, 0), f", {node.num_lanes})"]
            case E.Call() if node.op == "if_then_else":
                return call_parts("T.if_then_else", node.args)
            case E.Call() if node.op == "ret":
                return call_parts("T.ret", node.args)
            case E.Call():
                words = (E.StringImm(node.dtype), E.StringImm(node.op))
                return call_parts("T.call_intrin", [*words, *node.args])
            case _:
                return super().parts(node, level)

    def lines(self, node: S.Stmt, depth: int) -> list[Any]:
        pad = "    " * depth
        match node:
            case S.Allocate():
                text = f"{self.name(node.buffer)} = T.alloc_buffer({self.described(node.buffer)})"
                views = [pad + line for line in self.declared_views(node.buffer)]
                return [pad + text, *views, (node.body, depth)]
            case S.LetStmt():
                kind = _scalar(node.var.dtype)
                text = f"{self.name(node.var)}: T.{kind} = {self.expr(node.value)}"
                return [pad + text, (node.body, depth)]
            case S.AttrStmt():
                return [f"{pad}# {node.key} = {self.any(node.value)}", (node.body, depth)]
            case S.AssertStmt():
                text = f"assert {self.expr(node.condition)}, {node.message.value!r}"
                return [pad + text, (node.body, depth)]
            case S.Evaluate():
                text = "pass" if S.is_nop(node) else f"T.evaluate({self.expr(node.value)})"
                return [pad + text]
            case _:
                return super().lines(node, depth)

    def block(self, node: S.Block, depth: int) -> list[Any]:
        inner = "    " * (depth + 1)
        lines: list[Any] = [f'{"    " * depth}with T.block("{node.name}"):']
        for axis, value in zip(node.axes, node.bindings, strict=True):
            assert axis.dom is not None
            dom = self.expr(axis.extent)
            if not (isinstance(axis.dom.min, E.IntImm) and axis.dom.min.value == 0):
                end = self.expr(E.Add(axis.dom.min, axis.extent))
                dom = f"({self.expr(axis.dom.min)}, {end})"
            lines.append(f"{inner}{self.name(axis.var)} = T.axis.{_AXES[axis.kind]}({dom}, "
                         f"{self.expr(value)})")  # fmt: skip
        if not (isinstance(node.predicate, E.IntImm) and node.predicate.value):
            lines.append(f"{inner}T.where({self.expr(node.predicate)})")
        for what, buffers in (("reads", node.reads), ("writes", node.writes)):
            if buffers:
                regions = ", ".join(f"{self.name(b)}[{self.whole(b)}]" for b in buffers)
                lines.append(f"{inner}T.{what}({regions})")
        if node.annotations:
            lines.append(f"{inner}T.block_attr({dict(node.annotations)!r})")
        if node.init is not None:
            lines += [f"{inner}with T.init():", (node.init, depth + 2)]
        return [*lines, (node.body, depth + 1)]

    def whole(self, buffer: Buffer) -> str:
        """Return the slices that are all of a buffer."""
        return ", ".join(f"0:{self.expr(s)}" for s in buffer.shape) or "()"

    def loop_head(self, node: S.For, pad: str) -> str:
        begin, extent = self.expr(node.min), self.expr(node.extent)
        span = extent
        if begin != "0":
            span = f"{begin}, {self.expr(E.Add(node.min, node.extent))}"
        if node.thread is not None:
            span += f', thread="{node.thread.thread_tag}"'
        if node.annotations:
            span += f", annotations={dict(node.annotations)!r}"
        return f"{pad}for {self.name(node.loop_var)} in {_LOOPS[node.kind]}({span}):"


_FLOATS = ("float16", "float32", "float64")


def _scalar(dtype: str) -> str:
    return "boolean" if dtype == "bool" else dtype
