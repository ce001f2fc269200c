"""``te.hybrid``: a Python function of loops over tensors as one stage of tensor expressions.

::

    @te.hybrid.script
    def outer(a, b):
        c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
        for i in range(a.shape[0]):
            for j in range(b.shape[0]):
                c[i, j] = a[i] * b[j]
        return c

Called with tensors it is read, and gives the tensors it returns; with NumPy arrays it runs as
Python.  Loops are range, parallel, vectorize, unroll, and const_range, which is unrolled; local
memory is `allocate`, and variables that are assigned again.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar

import numpy as np

from slipway.errors import ModelError, SlipwayError
from slipway.ir import builder, ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.expr import IntImm, PrimExpr, StringImm
from slipway.script.decisions import CALLS, decided
from slipway.te import math as M
from slipway.te.declare import extern
from slipway.te.tensor import Tensor

KINDS = {"range": "serial", "serial": "serial", "parallel": "parallel",
         "vectorize": "vectorize", "unroll": "unroll", "const_range": "const"}  # fmt: skip
_MATH = ("exp", "log", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "sigmoid", "erf", "floor",
         "ceil", "round", "power", "popcount", "abs")  # fmt: skip
_CASTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
          "float32", "float64")  # fmt: skip


def script(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` as a function of tensors (a decorator)."""

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        if any(isinstance(a, _Array) for a in args):  # called by another such function
            return _Reader(function, _Array.reading[-1].ib).inlined(args)
        if any(isinstance(a, Tensor) or _holds_tensors(a) for a in args):
            return _Reader(function).tensors(args)
        return _run(function, args)

    called.hybrid_source = function  # type: ignore[attr-defined]
    return called


decorate = script


