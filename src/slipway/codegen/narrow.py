"""Four-bit integers for processors that have none: kept in bytes, packed where callers see them.

int4 and uint4 values are computed as int8 and uint8 and wrapped to four bits after every operation
that can leave them; temporaries hold one per byte.  Tensors of the caller hold two per byte, as
DLPack says: element 2 i in the low half of byte i, element 2 i + 1 in the high half, and a
tensor of odd length ends with a free half, which is written as zero.

before: ``B[i] = A[i] * int4(3)`` with A, B: int4[n]
after:  ``unpacked: int8[n]; unpacked[i] = wrap(half(A8[i // 2], i % 2) * int8(3));
        B8[j] = unpacked[2 j] & 15 | unpacked[2 j + 1] << 4``

A tensor that is written goes through an unpacked copy, since two elements of one byte may belong
to different threads or lanes.
"""

from __future__ import annotations

from typing import Any

from slipway import dtypes
from slipway.arith.analyzer import Analyzer
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.function import PrimFunc
from slipway.ir.node import Node
from slipway.ir.visit import children, map_children, walk

_WRAPPED = (E.Add, E.Sub, E.Mul, E.Div, E.FloorDiv, E.Ramp)
_IN_RANGE = {"if_then_else", "likely", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_right"}
_BY_BITS = {"popcount", "clz", "address_of", "access_ptr", "tensor_view"}


def widen_narrow(func: PrimFunc) -> PrimFunc:
    """Return `func` without four-bit arithmetic; its parameters keep their dtype.

    Loads and stores must be one-dimensional (passes.flatten_storage).  Raises CodegenError for
    what depends on the bits of a value, or hands a four-bit buffer to another function.
    """
    tensors = {b.data: b for _, b in func.buffer_map if _is_narrow(b.dtype)}
    if not tensors and not _mentions_narrow(func):
        return func
    return _Widener(func, tensors).run()


def _is_narrow(dtype: str) -> bool:
    return dtype.startswith(("int4", "uint4"))


def _mentions_narrow(func: PrimFunc) -> bool:
    """Return whether a node of the function is of four bits: each dtype is looked at once."""
    seen: set[int] = set()
    wide: set[Any] = set()
    stack: list[Node] = [func]
    while stack:
        node = stack.pop()
        dtype = getattr(node, "dtype", None)
        if dtype not in wide:
            if _narrow_node(node):
                return True
            wide.add(dtype)
        if not node.INNER or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, E.BinaryOp):
            stack += (node.a, node.b)
        elif isinstance(node, E.BufferLoad):
            stack.append(node.buffer)
            stack += node.indices
        else:
            stack += children(node)
    return False


def _narrow_node(node: Any) -> bool:
    dtype = getattr(node, "dtype", None)
    return isinstance(dtype, str) and _is_narrow(dtype)


def _wide(dtype: str) -> str:
    code, _, lanes = dtypes.parse(dtype)
    return dtypes.make(code, 8, lanes)


def _wrap(value: E.PrimExpr) -> E.PrimExpr:
    """Cut a value held in eight bits to four."""
    dtype = value.dtype
    if dtypes.is_uint(dtype):
        return E.Call(dtype, "bitwise_and", (value, ops.const(15, dtype)))
    four = ops.const(4, dtype)
    return E.Call(dtype, "shift_right", (E.Call(dtype, "shift_left", (value, four)), four))


def _reinterpreted(node: E.Call, fresh: Any) -> Any:
    """A byte that holds a four-bit value has it in its low half, and zeros above."""
    source, target = node.args[0].dtype, node.dtype
    value = fresh.args[0]
    if _is_narrow(source):
        low = ops.bitwise_and(value, 15)
        value = low if low.dtype == _wide(target) else E.Cast(_wide(target), low)
    if _is_narrow(target):
        kind = _wide(target)
        return _wrap(value if value.dtype == kind else E.Cast(kind, value))
    return value if _is_narrow(source) else fresh


