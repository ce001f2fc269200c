"""Parallel loops: what a task runs is a function of its own, which a pool of threads calls.

A task has its share of a loop's steps, or of a region's parallel loops, which it runs as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway import dtypes
from slipway.codegen.capture import captured, nested_steps
from slipway.ir import expr as E
from slipway.ir import stmt as S

if TYPE_CHECKING:
    from slipway.codegen.llvm.function import FunctionEmitter


def emit_parallel(e: FunctionEmitter, node: S.For) -> None:
    """Outline the loop: ``body(closure, task, tasks)`` runs its share of the steps.

    Of a region it runs everything, and its share of the parallel loops inside.
    """
    e.module.uses_parallel = True
    e.new_statement()
    e.children += 1
    name = f"{e.name}.parallel{e.children}"
    variables = captured(S.SeqStmt((node,)))
    start, extent = e.wide(node.min), e.wide(node.extent)
    nested = nested_steps(node)
    if nested > 1:
        extent = e.w.put(f"mul {e.word} {extent}, {nested}")
    fields = [(e.ty(v.dtype), e.variable(v)) for v in variables]
    fields += [(e.word, start), (e.word, extent)]
    closure = e.w.name()
    e.w.entry.append(f"  {closure} = alloca [{len(fields)} x i64], align 8")
    for number, (ty, operand) in enumerate(fields):
        at = closure
        if number:
            at = e.w.put(f"getelementptr i8, ptr {closure}, {e.word} {8 * number}")
        e.w.do(f"store {ty} {operand}, ptr {at}, align 8")
    needs_workspace = _outline(e, node, name, variables, [ty for ty, _ in fields])
    launch = e.w.put("load ptr, ptr @__slipway_parallel_launch")
    serial = e.w.put(f"icmp eq ptr {launch}, null")
    if needs_workspace:  # the static arena is for one thread
        slot = e.w.put("load ptr, ptr @__slipway_workspace_alloc")
        alone = e.w.put(f"icmp eq ptr {slot}, null")
        serial = e.w.put(f"or i1 {serial}, {alone}")
    here, pool, end = (e.w.label(x) for x in ("here", "pool", "end"))
    e.w.branch_if(serial, here, pool)
    e.w.start(here)
    one = e.w.put(f"call signext i32 @{name}(ptr {closure}, i32 signext 0, i32 signext 1)")
    e.w.branch(end)
    e.w.start(pool)
    many = e.w.put(f"call signext i32 {launch}(ptr @{name}, ptr {closure}, i32 signext 0)")
    e.w.branch(end)
    e.w.start(end)
    status = e.w.put(f"phi i32 [ {one}, %{here} ], [ {many}, %{pool} ]")
    bad, good = e.w.label("bad"), e.w.label("good")
    e.w.branch_if(e.w.put(f"icmp ne i32 {status}, 0"), bad, good)
    e.w.start(bad)
    e.leave(status)
    e.w.start(good)


def share_of(e: FunctionEmitter, extent: E.PrimExpr) -> tuple[str, str]:
    """Return the first of this task's steps out of `extent`, and the one after the last."""
    word, put, steps = e.word, e.w.put, e.wide(extent)
    up = put(f"sub {word} {put(f'add {word} {steps}, %tasks')}, 1")
    each = put(f"udiv {word} {up}, %tasks")
    low = put(f"mul {word} {each}, %task")
    ends = []
    for end in (low, put(f"add {word} {low}, {each}")):
        inside = put(f"icmp slt {word} {end}, {steps}")
        ends.append(put(f"select i1 {inside}, {word} {end}, {word} {steps}"))
    return ends[0], ends[1]


def loop_in_share(e: FunctionEmitter, node: S.For, outer: E.Var, steps: int) -> None:
    """Emit the steps of a nested loop that are in the share, at this step of the outer one."""
    word, put, e.shared_outer = e.word, e.w.put, None
    before = put(f"mul {word} {e.wide(outer)}, {steps}")
    ends = []
    for end, kind, bound in (("%begin", "sgt", 0), ("%end", "slt", steps)):
        here = put(f"sub {word} {end}, {before}")
        inside = put(f"icmp {kind} {word} {here}, {bound}")
        ends.append(put(f"select i1 {inside}, {word} {here}, {word} {bound}"))
    e.loop(node, ends[0], ends[1], False)


