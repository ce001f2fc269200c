"""The reference interpreter: runs a PrimFunc on NumPy arrays, slowly and exactly.

It is the oracle of the tests: every stage of the pipeline, from multi-dimensional loops to
flattened vector code, must give the same numbers here.  Parallel, vectorized, unrolled and thread
loops run as serial ones.  Every load and store is checked against the buffer's size.

float16 and float32 results are rounded after every operation, as compiled code does; bfloat16
arrays are NumPy uint16 holding the upper half of a float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.errors import ExecutionError, LoweringError
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.function import PrimFunc
from slipway.ir.intrin import INTRINSICS

PackedFunctions = dict[str, Callable[..., Any]]


def run(func: PrimFunc, *arrays: Any, packed: PackedFunctions | None = None) -> int:
    """Run `func` on `arrays` (NumPy arrays, changed in place, and scalars), one per parameter.

    `packed` gives the functions that call_packed and call_extern name.  Returns the status
    (0 unless the function says otherwise).  Raises ExecutionError for unusable arguments, failed
    assertions and out-of-bounds accesses.
    """
    machine = _Machine(packed or {})
    machine.bind_arguments(func, arrays)
    with np.errstate(all="ignore"):
        try:
            machine.stmt(func.body)
        except _ReturnError as result:
            return int(result.status)
    return 0


class _ReturnError(Exception):
    def __init__(self, status: Any) -> None:
        super().__init__()
        self.status = status


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """Return the NumPy type in which the interpreter keeps values of a scalar dtype."""
    code, bits, _ = dtypes.parse(dtype)
    if code == "bool":
        return np.dtype(bool)
    if code == "bfloat":
        return np.dtype(np.float32)
    if code == "handle":
        return np.dtype(np.int64)
    return np.dtype(f"{code}{max(bits, 8)}")


def storage_dtype(dtype: str) -> np.dtype[Any]:
    """Return the NumPy type of an array that holds elements of `dtype`."""
    return np.dtype(np.uint16) if dtypes.code_of(dtype) == "bfloat" else numpy_dtype(dtype)


def round_bfloat16(value: Any) -> Any:
    """Round float32 values to the nearest bfloat16, halves to even."""
    wide = np.asarray(value, dtype=np.float32)
    bits = wide.view(np.uint32)
    rounded = (bits + (np.uint32(0x7FFF) + ((bits >> 16) & 1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(wide), wide, rounded.view(np.float32))[()]


class _Machine:
    def __init__(self, packed: PackedFunctions) -> None:
        self.packed = packed
        self.values: dict[int, Any] = {}
        self.memory: dict[int, np.ndarray[Any, Any]] = {}  # flat, by data Var

    # -- arguments -----------------------------------------------------------------------------

    def bind_arguments(self, func: PrimFunc, arrays: tuple[Any, ...]) -> None:
        if len(arrays) != len(func.params):
            raise ExecutionError(
                f"{func.name} takes {len(func.params)} arguments, got {len(arrays)}"
            )
        for param, given in zip(func.params, arrays, strict=True):
            buffer = func.buffer_of(param)
            if buffer is None:
                self.values[id(param)] = numpy_dtype(param.dtype).type(given)
                continue
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
                self.values[id(extent)] = numpy_dtype(extent.dtype).type(given)
            elif int(self.expr(extent)) != given:
                raise ExecutionError(
                    f"argument {name} of {function} has shape {array.shape}, "
                    f"needs {tuple(int(self.expr(s)) for s in buffer.shape)}"
                )
        if buffer.strides:
            for stride, extent, step in zip(
                buffer.strides, array.shape, array.strides, strict=True
            ):
                given = step // array.itemsize
                if isinstance(stride, E.Var) and id(stride) not in self.values:
                    self.values[id(stride)] = numpy_dtype(stride.dtype).type(given)
                elif extent > 1 and int(self.expr(stride)) != given:
                    raise ExecutionError(f"argument {name} of {function} has other strides")
            size = 1 + sum(
                (n - 1) * (s // array.itemsize)
                for n, s in zip(array.shape, array.strides, strict=True)
            )
            flat = np.lib.stride_tricks.as_strided(array, (size,), (array.itemsize,))
        else:
            if not array.flags.c_contiguous:
                raise ExecutionError(f"argument {name} of {function} must be C-contiguous")
            flat = array.reshape(-1)
        if isinstance(buffer.elem_offset, E.Var) and id(buffer.elem_offset) not in self.values:
            self.values[id(buffer.elem_offset)] = numpy_dtype(buffer.elem_offset.dtype).type(0)
        self.memory[id(buffer.data)] = flat

    # -- statements ------------------------------------------------------------------------------

    def stmt(self, node: S.Stmt) -> None:
        match node:
            case S.BufferStore():
                self.store(node)
            case S.For():
                self.loop(node)
            case S.SeqStmt():
                for inner in node.stmts:
                    self.stmt(inner)
            case S.IfThenElse():
                if bool(self.expr(node.condition)):
                    self.stmt(node.then_case)
                elif node.else_case is not None:
                    self.stmt(node.else_case)
            case S.Allocate():
                self.allocate(node.buffer)
                self.stmt(node.body)
            case S.LetStmt():
                self.values[id(node.var)] = self.expr(node.value)
                self.stmt(node.body)
            case S.AttrStmt():
                self.stmt(node.body)
            case S.AssertStmt():
                if not bool(self.expr(node.condition)):
                    raise ExecutionError(node.message.value)
                self.stmt(node.body)
            case S.While():
                while bool(self.expr(node.condition)):
                    self.stmt(node.body)
            case S.Evaluate():
                self.expr(node.value)
            case _:
                raise LoweringError(f"the interpreter cannot run a {type(node).__name__}")

    def loop(self, node: S.For) -> None:
        first, extent = int(self.expr(node.min)), int(self.expr(node.extent))
        cast = numpy_dtype(node.loop_var.dtype).type
        names = [id(node.loop_var)]
        if node.thread is not None:
            names.append(id(node.thread.var))
        for value in range(first, first + extent):
            for name in names:
                self.values[name] = cast(value)
            self.stmt(node.body)

    def allocate(self, buffer: Buffer) -> None:
        size = int(self.last_index(buffer)) + 1
        memory = np.empty(max(size, 0), storage_dtype(buffer.dtype))
        # A value that was never written must not look like a right one.
        memory.fill(
            np.nan if memory.dtype.kind == "f" else 113 if memory.dtype.kind != "b" else True
        )
        self.memory[id(buffer.data)] = memory

    def last_index(self, buffer: Buffer) -> int:
        """The greatest position from the data pointer that `buffer` reaches."""
        shape = [int(self.expr(s)) for s in buffer.shape]
        offset = 0 if buffer.elem_offset is None else int(self.expr(buffer.elem_offset))
        return offset + sum(
            (n - 1) * s for n, s in zip(shape, self.strides(buffer, shape), strict=True)
        )

    def strides(self, buffer: Buffer, shape: list[int]) -> list[int]:
        if buffer.strides:
            return [int(self.expr(s)) for s in buffer.strides]
        steps, step = [], 1
        for extent in reversed(shape):
            steps.append(step)
            step *= extent
        return steps[::-1]

    # -- memory ------------------------------------------------------------------------------------

    def locate(self, buffer: Buffer, indices: tuple[E.PrimExpr, ...]) -> Any:
        shape = [int(self.expr(s)) for s in buffer.shape]
        position: Any = 0 if buffer.elem_offset is None else int(self.expr(buffer.elem_offset))
        if len(indices) != len(shape):
            raise ExecutionError(
                f"buffer {buffer.name} has {len(shape)} dimensions, indexed with {len(indices)}"
            )
        for index, extent, stride in zip(indices, shape, self.strides(buffer, shape), strict=True):
            value = np.asarray(self.expr(index), dtype=np.int64)
            if np.any(value < 0) or np.any(value >= extent):
                raise ExecutionError(
                    f"index {value} of buffer {buffer.name} is outside [0, {extent}): {index}"
                )
            position = position + value * stride
        return position

    def load(self, node: E.BufferLoad) -> Any:
        memory = self.memory.get(id(node.buffer.data))
        if memory is None:
            raise ExecutionError(f"buffer {node.buffer.name} is read outside its allocation")
        values = memory[self.locate(node.buffer, node.indices)]
        if dtypes.code_of(node.dtype) == "bfloat":
            return (np.asarray(values).astype(np.uint32) << 16).view(np.float32)[()]
        return values

    def store(self, node: S.BufferStore) -> None:
        memory = self.memory.get(id(node.buffer.data))
        if memory is None:
            raise ExecutionError(f"buffer {node.buffer.name} is written outside its allocation")
        value = self.expr(node.value)
        if dtypes.code_of(node.buffer.dtype) == "bfloat":
            value = (round_bfloat16(value).view(np.uint32) >> 16).astype(np.uint16)
        memory[self.locate(node.buffer, node.indices)] = value

    # -- expressions -------------------------------------------------------------------------------

    def expr(self, node: Any) -> Any:
        method = _EVALUATE.get(type(node))
        if method is None:
            raise LoweringError(f"the interpreter cannot evaluate a {type(node).__name__}: {node}")
        return method(self, node)

    def var(self, node: E.Var) -> Any:
        try:
            return self.values[id(node)]
        except KeyError:
            raise ExecutionError(f"variable {node.name} is used outside its scope") from None

    def select(self, node: E.Select) -> Any:
        condition = self.expr(node.condition)
        yes, no = self.expr(node.true_value), self.expr(node.false_value)
        return np.where(condition, yes, no).astype(numpy_dtype(node.dtype))[()]

    def let(self, node: E.Let) -> Any:
        self.values[id(node.var)] = self.expr(node.value)
        return self.expr(node.body)

    def cast(self, node: E.Cast) -> Any:
        value = np.asarray(self.expr(node.value))
        if dtypes.code_of(node.dtype) == "bfloat":
            return round_bfloat16(value)
        want = numpy_dtype(node.dtype)
        if value.dtype.kind == "f" and want.kind in "iu":
            value = np.trunc(value.astype(np.float64)).astype(np.int64)
        result = value.astype(want)
        if dtypes.bits_of(node.dtype) == 4:
            result = _wrap4(result, node.dtype)
        return result[()]

    def call(self, node: E.Call) -> Any:
        if node.op == "if_then_else":
            condition = self.expr(node.args[0])
            if np.ndim(condition) == 0:
                value = self.expr(node.args[1] if condition else node.args[2])
                return value
            return np.where(condition, self.expr(node.args[1]), self.expr(node.args[2]))
        if node.op == "ret":
            raise _ReturnError(self.expr(node.args[0]))
        if node.op in ("call_packed", "call_extern", "call_pure_extern"):
            return self.call_by_name(node)
        if node.op in ("prefetch", "storage_sync"):
            return 0
        if node.op == "reinterpret":
            value = np.asarray(self.expr(node.args[0]))
            return value.view(numpy_dtype(dtypes.scalar_of(node.dtype)))[()]
        if node.op in ("address_of", "access_ptr", "tensor_view"):
            return self.pointer(node)
        entry = INTRINSICS.get(node.op)
        if entry is None or entry.reference is None:
            function = self.packed.get(node.op)
            if function is not None:
                return function(*(self.expr(a) for a in node.args))
            raise LoweringError(f"the interpreter has no meaning for the call {node.op}")
        args = [self.expr(a) for a in node.args]
        result = np.asarray(entry.reference(*args))
        if dtypes.code_of(node.dtype) == "bfloat":
            return round_bfloat16(result)
        return result.astype(numpy_dtype(node.dtype))[()]

    def call_by_name(self, node: E.Call) -> Any:
        name = node.args[0]
        assert isinstance(name, E.StringImm)
        function = self.packed.get(name.value)
        if function is None:
            raise ExecutionError(f"the interpreter was given no function {name.value!r}")
        result = function(*(self.argument(a) for a in node.args[1:]))
        return 0 if result is None else result

    def argument(self, node: Any) -> Any:
        return node.value if isinstance(node, E.StringImm) else self.expr(node)

    def pointer(self, node: E.Call) -> Any:
        """Pointers are array views that start at the element."""
        first: Any = node.args[0]
        if node.op == "address_of":
            position = int(self.locate(first.buffer, first.indices))
            return self.memory[id(first.buffer.data)][position:]
        memory = self.memory[id(first)]
        if node.op == "tensor_view":
            shape = [int(self.expr(s)) for s in node.args[1:]]
            return memory[: int(np.prod(shape))].reshape(shape)
        return memory[int(self.expr(node.args[1])) :]


def _wrap4(value: Any, dtype: str) -> Any:
    low = value & 15
    if dtypes.is_int(dtype):
        return np.where(low > 7, low - 16, low).astype(value.dtype)
    return low


def _floordiv(a: Any, b: Any) -> Any:
    return np.floor_divide(a, b)


def _truncdiv(a: Any, b: Any) -> Any:
    if np.asarray(a).dtype.kind == "f":
        return np.divide(a, b)
    quotient = np.abs(a) // np.abs(b)
    return np.where((a >= 0) == (b >= 0), quotient, -quotient).astype(np.asarray(a).dtype)[()]


def _truncmod(a: Any, b: Any) -> Any:
    return np.fmod(a, b)


def _min(a: Any, b: Any) -> Any:
    return np.where(np.less(a, b), a, b).astype(np.asarray(a).dtype)[()]


def _max(a: Any, b: Any) -> Any:
    return np.where(np.greater(a, b), a, b).astype(np.asarray(a).dtype)[()]


def _arithmetic(function: Callable[[Any, Any], Any]) -> Callable[[_Machine, Any], Any]:
    def evaluate(machine: _Machine, node: Any) -> Any:
        result = function(machine.expr(node.a), machine.expr(node.b))
        parts = dtypes.parse(node.dtype)
        if parts.code == "bfloat":
            return round_bfloat16(result)
        if parts.bits == 4:
            return _wrap4(np.asarray(result), node.dtype)[()]
        return result

    return evaluate


def _constant(machine: _Machine, node: Any) -> Any:
    value = numpy_dtype(node.dtype).type(node.value)
    return round_bfloat16(value) if dtypes.code_of(node.dtype) == "bfloat" else value


def _ramp(machine: _Machine, node: E.Ramp) -> Any:
    base, stride = machine.expr(node.base), machine.expr(node.stride)
    steps = np.arange(node.num_lanes, dtype=numpy_dtype(node.base.dtype))
    return base + stride * steps


def _broadcast(machine: _Machine, node: E.Broadcast) -> Any:
    return np.tile(np.atleast_1d(machine.expr(node.value)), node.num_lanes)


def _shuffle(machine: _Machine, node: E.Shuffle) -> Any:
    lanes = np.concatenate([np.atleast_1d(machine.expr(v)) for v in node.vectors])
    picked = lanes[list(node.indices)]
    return picked if len(node.indices) > 1 else picked[0]


_EVALUATE: dict[type, Callable[[_Machine, Any], Any]] = {
    E.Var: _Machine.var,
    E.SizeVar: _Machine.var,
    E.IntImm: _constant,
    E.FloatImm: _constant,
    E.Cast: _Machine.cast,
    E.Add: _arithmetic(np.add),
    E.Sub: _arithmetic(np.subtract),
    E.Mul: _arithmetic(np.multiply),
    E.Div: _arithmetic(_truncdiv),
    E.Mod: _arithmetic(_truncmod),
    E.FloorDiv: _arithmetic(_floordiv),
    E.FloorMod: _arithmetic(np.mod),
    E.Min: _arithmetic(_min),
    E.Max: _arithmetic(_max),
    E.EQ: lambda m, n: np.equal(m.expr(n.a), m.expr(n.b)),
    E.NE: lambda m, n: np.not_equal(m.expr(n.a), m.expr(n.b)),
    E.LT: lambda m, n: np.less(m.expr(n.a), m.expr(n.b)),
    E.LE: lambda m, n: np.less_equal(m.expr(n.a), m.expr(n.b)),
    E.GT: lambda m, n: np.greater(m.expr(n.a), m.expr(n.b)),
    E.GE: lambda m, n: np.greater_equal(m.expr(n.a), m.expr(n.b)),
    E.And: lambda m, n: np.logical_and(m.expr(n.a), m.expr(n.b)),
    E.Or: lambda m, n: np.logical_or(m.expr(n.a), m.expr(n.b)),
    E.Not: lambda m, n: np.logical_not(m.expr(n.a)),
    E.Select: _Machine.select,
    E.BufferLoad: _Machine.load,
    E.Let: _Machine.let,
    E.Call: _Machine.call,
    E.Ramp: _ramp,
    E.Broadcast: _broadcast,
    E.Shuffle: _shuffle,
}
