"""Questions about a function of loops (classic ``tir.analysis``): memory, work, what is legal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

from slipway import dtypes
from slipway.errors import ArgumentTypeError, LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.function import IRModule, PrimFunc
from slipway.ir.node import Node
from slipway.ir.structural import structural_equal
from slipway.ir.verify import verify, verify_faults
from slipway.ir.visit import children, walk
from slipway.target.target import Target


def expr_deep_equal(lhs: E.PrimExpr, rhs: E.PrimExpr) -> bool:
    """Return whether two expressions are the same, of the same variables."""
    return structural_equal(lhs, rhs)


def undefined_vars(node: Node, defs: Sequence[E.Var] | None = None) -> list[E.Var]:
    """Return the variables that a statement or expression uses and does not define, in order."""
    inside = set(defs or ()) | set(_defined(node))
    used = (n for n in walk(node) if isinstance(n, E.Var))
    return list(dict.fromkeys(v for v in used if v not in inside))


def _defined(node: Node) -> Iterator[E.Var]:
    for found in walk(node):
        match found:
            case S.For():
                yield found.loop_var
                if found.thread is not None:
                    yield found.thread.var
            case S.LetStmt() | E.Let():
                yield found.var
            case S.Allocate():
                yield found.buffer.data
            case S.Block():
                yield from (axis.var for axis in found.axes)
            case E.Reduce():
                yield from (axis.var for axis in found.axis)


def verify_ssa(func: PrimFunc) -> bool:
    """Return whether each variable is defined once."""
    threads = {
        n.thread.var for n in walk(func.body) if isinstance(n, S.For) and n.thread is not None
    }
    found = Counter(v for v in (*func.params, *_defined(func.body)) if v not in threads)
    return all(count == 1 for count in found.values())


def verify_well_formed(obj: PrimFunc | IRModule, assert_mode: bool = True) -> bool:
    """Return whether functions are legal; with `assert_mode` raise LoweringError where not."""
    for func in _functions(obj):
        if assert_mode:
            verify(func)
        elif verify_faults(func, "loops"):
            return False
    return True


def _functions(obj: PrimFunc | IRModule) -> list[PrimFunc]:
    if isinstance(obj, PrimFunc):
        return [obj]
    if not isinstance(obj, IRModule):
        raise ArgumentTypeError(
            f"a function of loops or a module is needed here, not a {type(obj).__name__}"
        )
    return [func for _, func in obj.items() if isinstance(func, PrimFunc)]


def _is_thread(node: Node) -> bool:
    return (isinstance(node, S.For) and node.kind == S.ForKind.THREAD) or (
        isinstance(node, S.AttrStmt) and node.key in S.CLASSIC_THREADS
    )


def verify_memory(func: PrimFunc) -> bool:
    """Return whether a function for a GPU touches memory in loops over threads alone.

    For a processor, and without a target, every function does as it should.
    """
    target = func.attr("target") or Target.current(allow_none=True)
    if target is None or target.kind.is_cpu:
        return True
    stack: list[Node] = [func.body]
    while stack:
        node = stack.pop()
        if isinstance(node, E.BufferLoad | S.BufferStore):
            return False
        if not _is_thread(node):
            stack += children(node)
    return True


_LIMITS = (
    "max_local_memory_per_block", "max_shared_memory_per_block", "max_threads_per_block",
    "max_thread_x", "max_thread_y", "max_thread_z", "max_vthread", "max_vector_bytes",
    "max_kernels",
)  # fmt: skip


def verify_gpu_code(func: PrimFunc, constraints: Mapping[str, int]) -> bool:
    """Return whether the kernels of a function keep to limits, such as max_threads_per_block."""
    for name in constraints:
        if name not in _LIMITS:
            raise LoweringError(
                f"verify_gpu_code knows no limit {name!r}; the limits are {', '.join(_LIMITS)}"
            )
    kernels = list(_kernels(func.body))
    measured = [_measured(kernel) for kernel in kernels]
    measured.append({"max_kernels": len(kernels)})
    return all(
        one.get(name, 0) <= int(limit) for one in measured for name, limit in constraints.items()
    )


def _kernels(node: Node) -> Iterator[Node]:
    if _is_thread(node):
        yield node
        return
    for child in children(node):
        yield from _kernels(child)


def _measured(kernel: Node) -> dict[str, int]:
    """Return what a kernel has of each thing that is limited."""
    threads: dict[str, int] = {}
    memory: Counter[str] = Counter()
    widest = 0
    for node in walk(kernel):
        if isinstance(node, S.For) and node.thread is not None:
            tag = node.thread.thread_tag
            threads[tag] = max(threads.get(tag, 1), ops.as_int(node.extent) or 1)
        elif isinstance(node, S.AttrStmt) and node.key in S.CLASSIC_THREADS:
            tag = node.node.thread_tag
            threads[tag] = max(threads.get(tag, 1), ops.as_int(node.value) or 1)
        elif isinstance(node, S.Allocate):
            memory[node.buffer.scope or "global"] += _bytes_of(node.buffer)
        elif isinstance(node, E.BufferLoad | S.BufferStore):
            dtype = node.dtype if isinstance(node, E.BufferLoad) else node.value.dtype
            widest = max(widest, dtypes.bytes_of(dtype) * dtypes.lanes_of(dtype))
    own = {tag: n for tag, n in threads.items() if tag.startswith("threadIdx")}
    found = {f"max_thread_{tag[-1]}": n for tag, n in own.items()}
    virtual = [n for tag, n in threads.items() if "vthread" in tag or tag.startswith("cthread")]
    return found | {
        "max_threads_per_block": prod(own.values()),
        "max_vthread": prod(virtual),
        "max_local_memory_per_block": memory["local"],
        "max_shared_memory_per_block": memory["shared"],
        "max_vector_bytes": widest,
    }


def _bytes_of(buffer: Buffer, alignment: int = 1) -> int:
    shape = buffer.constant_shape()
    if shape is None:
        raise LoweringError(f"the size of buffer {buffer.name!r} is known when it runs alone")
    element = dtypes.bytes_of(buffer.dtype) * dtypes.lanes_of(buffer.dtype)
    return -(-prod(shape) * element // alignment) * alignment


def calculate_workspace_bytes(func: PrimFunc, workspace_byte_alignment: int) -> int:
    """Return the most memory that is allocated at once, each buffer rounded up to the alignment."""

    def most(node: Node) -> int:
        below = max(map(most, children(node)), default=0)
        if isinstance(node, S.Allocate):
            return below + _bytes_of(node.buffer, workspace_byte_alignment)
        return below

    return most(func.body)


def calculate_constant_bytes(func: PrimFunc, constant_byte_alignment: int) -> int:
    """Return 0: constants are arguments of a function here, and lie in a model's parameters."""
    del func, constant_byte_alignment
    return 0