def _loop_of_share(e: FunctionEmitter, node: S.For) -> None:
    """Emit steps %begin to %end of a parallel loop, of those of a nested one if it has that."""
    word, put, nested = e.word, e.w.put, nested_steps(node)
    if nested == 1:
        e.loop(node, "%begin", "%end", False)
        return
    up = put(f"add {word} %end, {nested - 1}")
    first, end = (put(f"udiv {word} {x}, {nested}") for x in ("%begin", up))
    e.shared_outer = node.loop_var, nested
    e.loop(node, first, end, False)


def end_of_share(e: FunctionEmitter, extent: E.PrimExpr, dtype: str, which: int) -> str:
    """Return the first of this task's steps (0), or the one after its last (1), as a `dtype`."""
    return _narrow(e, share_of(e, extent)[which], dtype)


def _narrow(e: FunctionEmitter, word: str, dtype: str) -> str:
    """Return an integer of pointer width as one of `dtype`."""
    bits, have = dtypes.bits_of(dtype), e.capability.pointer_bits
    if bits == have:
        return word
    return e.w.put(f"{'trunc' if bits < have else 'sext'} {e.word} {word} to i{bits}")


def _outline(
    e: FunctionEmitter, node: S.For, name: str, variables: list[E.Var], tys: list[str]
) -> bool:
    """Emit the loop as a function over [begin, end), and the task function that calls it.

    A region is a function of (task, tasks).
    """
    inner = e.inner(f"{name}.steps", variables)
    inner.inside_parallel = True
    text = inner.parameters(variables, noalias=True)
    inner.widen_scalars(variables)
    region = node.kind != S.ForKind.PARALLEL
    which = ("task", "tasks") if region else ("begin", "end")
    if region:
        inner.region = inner.shares = True
        inner.stmt(node)
    else:
        _loop_of_share(inner, node)
    signature = ", ".join([*([text] if text else []), *(f"{e.word} %{x}" for x in which)])
    inner.finish(signature)
    word = e.word
    lines = [f"define internal signext i32 @{name}(ptr %closure, i32 signext %task, "
             f"i32 signext %tasks) {e.module.attributes} {{"]  # fmt: skip
    for number, ty in enumerate(tys):
        lines.append(f"  %a{number} = getelementptr i8, ptr %closure, {word} {8 * number}")
        lines.append(f"  %f{number} = load {ty}, ptr %a{number}, align 8")
    first, extent = f"%f{len(tys) - 2}", f"%f{len(tys) - 1}"
    same = word == "i32"
    lines += [
        f"  %n = {'add i32 %tasks, 0' if same else f'zext i32 %tasks to {word}'}",
        f"  %t = {'add i32 %task, 0' if same else f'zext i32 %task to {word}'}",
        f"  %up = add {word} {extent}, %n",
        f"  %up1 = sub {word} %up, 1",
        f"  %share = udiv {word} %up1, %n",
        f"  %low = mul {word} %share, %t",
        f"  %high = add {word} %low, %share",
        f"  %c0 = icmp slt {word} %low, {extent}",
        f"  %low1 = select i1 %c0, {word} %low, {word} {extent}",
        f"  %c1 = icmp slt {word} %high, {extent}",
        f"  %high1 = select i1 %c1, {word} %high, {word} {extent}",
        f"  %begin = add {word} {first}, %low1",
        f"  %end = add {word} {first}, %high1",
    ]
    args = ", ".join(f"{ty} %f{i}" for i, ty in enumerate(tys[:-2]))
    own = ("t", "n") if region else which
    args = ", ".join([*([args] if args else []), *(f"{word} %{x}" for x in own)])
    lines += [f"  %r = call i32 @{inner.name}({args})", "  ret i32 %r", "}\n"]
    e.module.functions.append("\n".join(lines))
    e.took_workspace |= inner.took_workspace
    return inner.took_workspace
