"""A function whose loops are kernels, in two: the kernels' text, and a host that launches them.

The host function has the parameters of the whole.  It asks for what its kernels hand to each other,
and calls ``slipway.device.launch`` for each of them (crt/posix/devices/device_code.c).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from slipway import dtypes
from slipway.backends.gpu.languages import WRITERS, Writer
from slipway.backends.gpu.limits import SHARED_BYTES, check_limits
from slipway.backends.gpu.lowering.threads import is_thread_loop
from slipway.codegen.gpu.kernel import DeviceKernel
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.function import PrimFunc
from slipway.ir.instructions.texels import is_texture, sides
from slipway.ir.visit import children, map_children, walk
from slipway.target import Target


@dataclass(frozen=True)
class DeviceProgram:
    """The kernels of a library.

    `code` is what the driver takes, by whose SHA-256, `digest`, it is known; `sources` has the
    kernels as texts by format, `by_loop` each kernel by the id of the loops it was made of.
    """

    code: bytes
    sources: Mapping[str, str]
    by_loop: Mapping[int, DeviceKernel]

    @property
    def kernels(self) -> tuple[DeviceKernel, ...]:
        """All kernels."""
        return tuple(self.by_loop.values())

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of `code`, in hexadecimal."""
        return hashlib.sha256(self.code).hexdigest()


def emit_kernels(functions: Mapping[str, PrimFunc], target: Target, compiler: str) -> DeviceProgram:
    """Return the kernels of `functions`, checked against the target's limits."""
    writer = WRITERS[target.kind.name](target)
    by_loop = write_kernels(functions, target, writer)
    written = writer.written(compiler)
    return DeviceProgram(written.code, written.sources, by_loop)


def write_kernels(
    functions: Mapping[str, PrimFunc], target: Target, writer: Writer
) -> dict[int, DeviceKernel]:
    """Add the kernels of `functions` to a writer; return each by the id of its loops."""
    by_loop: dict[int, DeviceKernel] = {}
    for name, func in functions.items():
        noalias = bool(func.attr("noalias", True))
        for number, root in enumerate(_roots(func.body)):
            kernel = writer.kernel(f"{name}_kernel{number}", root, noalias)
            check_limits(kernel, target)
            by_loop[id(root)] = kernel
    return by_loop


def _roots(node: S.Stmt) -> list[S.For]:
    """Return the outermost thread loops in order, without those that nothing was left of."""
    if is_thread_loop(node):
        return [node] if _acts(node) else []  # type: ignore[list-item]
    parts: list[Any] = [n for n in children(node) if isinstance(n, S.Stmt)]
    return [root for part in parts for root in _roots(part)]


def _acts(root: S.Stmt) -> bool:
    """Return whether a kernel has an effect; one without has no arguments either."""
    return any(
        isinstance(n, S.BufferStore) or (isinstance(n, S.Evaluate) and isinstance(n.value, E.Call))
        for n in walk(root)
    )


def host_function(
    func: PrimFunc, digest: str, by_loop: Mapping[int, DeviceKernel], target: Target
) -> PrimFunc:
    """Return `func` with launches in place of its kernels."""
    body = _Host(func, digest, by_loop, target).visit(func.body)
    made: PrimFunc = func.replace(body=body).with_attr("device_type", target.kind.device_type)
    return made


class _Host:
    def __init__(
        self, func: PrimFunc, digest: str, by_loop: Mapping[int, DeviceKernel], target: Target
    ) -> None:
        self.func = func
        self.digest = digest
        self.by_loop = by_loop
        self.kind = ops.const(target.kind.device_type)
        self.surely_shared = SHARED_BYTES.get(target.kind.name, 0)
        self.workspaces: dict[int, E.Var] = {}  # memory between kernels, by data Var

    def visit(self, node: Any) -> Any:
        if not isinstance(node, S.Stmt):
            return node
        if is_thread_loop(node):
            kernel = self.by_loop.get(id(node))
            return S.NOP if kernel is None else self._launch(kernel)
        if isinstance(node, S.Allocate):
            return self._workspace(node)
        self._refuse_loads(node)
        return map_children(node, self.visit)

    def _refuse_loads(self, node: S.Stmt) -> None:
        for inner in children(node):
            if isinstance(inner, E.PrimExpr):
                for part in walk(inner):
                    if isinstance(part, E.BufferLoad):
                        raise CodegenError(
                            f"{self.func.name}: {part.buffer.name!r} lies on the device, and what "
                            "decides which kernels run reads it. Put that into the kernel"
                        )

    def _launch(self, kernel: DeviceKernel) -> S.Stmt:
        signature = kernel.signature
        args: list[E.PrimExpr] = [self.workspaces.get(id(var), var) for var in kernel.params]
        given = kernel.dynamic_bytes
        if given is not None:
            signature += "s"
            args.append(ops.cast(given, "int64"))
        unknown = given is not None and ops.as_int(given) is None
        if unknown or kernel.known_shared_bytes > self.surely_shared:  # the device is asked first
            signature += f":{kernel.shared_bytes}"
        texts = (self.digest, kernel.name, signature)
        grid = [ops.cast(extent, "int64") for extent in kernel.grid()]
        return _call("launch", self.kind, *map(E.StringImm, texts), *grid, *args)

    def _workspace(self, node: S.Allocate) -> S.Stmt:
        buffer = node.buffer
        size: E.PrimExpr = ops.const(dtypes.bytes_of(buffer.dtype), "int64")
        for extent in buffer.shape:
            size = E.Mul(size, ops.cast(extent, "int64"))
        handles = [b.data for _, b in self.func.buffer_map]
        like: E.PrimExpr = handles[0] if handles else ops.const(0, "int64")
        address = E.Var(buffer.name, "int64")
        self.workspaces[id(buffer.data)] = address
        allocated = _packed("alloc", self.kind, like, size, dtype="int64")
        if is_texture(buffer.scope):
            bits = dtypes.bits_of(buffer.dtype)
            wanted = [ops.const(n, "int64") for n in (*sides(buffer), bits)]
            allocated = _packed("alloc_image", self.kind, like, *wanted, dtype="int64")
        freed = _call("free", self.kind, address)
        return S.LetStmt(address, allocated, S.seq((self.visit(node.body), freed)))


def _packed(name: str, *args: E.PrimExpr, dtype: str = "int32") -> E.PrimExpr:
    return E.Call(dtype, "call_packed", (E.StringImm(f"slipway.device.{name}"), *args))


def _call(name: str, *args: E.PrimExpr) -> S.Stmt:
    return S.Evaluate(_packed(name, *args))