def calculate_allocated_bytes(
    func_or_mod: PrimFunc | IRModule,
) -> dict[str, int] | dict[str, dict[str, int]]:
    """Return the most memory allocated at once, by scope; of a module, by function."""
    if isinstance(func_or_mod, IRModule):
        return {
            name: _by_scope(func.body)
            for name, func in func_or_mod.items() if isinstance(func, PrimFunc)
        }  # fmt: skip
    return _by_scope(func_or_mod.body)


def _by_scope(node: Node) -> dict[str, int]:
    found: dict[str, int] = {}
    for child in children(node):
        for scope, size in _by_scope(child).items():
            found[scope] = max(found.get(scope, 0), size)
    if isinstance(node, S.Allocate):
        scope = node.buffer.scope or "global"
        found[scope] = found.get(scope, 0) + _bytes_of(node.buffer)
    return found


_COUNTED = (E.BinaryOp, E.CmpOp, E.Not, E.Cast, E.Call)


def estimate_tir_flops(stmt_or_mod: S.Stmt | PrimFunc | IRModule) -> float:
    """Return how many operations a program has, those of indices and conditions not counted.

    Of two branches the one with more counts; the attribute "estimated_flops" counts instead.
    """
    if isinstance(stmt_or_mod, S.Stmt):
        return float(_work(stmt_or_mod))
    total = 0.0
    for func in _functions(stmt_or_mod):
        own = func.attr("estimated_flops")
        total += float(_work(func.body) if own is None else own)
    return total


def _work(node: Node | None) -> int:
    match node:
        case None | E.BufferLoad():
            return 0
        case S.For():
            steps = ops.as_int(node.extent)
            if steps is None:
                raise LoweringError(
                    f"loop {node.loop_var.name!r} runs {node.extent} steps, which is no number: "
                    'say what a function computes with the attribute "estimated_flops"'
                )
            return steps * _work(node.body)
        case S.IfThenElse():
            return max(_work(node.then_case), _work(node.else_case))
        case S.Block():
            return _work(node.body)
        case S.BufferStore():
            return _work(node.value)
        case E.Select():
            return max(_work(node.true_value), _work(node.false_value))
        case E.Call(op="if_then_else"):
            return max(_work(node.args[1]), _work(node.args[2]))
        case E.Cast():
            return _work(node.value)
        case _:
            return isinstance(node, _COUNTED) + sum(map(_work, children(node)))


def find_anchor_block(mod: PrimFunc | IRModule) -> S.Block | None:
    """Return the block that reduces and has the most work; None where no block reduces."""
    found: list[tuple[int, int, S.Block]] = []

    def visit(node: Node, steps: int) -> None:
        if isinstance(node, S.For):
            steps *= ops.as_int(node.extent) or 1
        if isinstance(node, S.Block) and node.init is not None:
            found.append((steps * max(_work(node.body), 1), -len(found), node))
        for child in children(node):
            visit(child, steps)

    for func in _functions(mod):
        visit(func.body, 1)
    first: Callable[[Any], Any] = lambda one: one[:2]  # noqa: E731
    return max(found, key=first)[2] if found else None
