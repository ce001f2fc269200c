"""Reads and writes of textures in OpenCL C: the walk of C, where memory may be an image."""

from __future__ import annotations

from collections.abc import Callable

from slipway.arith.analyzer import Analyzer
from slipway.codegen.c.expressions import Lane
from slipway.codegen.c.function import CFunction, CModule
from slipway.codegen.gpu.textures import coordinates
from slipway.codegen.gpu.textures import lane as lane_of
from slipway.codegen.legalize import as_ramp
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.instructions.texels import LANES, is_texture
from slipway.ir.visit import walk

IMAGE_HELPER = "image"  # that a kernel uses


class ImageFunction(CFunction):
    """Emits a function whose buffers in scope "global.texture" are images."""

    def __init__(self, module: CModule, name: str) -> None:
        super().__init__(module, name)
        # What a statement has computed, with the lines where it stands.
        self.known: dict[tuple[int, Lane, bool], tuple[str, list[str]]] = {}
        self.branches: list[list[str]] = []  # the lines that a branch's lines stand among

    def image_access(self, buffer: Buffer, body: S.Stmt) -> str:
        """Return what a kernel does with a texture: "read" or "write"."""
        self.helpers.add(IMAGE_HELPER)
        access = {
            "write" if isinstance(node, S.BufferStore) else "read"
            for node in walk(body)
            if isinstance(node, (S.BufferStore, E.BufferLoad)) and node.buffer.data is buffer.data
        }
        if len(access) > 1:
            raise CodegenError(
                f"{self.name}: it reads and writes texture {buffer.name!r}; a kernel does one of "
                "them. Bind the stage that fills it to threads of its own"
            )
        return access.pop()

    @staticmethod
    def reads_texture(node: E.PrimExpr) -> bool:
        """Return whether `node` is an element of a texture, or a vector of them."""
        return isinstance(node, E.BufferLoad) and is_texture(node.buffer.scope)

    def _c_BufferLoad(self, node: E.BufferLoad, lane: Lane) -> str:
        if not self.reads_texture(node):
            return super()._c_BufferLoad(node, lane)
        number = self.number_of_texel(node, lane)
        return f"slw_to_half({number})" if node.buffer.dtype == "float16" else number

    def number_of_texel(self, node: E.BufferLoad, lane: Lane) -> str:
        """Return an element of a texture; the lanes of a vector are of one texel, read once."""
        (index,) = node.indices
        first = _first_number(index)
        if first is not None:
            number = first + lane if isinstance(lane, int) else f"({lane} + {first})"
            return _picked(self._texel(node, None)[0], number)
        texel, position = self._texel(node, lane)
        known = None if index.lanes > 1 else _remainder(index)
        return _picked(texel, lane_of(position) if known is None else known)

    def _texel(self, node: E.BufferLoad, lane: Lane) -> tuple[str, str]:
        """Return the name of a texel, which a statement reads once, and of its index."""
        key = (id(node), f"texel {lane}", self.indexing)
        found = self.known.get(key)
        if found is None or not any(found[1] is lines for lines in (self.lines, *self.branches)):
            (index,) = node.indices
            name, position = self._c_Var(node.buffer.data, None), self._named_position(index, lane)
            texel = self.fresh("texel")
            read = f"read_imagef({name}, slw_texels, {coordinates(position)})"
            self.line(f"const float4 {texel} = {read};")
            found = self.known[key] = f"{texel} {position}", self.lines
        texel, position = found[0].split(" ")
        return texel, position

    def _named_position(self, index: E.PrimExpr, lane: Lane) -> str:
        """Return the name of an index; without a `lane`, of the first of several."""
        ramp = as_ramp(index) if index.lanes > 1 else None
        if ramp is None:
            before, self.indexing = self.indexing, True
            text = self.expr(index, lane)
            self.indexing = before
        else:
            text = self.index(ramp[0]) + (f" + {ramp[1]} * {lane}" if lane is not None else "")
        return self.temporary("int32", text, "position")

    def _lanes(
        self, value: E.PrimExpr, lanes: int, assign: Callable[[int | str, str], str]
    ) -> None:
        """Spell the lanes out where they are of texels, each of which is read once."""
        if not any(isinstance(n, E.BufferLoad) and self.reads_texture(n) for n in walk(value)):
            super()._lanes(value, lanes, assign)
            return
        if isinstance(value, E.Call) and value.op == "if_then_else" and value.args[0].lanes == 1:
            self._either(value, lanes, assign)
            return
        self.line("{")
        self.depth += 1
        for lane in range(lanes):
            self.line(assign(lane, self.expr(value, lane)))
        self.depth -= 1
        self.line("}")

    def _either(self, value: E.Call, lanes: int, assign: Callable[[int | str, str], str]) -> None:
        """Choose between two values once for all lanes; what one side computes is its own."""
        condition, *sides = value.args
        heads, before = (f"if ({self.expr(condition)}) {{", "} else {"), self.known
        for head, side in zip(heads, sides, strict=True):
            self.line(head)
            self.known = dict(before)
            self.depth += 1
            self._lanes(side, lanes, assign)
            self.depth -= 1
        self.known = before
        self.line("}")

    def _store(self, node: S.BufferStore) -> None:
        if not is_texture(node.buffer.scope):
            super()._store(node)
            return
        (position,) = node.indices
        if position.lanes != LANES or _first_number(position) != 0:
            raise CodegenError(
                f"{self.name}: it writes one number of a texel of {node.buffer.name!r} at a time; "
                f"a device writes all {LANES}. Vectorize the last axis of the stage that fills it"
            )
        self.line("{")
        self.depth += 1
        texts = [self.expr(node.value, n) for n in range(LANES)]
        if node.buffer.dtype == "float16":
            texts = [f"slw_from_half({text})" for text in texts]
        name, at = self._c_Var(node.buffer.data, None), self._named_position(position, None)
        self.line(f"write_imagef({name}, {coordinates(at)}, (float4)({', '.join(texts)}));")
        self.depth -= 1
        self.line("}")


def _first_number(index: E.PrimExpr) -> int | None:
    """Return which number of a texel a vector of indices begins with; None: they are of several."""
    ramp = as_ramp(index) if index.lanes > 1 else None
    if ramp is None or ramp[1] != 1:
        return None
    first = _remainder(ramp[0])
    return first if first is not None and first + index.lanes <= LANES else None


def _remainder(index: E.PrimExpr) -> int | None:
    """Return which number of its texel an element is, where that is known."""
    return ops.as_int(Analyzer().simplify(ops.floormod(index, LANES)))


def _picked(texel: str, number: Lane) -> str:
    """Return one of a texel's numbers."""
    return f"{texel}.s{number}" if isinstance(number, int) else f"slw_number({texel}, {number})"
