"""Constant bounds of integer expressions, for choosing cheap forms of division."""

from __future__ import annotations

from slipway.ir import expr as E

_WIDE = (-(2**62), 2**62)
Interval = tuple[int, int]


class ValueBounds:
    """Smallest and largest values of expressions, from the loop ranges entered so far."""

    def __init__(self) -> None:
        self.vars: dict[int, Interval] = {}
        self._memo: dict[int, tuple[E.PrimExpr, Interval]] = {}

    def bind(self, var: E.Var, low: E.PrimExpr, extent: E.PrimExpr) -> None:
        """Note that `var` runs over [low, low + extent)."""
        first, size = self.of(low), self.of(extent)
        self._note(var, (first[0], max(first[0], first[1] + size[1] - 1)))

    def bind_value(self, var: E.Var, value: E.PrimExpr) -> None:
        """Note that `var` equals `value`."""
        self._note(var, self.of(value))

    def _note(self, var: E.Var, bounds: Interval) -> None:
        # Copies of a loop or a let share variable and body, and may give it other values.
        if self.vars.get(id(var), bounds) != bounds:
            self._memo = {}
        self.vars[id(var)] = bounds

    def is_nonnegative(self, value: E.PrimExpr) -> bool:
        """Return whether `value` is provably at least zero."""
        return self.of(value)[0] >= 0

    def of(self, value: E.PrimExpr) -> Interval:
        """Return bounds of `value`; huge ones where nothing is known."""
        kind = type(value)
        if kind is E.IntImm:
            return value.value, value.value  # type: ignore[attr-defined]
        if kind is E.Var or kind is E.SizeVar:
            known = self.vars.get(id(value)) or _WIDE
            if kind is not E.SizeVar or known is not _WIDE:
                return known
            high = value.high  # type: ignore[attr-defined]
            return value.low, high if high >= 0 else _WIDE[1]  # type: ignore[attr-defined]
        memo = self._memo.get(id(value))
        if memo is None:
            memo = (value, self._compute(value))
            self._memo[id(value)] = memo
        return memo[1]

    def _compute(self, value: E.PrimExpr) -> Interval:
        match value:
            case E.Add(a, b):
                (al, ah), (bl, bh) = self.of(a), self.of(b)
                return _clip(al + bl, ah + bh)
            case E.Sub(a, b):
                (al, ah), (bl, bh) = self.of(a), self.of(b)
                return _clip(al - bh, ah - bl)
            case E.Mul(a, b):
                (al, ah), (bl, bh) = self.of(a), self.of(b)
                corners = (al * bl, al * bh, ah * bl, ah * bh)
                return _clip(min(corners), max(corners))
            case E.FloorDiv(a, E.IntImm(_, c)) if c > 0:
                low, high = self.of(a)
                return low // c, high // c
            case E.FloorMod(a, E.IntImm(_, c)) if c > 0:
                low, high = self.of(a)
                return (low, high) if low >= 0 and high < c else (0, c - 1)
            case E.Div(a, E.IntImm(_, c)) if c > 0:
                low, high = self.of(a)
                return (low // c, high // c) if low >= 0 else _WIDE
            case E.Mod(a, E.IntImm(_, c)) if c > 0:
                return (0, c - 1) if self.of(a)[0] >= 0 else (1 - c, c - 1)
            case E.Min(a, b):
                (al, ah), (bl, bh) = self.of(a), self.of(b)
                return min(al, bl), min(ah, bh)
            case E.Max(a, b):
                (al, ah), (bl, bh) = self.of(a), self.of(b)
                return max(al, bl), max(ah, bh)
            case E.Select(_, a, b):
                (al, ah), (bl, bh) = self.of(a), self.of(b)
                return min(al, bl), max(ah, bh)
            case E.Broadcast(a, _):
                return self.of(a)
            case E.Ramp(base, stride, lanes):
                (bl, bh), (sl, sh) = self.of(base), self.of(stride)
                return _clip(bl + min(0, sl * (lanes - 1)), bh + max(0, sh * (lanes - 1)))
        return _WIDE


def _clip(low: int, high: int) -> Interval:
    return max(low, _WIDE[0]), min(high, _WIDE[1])
