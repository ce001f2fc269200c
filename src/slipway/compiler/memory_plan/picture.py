"""A plan for people: an SVG of offset over time, and the table behind it."""

from __future__ import annotations

from html import escape

from slipway.compiler.memory_plan.block import Plan

_WIDTH, _HEIGHT, _LEFT, _TOP = 900, 420, 90, 34
_COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#b6992d", "#499894", "#e15759", "#79706e", "#d37295")


def plan_table(result: Plan) -> str:
    """Return one line per block, highest pool offset last: pool, offset, size, life, name."""
    rows = sorted(
        range(len(result.blocks)),
        key=lambda i: (result.pool_index(i), result.offsets[i], result.blocks[i].first),
    )
    lines = [f"{'pool':<12} {'offset':>9} {'bytes':>9} {'steps':>11}  tensor"]
    for index in rows:
        block = result.blocks[index]
        life = f"{block.first}..{block.last}"
        pool = result.pools[result.pool_index(index)].name
        lines.append(
            f"{pool:<12} {result.offsets[index]:>9} {block.size_bytes:>9} {life:>11}  {block.name}"
        )
    lines.append(summary(result))
    return "\n".join(lines)


def summary(result: Plan) -> str:
    """Return the one sentence: size, algorithm, bound."""
    over = result.size_bytes - result.lower_bound_bytes
    if over == 0:
        verdict = "equal to the lower bound"
    elif result.proven:
        verdict = f"proven smallest, {over} B above the lower bound"
    else:
        verdict = f"{over} B above the lower bound, not proven smallest"
    return f"{result.size_bytes} B by {result.algorithm}, {verdict}"


def plan_svg(result: Plan, title: str = "") -> str:
    """Return an SVG: one rectangle per block, steps to the right, pool offsets upwards."""
    first = min((b.first for b in result.blocks), default=0)
    steps = max((b.last for b in result.blocks), default=0) + 1 - first
    heading = escape(f"{title}: {summary(result)}" if title else summary(result))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" '
        f'height="{_TOP + (_HEIGHT + 40) * len(result.pools)}" font-family="sans-serif">',
        f'<text x="8" y="20" font-size="14">{heading}</text>',
    ]
    for pool in range(len(result.pools)):
        parts += _pool_svg(result, pool, first, steps, _TOP + (_HEIGHT + 40) * pool)
    return "\n".join([*parts, "</svg>", ""])


def _pool_svg(result: Plan, pool: int, first: int, steps: int, top: int) -> list[str]:
    size = result.pool_bytes(pool)
    across = (_WIDTH - _LEFT - 10) / max(1, steps)
    up = _HEIGHT / max(1, size)
    parts = [
        f'<text x="8" y="{top + 12}" font-size="11">{escape(result.pools[pool].name)}</text>',
        f'<text x="8" y="{top + 26}" font-size="11">{size} B</text>',
        f'<text x="8" y="{top + _HEIGHT}" font-size="11">0</text>',
    ]
    for index, (block, offset) in enumerate(zip(result.blocks, result.offsets, strict=True)):
        if result.pool_index(index) != pool:
            continue
        x, width = _LEFT + (block.first - first) * across, (block.last - block.first + 1) * across
        height = block.size_bytes * up
        y = top + _HEIGHT - offset * up - height
        label = f"{block.name}: {block.size_bytes} B at {offset}, steps {block.first}..{block.last}"
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="{_COLOURS[index % len(_COLOURS)]}" fill-opacity="0.8" stroke="#222" '
            f'stroke-width="0.5"><title>{escape(label)}</title></rect>'
        )
    for tick in range(0, steps, max(1, steps // 10)):
        parts.append(
            f'<text x="{_LEFT + tick * across:.1f}" y="{top + _HEIGHT + 14}" font-size="10">'
            f"{first + tick}</text>"
        )
    return parts
