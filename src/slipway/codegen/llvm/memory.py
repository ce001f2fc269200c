"""Loads and stores as LLVM IR: whole vectors where lanes are neighbours, else lane by lane."""

from __future__ import annotations

from typing import Any

from slipway import dtypes
from slipway.codegen import legalize
from slipway.codegen.llvm import types
from slipway.codegen.llvm.expressions import ExpressionEmitter
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir.buffer import Buffer
from slipway.ir.ops import const
from slipway.ir.stmt import BufferStore


class MemoryEmitter(ExpressionEmitter):
    """Adds BufferLoad and BufferStore to the expressions."""

    def flat_index(self, buffer: Buffer, indices: tuple[E.PrimExpr, ...]) -> Any:
        """Return (linear form, stride or None, lanes) of an access; None: lanes are scattered."""
        last = indices[-1] if indices else const(0, "int32")
        lanes = dtypes.lanes_of(last.dtype)
        step: int | None = 1
        if lanes > 1:
            ramp = legalize.as_ramp(last)
            if ramp is None:
                return None, None, lanes
            last, step = ramp
        if len(indices) == 1 and not buffer.strides and buffer.elem_offset is None:
            return self.address.linear(last), step, lanes
        scalars = (*indices[:-1], last) if indices else ()
        flat = legalize.flatten_index(buffer, scalars)
        if buffer.strides:
            final = buffer.strides[-1]
            step = step * final.value if isinstance(final, E.IntImm) and step is not None else None
            if step is None and lanes > 1:
                return None, None, lanes
        return self.address.linear(flat), step, lanes

    def element(self, buffer: Buffer) -> tuple[str, int, str]:
        """Return (LLVM type in memory, bytes, pointer operand) of a buffer."""
        ty = types.llvm_type(buffer.dtype, self.soft_half, True)
        return ty, dtypes.bytes_of(buffer.dtype), self.variable(buffer.data)

    def align_of(self, buffer: Buffer, form: Any, unit: int) -> int:
        """Return the provable alignment in bytes of the address of element `form`."""
        known = self.aligned.get(id(buffer.data))
        own = max(1, dtypes.bits_of(buffer.dtype) // 8)
        if known is None:
            return own
        size = unit
        best = known
        for part in (form[0], *(c for _, c in form[1])):
            offset = part * size
            if offset:
                best = min(best, offset & -offset)
        return max(best, own)

    def _emit_BufferLoad(self, node: E.BufferLoad) -> str:
        buffer = node.buffer
        inner = dtypes.lanes_of(buffer.dtype)
        form, step, lanes = self.flat_index(buffer, node.indices)
        ty, size, data = self.element(buffer)
        if form is not None and (lanes == 1 or (step == 1 and inner == 1)):
            at = self.address.pointer(data, ty, size, form)
            whole = ty if lanes == 1 else f"<{lanes} x {ty}>"
            loaded = self.w.put(
                f"load {whole}, ptr {at}, align {self.align_of(buffer, form, size)}"
            )
            return self.from_memory(loaded, node.dtype)
        if form is not None and step == 0 and inner == 1:
            same = legalize.as_ramp(node.indices[-1])
            assert same is not None
            element = E.BufferLoad(buffer, (*node.indices[:-1], same[0]))
            return self.value(E.Broadcast(element, lanes))
        if inner != 1:
            raise CodegenError(
                f"a strided or scattered load from {buffer.name}, whose elements are vectors "
                f"({buffer.dtype}), cannot be compiled; index it with one lane"
            )
        vector = f"<{lanes} x {ty}>"
        if form is not None and step is not None and step in (2, -1) and lanes > 1:
            return self.from_memory(self._strided(data, ty, size, form, step, lanes), node.dtype)
        if form is not None and step in (3, 4) and lanes >= 4:
            return self.from_memory(self._spread(data, ty, size, form, step, lanes), node.dtype)
        own = max(1, dtypes.bits_of(buffer.dtype) // 8)
        if form is not None and step is not None and in_fours(buffer, node, form, step, lanes):
            return self.from_memory(self._columns(data, ty, form, step, lanes), node.dtype)
        result = "poison"
        for lane, at in enumerate(self._lane_pointers(node.indices, data, ty, size, form, step)):
            one = self.w.put(f"load {ty}, ptr {at}, align {own}")
            result = self.w.put(f"insertelement {vector} {result}, {ty} {one}, i64 {lane}")
        return self.from_memory(result, node.dtype)

    def _strided(self, data: str, ty: str, size: int, form: Any, step: int, lanes: int) -> str:
        """Load every second element, or backwards, as whole vectors and a shuffle."""
        vector = f"<{lanes} x {ty}>"
        if step == -1:
            at = self.address.pointer(data, ty, size, (form[0] - lanes + 1, form[1]))
            whole = self.w.put(f"load {vector}, ptr {at}, align {size}")
            return self._shuffle(vector, whole, "poison", list(range(lanes - 1, -1, -1)))
        # Elements base .. base + 2 * lanes - 2: two loads that end exactly at the last one.
        first = self.address.pointer(data, ty, size, form)
        second = self.address.pointer(data, ty, size, (form[0] + lanes - 1, form[1]))
        a = self.w.put(f"load {vector}, ptr {first}, align {size}")
        b = self.w.put(f"load {vector}, ptr {second}, align {size}")
        picks = [2 * i if 2 * i < lanes else lanes + 2 * i - lanes + 1 for i in range(lanes)]
        return self._shuffle(vector, a, b, picks)

    def _spread(self, data: str, ty: str, size: int, form: Any, step: int, lanes: int) -> str:
        """Load every third or fourth element: all that lie between, the last vector ending there.

        Shuffles join what has been picked so far with the next vector.
        """
        vector = f"<{lanes} x {ty}>"
        last = step * (lanes - 1)
        picked, known = "poison", 0
        for part in range(step):
            first = min(part * lanes, last - lanes + 1)
            at = self.address.pointer(data, ty, size, (form[0] + first, form[1]))
            whole = self.w.put(f"load {vector}, ptr {at}, align {size}")
            here = [i for i in range(known, lanes) if step * i < first + lanes]
            picks = [*range(known), *(lanes + step * i - first for i in here)]
            picks += [picks[0]] * (lanes - len(picks))
            picked = self._shuffle(vector, picked, whole, picks)
            known += len(here)
        return picked

    def _columns(self, data: str, ty: str, form: Any, step: int, lanes: int) -> str:
        """Load a column of a matrix: four neighbours of each row, transposed four by four.

        Loads of the other three columns are the same, and LLVM finds that they are: together they
        take a shuffle for each element where one after another would take four.
        """
        column = form[0] % 4
        rows = []
        for lane in range(lanes):
            at = self.address.pointer(data, ty, 4, (form[0] - column + step * lane, form[1]))
            rows.append(self.w.put(f"load <4 x {ty}>, ptr {at}, align 4"))
        vector = f"<{lanes} x {ty}>"
        quarters = [self._joined(ty, 4, rows[i::4]) for i in range(4)]
        low = 0 if column < 2 else 2
        unpack = [
            g + low + (k >> 1) + lanes * (k & 1) for g in range(0, lanes, 4) for k in range(4)
        ]
        a, b, c, d = quarters
        pairs = self._shuffle(vector, a, b, unpack), self._shuffle(vector, c, d, unpack)
        first = 2 * (column & 1)
        picks = [
            g + first + (k & 1) + lanes * (k >> 1) for g in range(0, lanes, 4) for k in range(4)
        ]
        return self._shuffle(vector, *pairs, picks)

    def _joined(self, ty: str, width: int, parts: list[str]) -> str:
        """Put vectors of `width` elements one after the other; their number is a power of two."""
        while len(parts) > 1:
            whole = list(range(2 * width))
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self._shuffle(f"<{width} x {ty}>", a, b, whole) for a, b in pairs]
            width *= 2
        return parts[0]

    def _lane_pointers(
        self, indices: Any, data: str, ty: str, size: int, form: Any, step: int | None
    ) -> list[str]:
        """Return the address of each lane of a strided or scattered access."""
        lanes = dtypes.lanes_of(indices[-1].dtype)
        if form is not None and step is not None:
            return [
                self.address.pointer(data, ty, size, (form[0] + step * lane, form[1]))
                for lane in range(lanes)
            ]
        if len(indices) > 1:
            raise CodegenError("a scattered vector access needs a flat buffer: flatten it first")
        index = indices[0]
        vector = self.value(index)
        scalar = self.ty(dtypes.scalar_of(index.dtype))
        out = []
        for lane in range(lanes):
            one = self.w.put(f"extractelement <{lanes} x {scalar}> {vector}, i64 {lane}")
            if scalar != self.word:
                signed = "sext" if dtypes.is_int(index.dtype) else "zext"
                wider = int(scalar[1:]) < int(self.word[1:])
                one = self.w.put(f"{signed if wider else 'trunc'} {scalar} {one} to {self.word}")
            out.append(self.w.put(f"getelementptr inbounds {ty}, ptr {data}, {self.word} {one}"))
        return out

    def from_memory(self, value: str, dtype: str) -> str:
        """Turn a loaded bool byte into i1; other types are as they are."""
        if not dtypes.is_bool(dtype):
            return value
        lanes = dtypes.lanes_of(dtype)
        ty = "i8" if lanes == 1 else f"<{lanes} x i8>"
        zero = "0" if lanes == 1 else "zeroinitializer"
        return self.w.put(f"icmp ne {ty} {value}, {zero}")

    def to_memory(self, value: str, dtype: str) -> str:
        """Turn an i1 into the byte that buffers hold; other types are as they are."""
        if not dtypes.is_bool(dtype):
            return value
        lanes = dtypes.lanes_of(dtype)
        one, byte = ("i1", "i8") if lanes == 1 else (f"<{lanes} x i1>", f"<{lanes} x i8>")
        return self.w.put(f"zext {one} {value} to {byte}")

    def store(self, node: BufferStore) -> None:
        """Emit a BufferStore."""
        buffer = node.buffer
        value = self.to_memory(self.value(node.value), node.value.dtype)
        form, step, lanes = self.flat_index(buffer, node.indices)
        ty, size, data = self.element(buffer)
        if form is not None and (lanes == 1 or step == 1):
            at = self.address.pointer(data, ty, size, form)
            whole = ty if lanes == 1 else f"<{lanes} x {ty}>"
            self.w.do(f"store {whole} {value}, ptr {at}, align {self.align_of(buffer, form, size)}")
            return
        if dtypes.lanes_of(buffer.dtype) != 1:
            raise CodegenError(
                f"a strided or scattered store to {buffer.name}, whose elements are vectors "
                f"({buffer.dtype}), cannot be compiled; index it with one lane"
            )
        own = max(1, dtypes.bits_of(buffer.dtype) // 8)
        for lane, at in enumerate(self._lane_pointers(node.indices, data, ty, size, form, step)):
            one = self.w.put(f"extractelement <{lanes} x {ty}> {value}, i64 {lane}")
            self.w.do(f"store {ty} {one}, ptr {at}, align {own}")


def in_fours(buffer: Buffer, node: Any, form: Any, step: int, lanes: int) -> bool:
    """Return whether each lane of a strided load lies in a group of four elements of the buffer.

    All rows must begin at a multiple of four: then the group of an element is inside the buffer.
    """
    size = buffer.size_bytes()
    flat = len(node.indices) == 1 and not buffer.strides and buffer.elem_offset is None
    return (
        flat
        and size is not None
        and size % 16 == 0
        and dtypes.bits_of(buffer.dtype) == 32
        and lanes in (4, 8, 16)
        and step > 0
        and all(factor % 4 == 0 for factor in (step, *(c for _, c in form[1])))
    )
