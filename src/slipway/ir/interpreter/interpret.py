"""The reference interpreter: runs a PrimFunc on NumPy arrays, slowly and exactly.

It is the oracle of the tests: every stage of the pipeline, from multi-dimensional loops to
flattened vector code, must give the same numbers here.  Every node is compiled once into a Python
closure; scalar integers are Python ints, wrapped to their type.  Parallel, vectorized, unrolled
and thread loops run as serial ones.  Every load and store is checked against the buffer's size.

float16 and float32 results are rounded after every operation, as compiled code does; bfloat16
arrays are NumPy uint16 holding the upper half of a float32.

Kernels of GPUs, whose threads wait for each other, run concurrently in ``threads.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.errors import ExecutionError, LoweringError
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.depth import room_for
from slipway.ir.function import PrimFunc
from slipway.ir.interpreter.calls import Closure, ReturnError
from slipway.ir.interpreter.expressions import EXPRESSIONS
from slipway.ir.interpreter.tiles import TileUnit
from slipway.ir.interpreter.values import round_bfloat16, scalar, storage_dtype

if TYPE_CHECKING:
    from slipway.ir.node import Node


PackedFunctions = dict[str, Callable[..., Any]]


def run(func: PrimFunc, *arrays: Any, packed: PackedFunctions | None = None) -> int | float:
    """Run `func` on `arrays` (NumPy arrays, changed in place, and scalars), one per parameter.

    `packed` gives the functions that call_packed and call_extern name.  Returns what the
    function returns, 0 where that is nothing.  Raises ExecutionError for unusable arguments,
    failed assertions and out-of-bounds accesses.
    """
    machine = Machine(packed or {})
    machine.bind_arguments(func, arrays)
    with np.errstate(all="ignore"), room_for(func.body, f"function {func.name!r}"):
        try:
            machine.compile(func.body)()
        except ReturnError as result:
            return result.value
    return 0


class Machine:
    """Memory, variables, and the closures of the nodes met so far."""

    def __init__(self, packed: PackedFunctions) -> None:
        self.packed = packed
        self.values: dict[int, Any] = {}
        self.memory: dict[int, np.ndarray[Any, Any]] = {}  # flat, by data Var
        self.code: dict[int, tuple[Any, Callable[[], Any]]] = {}
        self.tiles = TileUnit()

    def expr(self, node: Node) -> Any:
        """Return the value of an expression now."""
        return self.compile(node)()

    def compile(self, node: Node) -> Callable[[], Any]:
        """Return the closure that runs `node`."""
        known = self.code.get(id(node))
        if known is not None:
            return known[1]
        make = _COMPILE.get(type(node))
        if make is None:
            raise LoweringError(f"the interpreter cannot run a {type(node).__name__}: {node}")
        closure = make(self, node)
        self.code[id(node)] = (node, closure)
        return closure

    # -- arguments -----------------------------------------------------------------------------

    def bind_arguments(self, func: PrimFunc, arrays: tuple[Any, ...]) -> None:
        """Give the function's parameters their values.  Raises ExecutionError."""
        if len(arrays) != len(func.params):
            raise ExecutionError(
                f"{func.name} takes {len(func.params)} arguments, got {len(arrays)}"
            )
        for param, given in zip(func.params, arrays, strict=True):
            buffer = func.buffer_of(param)
            if buffer is None:
                self.values[id(param)] = scalar(param.dtype, given)
            else:
                self._bind_array(func.name, param.name, buffer, given)

    def _bind_array(self, function: str, name: str, buffer: Buffer, array: Any) -> None:
        want = storage_dtype(buffer.dtype)
        if not isinstance(array, np.ndarray) or array.dtype != want:
            kind = getattr(array, "dtype", type(array).__name__)
            raise ExecutionError(f"argument {name} of {function} must be {want}, got {kind}")
        if array.ndim != buffer.ndim:
            raise ExecutionError(
                f"argument {name} of {function} has {array.ndim} dimensions, needs {buffer.ndim}"
            )
        for extent, given in zip(buffer.shape, array.shape, strict=True):
            if isinstance(extent, E.Var) and id(extent) not in self.values:
                self.values[id(extent)] = int(given)
            elif int(self.expr(extent)) != given:
                raise ExecutionError(
                    f"argument {name} of {function} has shape {array.shape}, "
                    f"needs {tuple(int(self.expr(s)) for s in buffer.shape)}"
                )
        if buffer.strides:
            self.memory[id(buffer.data)] = self._strided(function, name, buffer, array)
        elif array.flags.c_contiguous:
            self.memory[id(buffer.data)] = array.reshape(-1)
        else:
            raise ExecutionError(f"argument {name} of {function} must be C-contiguous")
        if isinstance(buffer.elem_offset, E.Var):
            self.values.setdefault(id(buffer.elem_offset), 0)

    def _strided(self, function: str, name: str, buffer: Buffer, array: Any) -> Any:
        steps = [s // array.itemsize for s in array.strides]
        for stride, extent, step in zip(buffer.strides, array.shape, steps, strict=True):
            if isinstance(stride, E.Var) and id(stride) not in self.values:
                self.values[id(stride)] = step
            elif extent > 1 and int(self.expr(stride)) != step:
                raise ExecutionError(f"argument {name} of {function} has strides {steps}")
        size = 1 + sum((n - 1) * s for n, s in zip(array.shape, steps, strict=True))
        return np.lib.stride_tricks.as_strided(array, (size,), (array.itemsize,))

    # -- memory ------------------------------------------------------------------------------------

    def find(self, buffer: Buffer, verb: str) -> Any:
        """Return the flat memory of a buffer that is `verb` ("read", "written") now."""
        try:
            return self.memory[id(buffer.data)]
        except KeyError:
            raise ExecutionError(f"buffer {buffer.name} is {verb} outside its allocation") from None

    def read(self, buffer: Buffer, at: Any) -> Any:
        """Return the element, or the elements, at a position of a buffer's memory."""
        return self.find(buffer, "read")[at]

    def write(self, buffer: Buffer, at: Any, value: Any) -> None:
        """Set the element, or the elements, at a position of a buffer's memory."""
        self.find(buffer, "written")[at] = value

    def allocate(self, buffer: Buffer) -> None:
        """Give a temporary memory of its present size."""
        shape = [int(self.expr(s)) for s in buffer.shape]
        offset = 0 if buffer.elem_offset is None else int(self.expr(buffer.elem_offset))
        strides = self.strides(buffer, shape)
        size = 1 + offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        memory = np.empty(max(size, 0), storage_dtype(buffer.dtype))
        # A value that was never written must not look like a right one.
        memory.fill(np.nan if memory.dtype.kind == "f" else 113)
        self.memory[id(buffer.data)] = memory

    def strides(self, buffer: Buffer, shape: list[int]) -> list[int]:
        """Return a buffer's strides in elements; row-major ones where it has none of its own."""
        if buffer.strides:
            return [int(self.expr(s)) for s in buffer.strides]
        steps, step = [], 1
        for extent in reversed(shape):
            steps.append(step)
            step *= extent
        return steps[::-1]

    def locate(self, buffer: Buffer, indices: tuple[E.PrimExpr, ...]) -> Callable[[], Any]:
        """Return a closure that gives the checked position from the data pointer."""
        if len(indices) != buffer.ndim:
            raise ExecutionError(
                f"buffer {buffer.name} has {buffer.ndim} dimensions, indexed with {len(indices)}"
            )
        compiled = [self.compile(i) for i in indices]
        fixed = buffer.constant_shape()
        plan: list[Any] = []

        def layout() -> list[Any]:
            shape = [int(self.expr(s)) for s in buffer.shape]
            return list(zip(compiled, shape, self.strides(buffer, shape), indices, strict=True))

        if fixed is not None and all(isinstance(s, E.IntImm) for s in buffer.strides):
            plan = layout()
        start = None if buffer.elem_offset is None else self.compile(buffer.elem_offset)

        def position() -> Any:
            total: Any = 0 if start is None else start()
            for index, extent, stride, source in plan or layout():
                value = index()
                if type(value) is int:
                    inside = 0 <= value < extent
                else:
                    value = np.asarray(value, dtype=np.int64)
                    inside = bool(value.min() >= 0 and value.max() < extent)
                if not inside:
                    raise ExecutionError(
                        f"index {value} of buffer {buffer.name} is outside [0, {extent}): {source}"
                    )
                total = total + value * stride
            return total

        return position

    def call_by_name(self, node: E.Call) -> Any:
        """Call one of the functions that `run` was given, and return its result."""
        name = node.args[0]
        assert isinstance(name, E.StringImm)
        function = self.packed.get(name.value)
        if function is None:
            raise ExecutionError(f"the interpreter was given no function {name.value!r}")
        arguments = (a.value if isinstance(a, E.StringImm) else self.expr(a) for a in node.args[1:])
        result = function(*arguments)
        return 0 if result is None else result

    def pointer(self, node: E.Call) -> Any:
        """Return a pointer: an array view that starts at the element."""
        first: Any = node.args[0]
        if node.op == "address_of":
            position = int(self.locate(first.buffer, first.indices)())
            return self.find(first.buffer, "read")[position:]
        memory = self.memory[id(first)]
        if node.op == "tensor_view":
            shape = [int(self.expr(s)) for s in node.args[1:]]
            return memory[: int(np.prod(shape))].reshape(shape)
        return memory[int(self.expr(node.args[1])) :]


# -- statements ------------------------------------------------------------------------------------


def _store(m: Machine, node: S.BufferStore) -> Closure:
    value, position, buffer = (
        m.compile(node.value),
        m.locate(node.buffer, node.indices),
        node.buffer,
    )
    if dtypes.code_of(buffer.dtype) == "bfloat":

        def run_bfloat() -> None:
            bits = (np.asarray(round_bfloat16(value())).view(np.uint32) >> 16).astype(np.uint16)
            m.write(buffer, position(), bits)

        return run_bfloat

    def run_store() -> None:
        result = value()
        m.write(buffer, position(), result)

    return run_store


def _for(m: Machine, node: S.For) -> Closure:
    first, extent, body = m.compile(node.min), m.compile(node.extent), m.compile(node.body)
    values, key = m.values, id(node.loop_var)
    other = id(node.thread.var) if node.thread is not None else key

    def run_loop() -> None:
        start = int(first())
        for value in range(start, start + int(extent())):
            values[key] = values[other] = value
            body()

    return run_loop


def _sequence(m: Machine, node: S.SeqStmt) -> Closure:
    steps = [m.compile(s) for s in node.stmts]

    def run_all() -> None:
        for step in steps:
            step()

    return run_all


def _branch(m: Machine, node: S.IfThenElse) -> Closure:
    condition, yes = m.compile(node.condition), m.compile(node.then_case)
    no = m.compile(node.else_case) if node.else_case is not None else None

    def run_branch() -> None:
        if condition():
            yes()
        elif no is not None:
            no()

    return run_branch


def _allocate(m: Machine, node: S.Allocate) -> Closure:
    body, buffer = m.compile(node.body), node.buffer

    def run_body() -> None:
        m.allocate(buffer)
        body()

    return run_body


def _let_stmt(m: Machine, node: S.LetStmt) -> Closure:
    value, body, key = m.compile(node.value), m.compile(node.body), id(node.var)

    def run_let() -> None:
        m.values[key] = value()
        body()

    return run_let


def _block(m: Machine, node: S.Block) -> Closure:
    values = [(id(a.var), m.compile(v)) for a, v in zip(node.axes, node.bindings, strict=True)]
    first = [(id(a.var), m.compile(a.dom.min)) for a in node.axes
             if a.kind == "reduce" and a.dom is not None]  # fmt: skip
    init = None if node.init is None else m.compile(node.init)
    holds, body = m.compile(node.predicate), m.compile(node.body)

    def run_block() -> None:
        if not holds():
            return
        for key, value in values:
            m.values[key] = value()
        if init is not None and all(m.values[key] == begin() for key, begin in first):
            init()
        body()

    return run_block


def _assert(m: Machine, node: S.AssertStmt) -> Closure:
    condition, body = m.compile(node.condition), m.compile(node.body)

    def run_assert() -> None:
        if not condition():
            raise ExecutionError(node.message.value)
        body()

    return run_assert


def _while(m: Machine, node: S.While) -> Closure:
    condition, body = m.compile(node.condition), m.compile(node.body)

    def run_while() -> None:
        while condition():
            body()

    return run_while


_COMPILE: dict[type, Callable[[Machine, Any], Closure]] = {
    S.BufferStore: _store,
    S.For: _for,
    S.SeqStmt: _sequence,
    S.IfThenElse: _branch,
    S.Allocate: _allocate,
    S.LetStmt: _let_stmt,
    S.AttrStmt: lambda m, n: m.compile(n.body),
    S.AssertStmt: _assert,
    S.Block: _block,
    S.While: _while,
    S.Evaluate: lambda m, n: m.compile(n.value),
    **EXPRESSIONS,
}