def _run(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Run the function as Python, with what the language offers among its globals."""
    names: dict[str, Any] = {
        **dict.fromkeys(("serial", "parallel", "vectorize", "unroll", "const_range"), range),
        "output_tensor": np.zeros, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "allocate": lambda shape, dtype="float32", scope="global": np.zeros(shape, dtype),
        "rsqrt": lambda x: 1 / np.sqrt(x), "power": np.power, "likely": lambda x: x,
        "popcount": lambda x: bin(x).count("1"), "max_num_threads": lambda *_: 1,
        "ceil_div": lambda a, b: (a + b - 1) // b,
        **{name: getattr(np, name) for name in _MATH if hasattr(np, name)},
        **{name: getattr(np, name) for name in _CASTS},
    }  # fmt: skip
    code = function.__code__
    scope = {**names, **function.__globals__}
    runs = FunctionType(code, scope, code.co_name, function.__defaults__, function.__closure__)
    return runs(*args)


def _holds_tensors(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value)


class _List(list[Any]):
    """A list that was given for a parameter; of lists in it elements are had with ``[i, j]``."""

    def __getitem__(self, index: Any) -> Any:
        picked = index if isinstance(index, tuple) else (index,)
        found: Any = super().__getitem__(_known(picked[0]))
        for position in picked[1:]:
            found = found[position]
        return _List(found) if type(found) in (list, tuple) else found


def _known(index: Any) -> Any:
    return index.value if isinstance(index, IntImm) else index


class _Array:
    """A tensor, as the function sees it: it is indexed, and has a shape and a dtype."""

    reading: ClassVar[list[_Reader]] = []  # the functions that are being read, the innermost last

    def __init__(self, view: builder.BufferVar) -> None:
        self.view = view
        self.shape = view.buffer.shape
        self.dtype = view.buffer.dtype

    def __getitem__(self, index: Any) -> PrimExpr:
        return self.view[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.view[index] = value

    def __len__(self) -> int:
        extent = self.shape[0]
        if not isinstance(extent, IntImm):
            raise TypeError("its length is no number yet: write x.shape[0]")
        return extent.value


class _Scalar:
    """A variable that is assigned more than once: memory of one element."""

    def __init__(self, view: builder.BufferVar) -> None:
        self.view = view


class _Reader:
    """Reads one function, once, into the statements of an `IRBuilder`."""

    def __init__(self, function: Callable[..., Any], ib: builder.IRBuilder | None = None) -> None:
        try:
            lines, first = inspect.getsourcelines(function)
            self.file = inspect.getsourcefile(function) or "<script>"
        except (OSError, TypeError):
            raise ModelError(
                f"the source of {function.__name__!r} cannot be read: write the function in a file"
            ) from None
        tree = ast.parse(textwrap.dedent("".join(lines)))
        ast.increment_lineno(tree, first - 1)
        definition = tree.body[0]
        assert isinstance(definition, ast.FunctionDef)
        self.definition = definition
        self.is_inner = ib is not None
        self.ib = ib or builder.create()
        self.names: dict[str, Any] = {
            **function.__globals__, **inspect.getclosurevars(function).nonlocals, **CALLS,
            **{name: getattr(M, name) for name in _MATH if hasattr(M, name)},
            **{name: functools.partial(_cast, name) for name in _CASTS},
            "output_tensor": self.output_tensor, "allocate": self.allocate, "len": len,
            "max": _largest, "min": _minimum, "ceil_div": _ceil_div,
            "likely": lambda condition: self.ib.likely(condition), "max_num_threads": lambda *_: 1,
        }  # fmt: skip
        self.outputs: list[_Array] = []
        self.returned: list[_Array] | None = None
        self.pending = "out"
        self.assigned = self._counts(definition)

    @staticmethod
    def _counts(definition: ast.FunctionDef) -> dict[str, int]:
        """Return how often each name is assigned; += counts twice."""
        found: dict[str, int] = {}
        for node in ast.walk(definition):
            targets: list[ast.expr] = []
            if isinstance(node, ast.Assign):
                targets = node.targets
            elif isinstance(node, ast.AugAssign):
                targets = [node.target, node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    found[target.id] = found.get(target.id, 0) + 1
        return found

    def tensors(self, args: tuple[Any, ...]) -> Any:
        """Return the tensors that the function gives for `args`."""
        parameters = [a.arg for a in self.definition.args.args]
        if len(args) != len(parameters):
            raise self.error(self.definition, f"takes {len(parameters)} arguments, got {len(args)}")
        sources: list[Tensor] = []
        buffers = []

        def seen(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return _List(map(seen, value))
            if not isinstance(value, Tensor):
                return value
            buffers.append(decl_buffer(value.shape, value.dtype, value.op.name))
            sources.append(value)
            return _Array(self.ib.buffer_ptr(buffers[-1]))

        self.names.update((name, seen(value)) for name, value in zip(parameters, args, strict=True))
        self._read()
        if not self.returned:
            raise self.error(self.definition, "returns no tensor: end it with return <output>")
        others = [o for o in self.outputs if all(o is not r for r in self.returned)]
        if others:
            raise self.error(self.definition, "does not return all of its output_tensor(...)")
        body = self.ib.get()
        outs = [o.view.buffer for o in self.returned]
        return extern(
            [b.shape for b in outs], sources, lambda *_: body, self.definition.name,
            [b.dtype for b in outs], buffers, outs, tag="hybrid",
        )  # fmt: skip

    def inlined(self, args: tuple[Any, ...]) -> Any:
        """Return the arrays that the function gives another one, whose statements it adds to."""
        parameters = [a.arg for a in self.definition.args.args]
        if len(args) != len(parameters):
            raise self.error(self.definition, f"takes {len(parameters)} arguments, got {len(args)}")
        self.names.update(zip(parameters, args, strict=True))
        self._read()
        found = self.returned or []
        return found[0] if len(found) == 1 else tuple(found)

    def _read(self) -> None:
        _Array.reading.append(self)
        try:
            self.block(self.definition.body)
        finally:
            _Array.reading.pop()

    def error(self, node: Any, what: str) -> ModelError:
        """Return the error that says where the function has what cannot be read."""
        return ModelError(
            f"{self.file}:{getattr(node, 'lineno', 0)}: {self.definition.name}: {what}"
        )

    # -- memory ----------------------------------------------------------------------------------

    def output_tensor(self, shape: Any, dtype: str = "float32") -> _Array:
        """Return an output, named after the variable that gets it."""
        extents = shape if isinstance(shape, (tuple, list)) else (shape,)
        if self.is_inner:
            array = self.allocate(shape, dtype)
            self.outputs.append(array)
            return array
        array = _Array(self.ib.buffer_ptr(decl_buffer(tuple(extents), dtype, self.pending)))
        self.outputs.append(array)
        return array

    def allocate(self, shape: Any, dtype: str = "float32", scope: str = "global") -> _Array:
        """Return memory for the rest of the block."""
        extents = shape if isinstance(shape, (tuple, list)) else (shape,)
        return _Array(self.ib.allocate(dtype, tuple(extents), self.pending, scope))

    # -- statements ------------------------------------------------------------------------------

    def block(self, body: list[ast.stmt]) -> None:
        """Read statements in order."""
        for node in body:
            if self.returned is not None:
                raise self.error(node, "has statements after its return")
            reader = getattr(self, f"_{type(node).__name__}", None)
            if reader is None:
                raise self.error(node, f"`{ast.unparse(node).splitlines()[0]}` is not there here")
            reader(node)

    def value(self, node: ast.expr) -> Any:
        """Return what an expression is, evaluated as Python over nodes."""
        tree = ast.Expression(decided(node))
        code = compile(ast.fix_missing_locations(tree), self.file, "eval")
        found = {
            name: value.view[0] if isinstance(value, _Scalar) else value
            for name, value in self.names.items()
        }
        try:
            return eval(code, found)
        except SlipwayError:
            raise
        except Exception as error:
            raise self.error(node, f"`{ast.unparse(node)}`: {error}") from None

    def _Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring says nothing to us
            made = self.value(node.value)
            if isinstance(made, PrimExpr):
                self.ib.emit(made)

    def _Pass(self, node: ast.Pass) -> None:
        """Do nothing."""

    def _Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.error(node, "one variable is assigned at a time")
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            self._store(target, self.value(node.value))
            return
        if not isinstance(target, ast.Name):
            raise self.error(node, f"`{ast.unparse(target)}` cannot be assigned")
        self.pending = target.id
        self._set(target.id, self.value(node.value))

    def _set(self, name: str, value: Any) -> None:
        known = self.names.get(name)
        if isinstance(known, _Scalar):
            known.view[0] = value
        elif isinstance(value, (_Array, tuple, list, str)):
            self.names[name] = value
        elif self.assigned.get(name, 0) > 1:
            given = ops.as_expr(value)
            view = self.ib.allocate(given.dtype, (1,), name, "local")
            view[0] = given
            self.names[name] = _Scalar(view)
        else:
            is_known = isinstance(value, (int, float, IntImm))
            self.names[name] = value if is_known else self.ib.let(name, value)

    def _store(self, target: ast.Subscript, value: Any) -> None:
        array = self.value(target.value)
        if not isinstance(array, _Array):
            raise self.error(target, f"`{ast.unparse(target.value)}` is no tensor of this function")
        array[self.value(target.slice)] = value

    def _AugAssign(self, node: ast.AugAssign) -> None:
        load = ast.copy_location(_as_load(node.target), node)
        value = self.value(ast.copy_location(ast.BinOp(load, node.op, node.value), node))
        if isinstance(node.target, ast.Subscript):
            self._store(node.target, value)
        elif isinstance(node.target, ast.Name):
            self._set(node.target.id, value)
        else:
            raise self.error(node, f"`{ast.unparse(node.target)}` cannot be assigned")

    def _For(self, node: ast.For) -> None:
        if not isinstance(node.target, ast.Name) or node.orelse:
            raise self.error(node, "a loop has one variable, and no else")
        name, call = node.target.id, node.iter
        kind = KINDS.get(call.func.id) if isinstance(call, ast.Call) and isinstance(
            call.func, ast.Name) else None  # fmt: skip
        if kind is None:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "bind":
                raise self.error(node, "threads of a GPU are not there: write parallel(n)")
            for item in self.value(call):
                self.names[name] = item
                self.block(node.body)
            return
        assert isinstance(call, ast.Call)
        bounds = [self.value(argument) for argument in call.args]
        begin, end, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1, 1)[:3]
        if kind == "const" or not (isinstance(step, int) and step == 1):
            bounds = [getattr(v, "value", v) for v in (begin, end, step)]
            if not all(isinstance(v, int) for v in bounds):
                raise self.error(node, "the bounds and the step of this loop are numbers known now")
            if kind == "const":
                for item in range(*bounds):
                    self.names[name] = item
                    self.block(node.body)
                return
            first, _, stride = bounds
            with self.ib.for_range(0, len(range(*bounds)), name, kind=kind) as i:
                self._body(node, name, ops.add(first, ops.mul(i, stride)))
            return
        with self.ib.for_range(begin, end, name, kind=kind) as i:
            self._body(node, name, i)

    def _body(self, node: Any, name: str, value: Any) -> None:
        """Read the body of a loop; what it makes is gone behind it."""
        before = dict(self.names)
        self.names[name] = value
        self.block(node.body)
        self.names = before

    def _While(self, node: ast.While) -> None:
        with self.ib.while_loop(self.value(node.test)):
            before = dict(self.names)
            self.block(node.body)
            self.names = before

    def _If(self, node: ast.If) -> None:
        condition = self.value(node.test)
        known = condition.value if isinstance(condition, IntImm) else condition
        if not isinstance(known, PrimExpr):
            self.block(node.body if known else node.orelse)
            return
        before = dict(self.names)
        with self.ib.if_scope(condition):
            self.block(node.body)
        self.names = dict(before)
        if node.orelse:
            with self.ib.else_scope():
                self.block(node.orelse)
            self.names = before

    def _Assert(self, node: ast.Assert) -> None:
        text = ast.literal_eval(node.msg) if node.msg is not None else ast.unparse(node.test)
        condition = ops.as_expr(self.value(node.test))
        self.ib.emit(S.AssertStmt(condition, StringImm(str(text)), S.NOP))

    def _Return(self, node: ast.Return) -> None:
        made = self.value(node.value) if node.value is not None else ()
        found = list(made) if isinstance(made, (tuple, list)) else [made]
        if not found or not all(any(f is o for o in self.outputs) for f in found):
            raise self.error(node, "returns something else than its output_tensor(...)")
        self.returned = found


def _as_load(target: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(target), mode="eval").body


def _cast(dtype: str, value: Any) -> Any:
    return ops.cast(ops.as_expr(value), dtype)


def _largest(*values: Any) -> Any:
    return functools.reduce(ops.maximum, map(ops.as_expr, values))


def _minimum(*values: Any) -> Any:
    return functools.reduce(ops.minimum, map(ops.as_expr, values))


def _ceil_div(a: Any, b: Any) -> Any:
    return ops.floordiv(ops.sub(ops.add(a, b), 1), b)


__all__ = ["decorate", "script"]