class _Widener:
    def __init__(self, func: PrimFunc, tensors: dict[Any, Buffer]) -> None:
        self.func = func
        self.tensors = tensors
        self.an = Analyzer()
        self.buffers: dict[Buffer, Buffer] = {}
        self.vars: dict[E.Var, E.Var] = {}
        self.bytes: dict[Any, Buffer] = {}  # data Var -> the caller's packed bytes
        self.unpacked: dict[Any, Buffer] = {}  # data Var -> the copy of a tensor that is written
        self.memo: dict[int, tuple[Any, Any]] = {}

    def run(self) -> PrimFunc:
        sizes: dict[Any, E.PrimExpr] = {}
        for node in walk(self.func.body):
            if isinstance(node, Buffer) and node.data in self.tensors:
                sizes.setdefault(node.data, node.shape[0] if node.shape else ops.const(1))
            if isinstance(node, S.BufferStore) and node.buffer.data in self.tensors:
                self.unpacked.setdefault(node.buffer.data, None)  # type: ignore[arg-type]
        for data, tensor in self.tensors.items():
            size = sizes.get(data, ops.const(1))
            half = ops.floordiv(ops.add(size, 1), 2)
            self.bytes[data] = Buffer(tensor.name, data, "uint8", (half,))
            if data in self.unpacked:
                name = f"{tensor.name}.unpacked"
                memory = E.Var(name, "handle")
                self.unpacked[data] = Buffer(name, memory, _wide(tensor.dtype), (size,))
        params, scalars = [], []
        for param in self.func.params:
            if param.dtype != "handle" and _is_narrow(param.dtype):
                given = E.Var(param.name, _wide(param.dtype))
                scalars.append((self.variable(param), given))
                param = given
            params.append(param)
        body = self.visit(self.func.body)
        for data, copy in self.unpacked.items():
            body = S.seq((self._unpack(data, copy), body, self._pack(data, copy)))
        for copy in self.unpacked.values():
            body = S.Allocate(copy, body)
        for var, given in scalars:
            body = S.LetStmt(var, _wrap(given), body)
        made: PrimFunc = self.func.replace(params=tuple(params), body=body)
        return made

    # -- tensors of the caller --

    def _unpack(self, data: Any, copy: Buffer) -> S.Stmt:
        i = E.Var("i", copy.shape[0].dtype)
        value = self._half(data, i, copy.dtype)
        return S.For(i, ops.const(0, i.dtype), copy.shape[0], "serial",
                     S.BufferStore(copy, value, (i,)))  # fmt: skip

    def _pack(self, data: Any, copy: Buffer) -> S.Stmt:
        size, packed = copy.shape[0], self.bytes[data]
        j = E.Var("j", size.dtype)

        def bits(index: E.PrimExpr) -> E.PrimExpr:
            return ops.bitwise_and(ops.cast(E.BufferLoad(copy, (index,)), "uint8"), 15)

        low = bits(ops.mul(j, 2))
        high = ops.shift_left(bits(ops.add(ops.mul(j, 2), 1)), 4)
        whole = S.BufferStore(packed, ops.bitwise_or(low, high), (j,))
        zero, pairs = ops.const(0, j.dtype), ops.floordiv(size, 2)
        last = ops.sub(size, 1)
        tail = S.IfThenElse(
            ops.equal(ops.floormod(size, 2), 1),
            S.BufferStore(packed, bits(last), (ops.floordiv(last, 2),)),
        )
        return S.seq((S.For(j, zero, pairs, "serial", whole), tail))

    def _half(self, data: Any, index: E.PrimExpr, dtype: str) -> E.PrimExpr:
        """The element (or elements) at `index` of packed bytes, as `dtype`."""
        lanes = index.lanes
        dtype = dtypes.with_lanes(dtype, lanes)
        pairs = self._aligned_pairs(data, index, dtype)
        if pairs is not None:
            return pairs
        byte = E.BufferLoad(self.bytes[data], (ops.shift_right(index, 1),))
        odd = ops.bitwise_and(index, 1)
        up = ops.cast(ops.sub(4, ops.mul(odd, 4)), dtype)
        high = ops.shift_left(E.Cast(dtype, byte), up)
        return ops.shift_right(high, 4)

    def _aligned_pairs(self, data: Any, index: E.PrimExpr, dtype: str) -> E.PrimExpr | None:
        """Whole bytes at once, where `index` is a run of elements that starts at an even one."""
        if not (
            isinstance(index, E.Ramp) and ops.as_int(index.stride) == 1 and index.num_lanes % 2 == 0
        ):
            return None
        step, remainder = self.an.linear(index.base).modular()
        if step % 2 or remainder % 2:
            return None
        count = index.num_lanes // 2
        start = ops.floordiv(index.base, 2)
        run = start if count == 1 else E.Ramp(start, ops.const(1, start.dtype), count)
        kind = dtypes.with_lanes(dtype, count)
        both = E.Cast(kind, E.BufferLoad(self.bytes[data], (run,)))
        low = ops.shift_right(ops.shift_left(both, 4), 4)
        order = tuple(lane // 2 + (lane % 2) * count for lane in range(2 * count))
        return E.Shuffle((low, ops.shift_right(both, 4)), order)

    # -- the body --

    def variable(self, var: E.Var) -> E.Var:
        """Return the wide variable that stands for a narrow one."""
        if var not in self.vars:
            self.vars[var] = E.Var(var.name, _wide(var.dtype))
        return self.vars[var]

    def buffer(self, buffer: Buffer) -> Buffer:
        if not _is_narrow(buffer.dtype):
            return buffer
        if buffer.data in self.unpacked:
            return self.unpacked[buffer.data]
        if buffer not in self.buffers:
            wide = map_children(buffer, self.visit)
            self.buffers[buffer] = wide.replace(dtype=_wide(buffer.dtype))
        return self.buffers[buffer]

    def visit(self, node: Any) -> Any:
        """Return the wide form of an expression or statement."""
        if isinstance(node, Buffer):
            return self.buffer(node)
        if isinstance(node, E.Var):
            narrow = node.dtype != "handle" and _is_narrow(node.dtype)
            return self.variable(node) if narrow else node
        known = self.memo.get(id(node))
        if known is not None:
            return known[1]
        if isinstance(node, S.For) and node.loop_var.dtype in ("int32", "int64"):
            self.an.bind_range(node.loop_var, E.Range(node.min, node.extent))
        result = self._expression(node) if isinstance(node, E.PrimExpr) else (
            map_children(node, self.visit))  # fmt: skip
        self.memo[id(node)] = (node, result)
        return result

    def _expression(self, node: Any) -> Any:
        if isinstance(node, E.Call) and node.op in _BY_BITS:
            self._refuse(node)
        if isinstance(node, E.BufferLoad):
            data = node.buffer.data
            if data in self.tensors and data not in self.unpacked:
                return self._half(data, self.visit(node.indices[0]), _wide(node.buffer.dtype))
        fresh = map_children(node, self.visit)
        if isinstance(node, E.Call) and node.op == "reinterpret":
            return _reinterpreted(node, fresh)
        if node.dtype == "handle" or not node.dtype or not _is_narrow(node.dtype):
            return fresh
        kind = _wide(node.dtype)
        if isinstance(node, E.IntImm):
            return E.IntImm(kind, node.value)
        if isinstance(node, E.Cast):
            return _wrap(E.Cast(kind, fresh.value) if fresh.value.dtype != kind else fresh.value)
        if isinstance(node, E.Call):
            call = fresh.replace(dtype=kind)
            return call if node.op in _IN_RANGE else _wrap(call)
        return _wrap(fresh) if isinstance(node, _WRAPPED) else fresh

    def _refuse(self, node: E.Call) -> None:
        """Raise CodegenError for a call that sees how four-bit values lie in memory."""
        for part in walk(node):
            if (isinstance(part, E.Var) and part in self.tensors) or _narrow_node(part):
                raise CodegenError(
                    f"{self.func.name}: {node.op} of four-bit integers cannot be compiled "
                    f"({node}): cast to int8 first"
                )
