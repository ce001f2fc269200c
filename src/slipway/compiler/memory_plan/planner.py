"""`plan`: choose an algorithm, place the blocks, and say how far the result is from the bound."""

from __future__ import annotations

from collections.abc import Sequence

from slipway.compiler.memory_plan import heuristics, optimal
from slipway.compiler.memory_plan.block import Block, Plan, Pool, Share, lower_bound
from slipway.compiler.memory_plan.place import Placement
from slipway.errors import ArgumentValueError, LoweringError, did_you_mean

ALGORITHMS = ("greedy_by_size", "greedy_by_conflicts", "linear_scan", "hill_climb", "optimal")
_BEST_WORK = 100_000  # what "best" spends on the exact search; "optimal" spends optimal.WORK

_ORDERS = {
    "greedy_by_size": heuristics.greedy_by_size,
    "greedy_by_conflicts": heuristics.greedy_by_conflicts,
    "linear_scan": heuristics.linear_scan,
}


def plan(
    blocks: Sequence[Block],
    algorithm: str = "best",
    *,
    shares: Sequence[Share] = (),
    pools: Sequence[Pool] = (Pool("workspace"),),
    time_budget_s: float | None = None,
) -> Plan:
    """Place `blocks` in one arena, or in several pools.

    `algorithm` is one of `ALGORITHMS`, or "best", which runs them all until one reaches
    the lower bound; ties go to the first.  `shares` lists outputs that may take over dying inputs.
    The same arguments give the same plan, unless `time_budget_s` cuts the exact search short.

    Raises ValueError for an unknown algorithm or pool, and LoweringError when the blocks do not
    fit into the pools; the message lists the blocks alive at the fullest step.
    """
    if algorithm != "best" and algorithm not in ALGORITHMS:
        known = ["best", *ALGORITHMS]
        raise ArgumentValueError(
            f"no memory planner is called {algorithm!r}; there are {', '.join(known)}."
            + did_you_mean(algorithm, known)
        )
    _check_pools(blocks, pools)
    layout = Placement(blocks, shares, pools)
    bound = lower_bound(blocks, shares)
    best: Plan | None = None
    for name in ALGORITHMS if algorithm == "best" else (algorithm,):
        if name == "optimal":
            budget = optimal.WORK if algorithm == "optimal" else _BEST_WORK
            found = _exact(layout, shares, bound, best, budget, time_budget_s)
        else:
            found = _by_order(layout, shares, bound, name)
        if found is not None and (
            best is None or found.size_bytes < best.size_bytes or found.proven > best.proven
        ):
            best = found
        if best is not None and best.size_bytes == bound:
            break
    if best is None:
        raise LoweringError(_does_not_fit(blocks, pools))
    return best


def _by_order(layout: Placement, shares: Sequence[Share], bound: int, name: str) -> Plan | None:
    if name == "hill_climb":
        orders = [heuristics.hill_climb(layout, bound)]
    else:
        order = _ORDERS[name](layout)
        moved = heuristics.outputs_first(layout, order)
        orders = [order] if moved == order else [order, moved]
    placed = [found for o in orders if (found := layout.place(o)) is not None]
    if not placed:
        return None
    offsets, pool_of = min(placed, key=lambda found: sum(layout.peak(*found)))
    size = sum(layout.peak(offsets, pool_of))
    single = len(layout.pools) == 1
    return Plan(
        tuple(layout.blocks),
        tuple(offsets),
        size,
        bound,
        name,
        tuple(shares),
        tuple(layout.pools),
        () if single else tuple(pool_of),
        single and size == bound,
    )


def _exact(
    layout: Placement,
    shares: Sequence[Share],
    bound: int,
    known: Plan | None,
    work: int,
    time_budget_s: float | None,
) -> Plan | None:
    """Lower the best known plan until the search proves that nothing is below it.

    With several pools the search does not apply, and the best heuristic is returned unproven.
    """
    best = known or _by_order(layout, shares, bound, "hill_climb")
    if len(layout.pools) > 1:
        return best
    if best is None:  # the pool is too small for every order, but perhaps not for every plan
        unlimited = Placement(layout.blocks, shares, (Pool(layout.pools[0].name),))
        best = _by_order(unlimited, shares, bound, "hill_climb")
        assert best is not None
    size, offsets, proven = best.size_bytes, best.offsets, best.size_bytes == bound
    exact_shares = any(share.exact for share in shares)
    while not proven:
        result = optimal.search_below(layout.blocks, shares, size - 1, work, time_budget_s)
        work -= result.work
        if result.offsets is None:
            proven = result.complete and not exact_shares
            break
        offsets = tuple(result.offsets)
        size = max(o + b.size_bytes for o, b in zip(offsets, layout.blocks, strict=True))
        proven = size == bound
    limit = layout.pools[0].size_bytes
    if limit is not None and size > limit:
        return None
    name = "optimal" if known is None or size < known.size_bytes else known.algorithm
    return Plan(
        best.blocks, offsets, size, bound, name, best.shares, tuple(layout.pools), (), proven
    )


def _check_pools(blocks: Sequence[Block], pools: Sequence[Pool]) -> None:
    names = [pool.name for pool in pools]
    for block in blocks:
        for name in block.pools:
            if name not in names:
                raise ArgumentValueError(
                    f"{block.name} asks for the memory pool {name!r}; there are "
                    f"{', '.join(names)}." + did_you_mean(name, names)
                )


def _does_not_fit(blocks: Sequence[Block], pools: Sequence[Pool]) -> str:
    """Say which pools are too small for what, by the fullest step."""

    def alive(step: int) -> list[Block]:
        return [b for b in blocks if b.first <= step <= b.last]

    step = max({b.first for b in blocks}, key=lambda s: (sum(b.size_bytes for b in alive(s)), -s))
    there = sorted(alive(step), key=lambda b: -b.size_bytes)
    have = ", ".join(f"{p.name} {p.size_bytes} B" for p in pools if p.size_bytes is not None)
    most = ", ".join(f"{b.name} {b.size_bytes} B" for b in there[:5])
    return (
        f"the tensors need {sum(b.size_bytes for b in there)} B at step {step} and do not fit "
        f"into the memory pools ({have}). The largest there: {most}. "
        "Give a larger pool, a further pool, or a model with smaller tensors at that place."
    )
