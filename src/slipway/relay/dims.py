"""Dimensions whose size is known only when the model runs.

`Any` (written ``?``) is one of which nothing is known; there is one object of it, and whoever
computes with it is told so.  A `SymbolDim` has a formula of named variables, each with its range:
``Dim("n", 1, 8)`` is the variable n, ``Dim("n", 1, 8) * 2 + 1`` a dimension of 3 to 17 elements.
Type rules compute with it as with a number.  What they ask of it (``n + 2 < 3``) is answered where
the ranges prove it, and is a TypeInferenceError that names both sides where they do not.

Two formulas that `arith` proves equal are one object, so that dimensions compare as numbers do.
"""

from __future__ import annotations

import bisect
import math
import operator
import threading
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple, NoReturn
from weakref import WeakValueDictionary

from slipway import dtypes
from slipway.arith.analyzer import Analyzer
from slipway.arith.linear import INF
from slipway.errors import LoweringError, TypeInferenceError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.expr import PrimExpr, SizeVar, Var
from slipway.ir.node import INTEGER_LIKE
from slipway.ir.visit import substitute, walk

MAX_EXTENT = 1 << 47  # elements along one axis, and of one tensor


class KnownDim(int):
    """A size that is known: an int, with what classic scripts read from a constant dimension."""

    __slots__ = ()

    @property
    def value(self) -> int:
        """The number."""
        return int(self)

    @property
    def dtype(self) -> str:
        """The type of the number as a constant of the loop language."""
        return "int32" if self < 1 << 31 else "int64"

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)  # a pickle needs no class of ours


class OpenDim:
    """A dimension whose size is known only when the model runs; there is one object of it.

    It equals itself and nothing else.  Computing with it raises TypeInferenceError: whoever needs
    the number cannot have the dimension open.
    """

    __slots__ = ("__weakref__",)
    _only: ClassVar[OpenDim | None] = None

    def __new__(cls) -> OpenDim:
        """Return the one object."""
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __str__(self) -> str:
        return "?"

    def __repr__(self) -> str:
        return "Any()"

    @property
    def record(self) -> tuple[Any, ...]:
        """What the dimension is made of, for JSON and pickle."""
        return ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.record

    def _unknown(self, *other: Any) -> NoReturn:
        raise TypeInferenceError(
            "the size of an open dimension is needed here: give the input a fixed shape"
        )

    __int__ = __index__ = __float__ = __neg__ = _unknown
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _unknown
    __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = _unknown
    __mod__ = __rmod__ = __pow__ = __rpow__ = __divmod__ = __rdivmod__ = _unknown
    __lt__ = __le__ = __gt__ = __ge__ = _unknown


def _operation(make: Callable[[Any, Any], Any], swapped: bool = False) -> Any:
    made = lru_cache(4096)(partial(_formula_made, make, swapped))  # types ask the same many times

    def compute(self: SymbolDim, other: Any) -> Any:
        if not isinstance(other, int | SymbolDim):
            return self._unknown() if isinstance(other, float | OpenDim) else NotImplemented
        if make in (ops.floordiv, ops.floormod):
            divisor, whole = (self, other) if swapped else (other, self)
            times = _times(whole, divisor)
            if times is not None:
                return times if make is ops.floordiv else 0
            if not isinstance(divisor, int) or divisor < 1:
                self._unknown()
        if make is ops.floordiv and not swapped and _is_below_zero(self.formula):
            return 0 - (0 - self + other - 1) // other  # -(-n // c), so that it is one with others
        if isinstance(other, int) and _is_beyond(self.formula, other):
            if not swapped and make in (ops.floordiv, ops.floormod) and self.low >= 0:
                return self if make is ops.floormod else 0
            raise TypeInferenceError(
                f"{other} beside the open dimension {self}: sizes that are open are counted with "
                f"{self.formula.dtype}"
            )
        return made(self, other)

    return compute


def _times(whole: Any, part: Any) -> int | None:
    """Return how many times a formula above 0 another one is; None where it is no number."""
    if not (isinstance(whole, SymbolDim) and isinstance(part, SymbolDim) and part.low > 0):
        return None
    an = Analyzer()
    all_of_it, once = an.linear(whole.formula), an.linear(part.formula)
    atom, count = next(iter(once.terms.items()))
    times, left = divmod(all_of_it.terms.get(atom, 0), count)
    if left or not times:
        return None
    rest = all_of_it.plus(once, -times)
    return times if rest.is_const and not rest.const else None


def _formula_made(
    make: Callable[[Any, Any], Any], swapped: bool, dim: SymbolDim, other: Any
) -> Any:
    mine, given = dim.formula, ops.as_expr(other, dim.formula.dtype)
    return dim_of(make(given, mine) if swapped else make(mine, given))


def _is_beyond(formula: PrimExpr, value: int) -> bool:
    """Return whether a number is none of the type that a dimension is counted with."""
    low, high = dtypes.int_range(formula.dtype)
    return not low <= value <= high


def _is_below_zero(formula: PrimExpr) -> bool:
    return all(times < 0 for times in Analyzer().linear(formula).terms.values())


def _comparison(kind: type, word: str) -> Any:
    def decide(self: SymbolDim, other: Any) -> Any:
        if isinstance(other, float):
            other = _bound(kind, other)
        if not isinstance(other, int | SymbolDim):
            return self._unknown() if isinstance(other, OpenDim) else NotImplemented
        if isinstance(other, int) and _is_beyond(self.formula, other):
            return kind in ((E.LT, E.LE) if other > 0 else (E.GT, E.GE))
        an = Analyzer()
        given = ops.as_expr(other, self.formula.dtype)
        difference = an.recombine(an.linear(self.formula).minus(an.linear(given)))
        found = an.decide(kind, difference)
        if found is None:
            both = described([self, other])
            raise TypeInferenceError(
                f"it is not known whether {self} {word} {other}, with {both}"
                f"{_turning_point(kind, self, other)}: give the dimension a range in which it "
                "always is, or never, or a fixed size"
            )
        return found

    return decide


def _turning_point(kind: type[PrimExpr], left: SymbolDim, right: Extent) -> str:
    """Return from which size on a comparison of one variable is what it is at the upper end."""
    variables = {v for d in (left, right) if isinstance(d, SymbolDim) for v in d.variables}
    if len(variables) != 1 or (high := SymbolDim(*variables).high) is None:
        return ""
    (variable,) = variables

    def holds(size: int) -> bool:
        ends = [ops.const(at(d, {variable: size}), left.formula.dtype) for d in (left, right)]
        return bool(int(Analyzer().simplify(kind(*ends))))

    low = SymbolDim(variable).low
    at_low, at_high = holds(low), holds(high)
    if at_low == at_high:
        return ""
    first = bisect.bisect_left(range(high), True, low, key=lambda size: holds(size) == at_high)
    words = ("it is", "it is not") if at_low else ("it is not", "it is")
    return f" ({words[0]} at {variable.name} = {low}, {words[1]} from {first} on)"


def _bound(kind: type, other: float) -> int:
    """Return the integer that a number of elements compares with as it does with `other`."""
    return math.ceil(other) if kind in (E.LT, E.GE) else math.floor(other)


class SymbolDim(OpenDim):
    """An open dimension with a formula of variables; equal formulas are one object."""

    __slots__ = ("formula", "high", "low")
    formula: PrimExpr
    low: int  # the range, inclusive; `high` is None where nothing bounds it
    high: int | None
    _of_variables: ClassVar[WeakValueDictionary[Var, SymbolDim]] = WeakValueDictionary()

    def __new__(cls, formula: PrimExpr) -> SymbolDim:
        """Return the object of a variable, or of a formula that is in its canonical form."""
        if not isinstance(formula, Var):
            return _of_formula(formula)
        found = cls._of_variables.get(formula)
        if found is None:
            found = cls._of_variables[formula] = cls._made(formula)
        return found

    @classmethod
    def _made(cls, formula: PrimExpr) -> SymbolDim:
        made = object.__new__(cls)
        low, high = Analyzer().bounds(formula)
        made.formula = formula
        made.low = max(0, int(low)) if low > -INF else 0
        made.high = None if high == INF else int(high)
        return made

    @property
    def variables(self) -> tuple[Var, ...]:
        """The variables of the formula, each once."""
        return tuple(dict.fromkeys(n for n in walk(self.formula) if isinstance(n, Var)))

    def as_prim_expr(self) -> PrimExpr:
        """Return the formula, as te takes it for an extent."""
        return self.formula

    def __str__(self) -> str:
        return str(self.formula)

    __repr__ = __str__

    @property
    def record(self) -> tuple[Any, ...]:
        """What the dimension is made of: its formula."""
        return (self.formula,)

    def _unknown(self, *other: Any) -> NoReturn:
        raise TypeInferenceError(
            f"the size of the open dimension {self} is needed here, with {described([self])}: give "
            "the input a fixed shape"
        )

    __int__ = __index__ = __float__ = __round__ = _unknown
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __divmod__ = __rdivmod__ = _unknown

    def __neg__(self) -> Any:
        return 0 - self

    __add__, __radd__ = _operation(ops.add), _operation(ops.add, swapped=True)
    __sub__, __rsub__ = _operation(ops.sub), _operation(ops.sub, swapped=True)
    __mul__, __rmul__ = _operation(ops.mul), _operation(ops.mul, swapped=True)
    __floordiv__, __rfloordiv__ = _operation(ops.floordiv), _operation(ops.floordiv, swapped=True)
    __mod__, __rmod__ = _operation(ops.floormod), _operation(ops.floormod, swapped=True)
    __lt__, __le__ = _comparison(E.LT, "<"), _comparison(E.LE, "<=")
    __gt__, __ge__ = _comparison(E.GT, ">"), _comparison(E.GE, ">=")


INTEGER_LIKE.update({"relay.Any": OpenDim, "relay.Dim": SymbolDim})
ANY: Any = OpenDim()  # where dimensions are ints, it is one of them


def is_open(extent: object) -> bool:
    """Return whether a dimension is known only when the model runs."""
    return isinstance(extent, OpenDim)


Extent = int | OpenDim


def dim_of(formula: PrimExpr) -> Any:
    """Return the dimension of a formula: an int where it has no variables left."""
    an = Analyzer()
    # Atoms are numbered as they are first seen, and terms stand in the order of their numbers.
    found = {n for n in walk(formula) if isinstance(n, Var)}
    for variable in sorted(found, key=lambda v: (v.name, id(v))):
        an.linear(variable)
    simple = an.to_expr(an.recombine(an.linear(formula)))
    return simple.value if isinstance(simple, E.IntImm) else SymbolDim(simple)


def padding_of(formula: PrimExpr) -> PrimExpr:
    """Return -x mod c, which pads x to a multiple of c, as c * ceil(x / c) - x.

    So a size that was padded is seen to be a multiple.  Other formulas are returned as they are.
    """
    found = getattr(dim_of(formula), "formula", formula)
    if not (isinstance(found, E.FloorMod) and isinstance(found.b, E.IntImm)):
        return formula
    an = Analyzer()
    if not _is_below_zero(found.a):
        return formula
    divisor, size = found.b, an.to_expr(an.linear(ops.sub(ops.const(0, found.dtype), found.a)))
    multiples = ops.floordiv(ops.add(size, ops.sub(divisor, ops.const(1, found.dtype))), divisor)
    return ops.sub(ops.mul(multiples, divisor), size)


def smaller(a: Any, b: Any) -> Any:
    """Return the smaller of two dimensions, as a formula where ranges do not tell which it is."""
    if not isinstance(a, SymbolDim) and not isinstance(b, SymbolDim):
        return min(a, b)
    if (bound := _beyond_one(a, b)) is not None:
        return bound[1] if bound[0] > 0 else bound[0]
    formulas = (ops.as_expr(getattr(d, "formula", d), "int32") for d in (a, b))
    return dim_of(ops.minimum(*formulas))


def larger(a: Any, b: Any) -> Any:
    """Return the larger of two dimensions, as a formula where ranges do not tell which it is."""
    if not isinstance(a, SymbolDim) and not isinstance(b, SymbolDim):
        return max(a, b)
    if (bound := _beyond_one(a, b)) is not None:
        return bound[0] if bound[0] > 0 else bound[1]
    formulas = (ops.as_expr(getattr(d, "formula", d), "int32") for d in (a, b))
    return dim_of(ops.maximum(*formulas))


def _beyond_one(a: Any, b: Any) -> tuple[int, Any] | None:
    """Return a number that no dimension reaches and the dimension beside it; None without one."""
    number, dim = (a, b) if isinstance(a, int) else (b, a)
    is_beyond = isinstance(number, int) and _is_beyond(dim.formula, number)
    return (number, dim) if is_beyond else None


def factors(extent: Extent) -> list[Any]:
    """Return dimensions whose product is `extent`: those that its formula is a product of."""
    if not isinstance(extent, SymbolDim):
        return [extent]
    found, rest = [], [extent.formula]
    while rest:
        part = rest.pop()
        if isinstance(part, E.Mul):
            rest += (part.a, part.b)
        else:
            found.append(dim_of(part))
    return found


def size_of(value: Any) -> Any:
    """Return an extent of te as a number, or where it holds variables as the dimension it is.

    Raises LoweringError for one that depends on data.
    """
    if isinstance(value, SymbolDim):
        return value
    number = ops.as_int(value)
    if number is not None:
        return number
    if all(isinstance(n, _OF_SIZES) for n in walk(value)):
        return dim_of(value)
    raise LoweringError(f"this needs a shape that does not depend on data, got {value}")


_OF_SIZES = (E.Var, E.IntImm, E.BinaryOp, E.Cast)  # nodes of formulas of dimensions


def _of_formula(formula: PrimExpr) -> SymbolDim:
    found = sorted({n for n in walk(formula) if isinstance(n, Var)}, key=id)
    with _LOCK:
        known = _FORMULAS.setdefault(tuple(map(id, found)), [])
        an = Analyzer()
        for dim in known:
            if an.can_prove_equal(dim.formula, formula):
                return dim
        known.append(SymbolDim._made(formula))
        return known[-1]


# By the variables of the formulas, which the dimensions here keep alive.
_FORMULAS: dict[tuple[int, ...], list[SymbolDim]] = {}
_LOCK = threading.Lock()


def Dim(name: str, low: int = 0, high: int | None = None) -> Any:
    """Return the open dimension `name` of `low` to `high` elements, both included.

    The same name and range give the same dimension.  `high` None: nothing bounds it.  Raises
    TypeInferenceError for a range that no size lies in, and for a name that is none.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise TypeInferenceError(
            f"Dim({name!r}): the name of a dimension is a word of letters, digits and underscores"
        )
    for end in (low, high):
        is_size = isinstance(end, int) and not isinstance(end, bool)
        if end is not None and not (is_size and 0 <= end <= MAX_EXTENT):
            raise TypeInferenceError(
                f"Dim({name!r}, {low!r}, {high!r}): the range of a dimension ends at integers from "
                f"0 to {MAX_EXTENT}"
            )
    if high is not None and high < low:
        raise TypeInferenceError(
            f"Dim({name!r}, {low}, {high}): no size is at least {low} and at most {high}; the "
            "lower end comes first"
        )
    if low == high:
        return low
    with _LOCK:
        known = _NAMED.get((name, low, high))
        if known is None:
            variable = SizeVar(name, "int32", low, -1 if high is None else high)
            known = _NAMED[name, low, high] = SymbolDim(variable)
        return known


_NAMED: WeakValueDictionary[tuple[str, int, int | None], SymbolDim] = WeakValueDictionary()


class Line(NamedTuple):
    """``times * variable + more`` elements of an axis, which so tells the size `variable`."""

    variable: E.Var
    times: int = 1
    more: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether the axis has the size itself."""
        return self.times == 1 and not self.more

    def size(self, extent: Any) -> Any:
        """Return the size that an axis of `extent` elements tells, rounded down."""
        return (extent - self.more) // self.times


def line_of(extent: Any) -> Line | None:
    """Return what a dimension or formula is of one size; None for a number or another formula."""
    formula = getattr(extent, "formula", extent)
    if isinstance(formula, E.Var):
        return Line(formula)
    if not isinstance(formula, E.Add | E.Sub | E.Mul):
        return None
    sums = Analyzer().linear(formula)
    if len(sums.terms) != 1:
        return None
    ((atom, times),) = sums.terms.items()
    if not isinstance(atom.expr, E.Var) or times < 1:
        return None
    return Line(atom.expr, times, sums.const)


def told_by(extent: Extent) -> E.Var | None:
    """Return the variable that an axis is, some times and a number more; None for another one."""
    line = line_of(extent) if isinstance(extent, SymbolDim) else None
    return None if line is None else line.variable


def range_text(dim: SymbolDim) -> str:
    """Return a dimension with its range, as ``n in 1..8``."""
    return f"{dim} in {dim.low}..{'' if dim.high is None else dim.high}"


def described(dims: list[Any]) -> str:
    """Return the ranges of all variables in some dimensions, as text."""
    variables = [v for d in dims if isinstance(d, SymbolDim) for v in d.variables]
    return ", ".join(range_text(SymbolDim(v)) for v in dict.fromkeys(variables))


def at(extent: Extent, sizes: Mapping[Any, int]) -> int:
    """Return the number of elements of a dimension, with `sizes` for its variables.

    Raises TypeInferenceError for an open dimension that is no formula of these.
    """
    if not isinstance(extent, SymbolDim):
        return operator.index(extent)
    missing = [v.name for v in extent.variables if v not in sizes]
    if missing:
        raise TypeInferenceError(f"the size of {missing[0]} is needed for {extent}")
    values = {v: ops.const(sizes[v], v.dtype) for v in extent.variables}
    return int(Analyzer().simplify(substitute(extent.formula, values)))


def scaled(extent: Extent, factor: float) -> Any:
    """Return an extent times a factor, rounded down; an open one takes factors that are fractions.

    A factor is a float32 in most files: 5 times 1.4 is 7, as float32 multiplies, where the nearest
    float32 to 1.4 is below it.  So the fraction is the one that the float32 was rounded from.

    Raises TypeInferenceError for another factor.
    """
    if not math.isfinite(factor):
        raise TypeInferenceError(f"it scales the size {extent} by {factor}; give a number")
    if not isinstance(extent, SymbolDim):
        product = extent * factor
        nearest = round(product)
        return nearest if abs(product - nearest) <= nearest * 2.0**-24 else int(product)
    exact = Fraction(factor).limit_denominator(1 << 10)
    if abs(exact - Fraction(factor)) > exact * Fraction(1, 1 << 24):
        raise TypeInferenceError(
            f"it scales the open size {extent} by {factor}, which is no fraction"
        )
    return extent * exact.numerator // exact.denominator


def usual(extent: Extent) -> int:
    """Return the size for which choices are made that cost time, never correctness.

    That of a number is itself, that of an open dimension what it is at the upper end of the ranges.
    """
    if not isinstance(extent, SymbolDim):
        return int(extent)
    return at(extent, {v: _upper(v) for v in extent.variables})


def odd(extent: Extent) -> int:
    """Return a size that as few numbers divide as can be; of a number itself.

    That of an open dimension is what it is for the largest primes of the ranges.
    """
    if not isinstance(extent, SymbolDim):
        return int(extent)
    return at(extent, {v: _prime(SymbolDim(v).low, _upper(v)) for v in extent.variables})


def _prime(low: int, high: int) -> int:
    """Return the largest prime of a range, its upper end where there is none near it."""
    candidates = range(high, max(low, high - 1000, 2) - 1, -1)
    return next((n for n in candidates if all(n % f for f in range(2, math.isqrt(n) + 1))), high)


def largest_divisor(extent: Extent, most: int) -> int:
    """Return the largest number up to `most`, 1 at least, that certainly divides a dimension.

    Of an open dimension the factor that its formula has is looked at, once: a formula for each
    remainder that might be would be kept, and compared with every later one.
    """
    if isinstance(extent, SymbolDim):
        step, remainder = Analyzer().modular_set(extent.formula)
        extent = math.gcd(step, remainder)
    return next((f for f in range(min(most, extent), 1, -1) if extent % f == 0), 1)


def lower_bound(extent: Extent) -> int:
    """Return the lower end of a dimension's range; of a number itself."""
    return extent.low if isinstance(extent, SymbolDim) else int(extent)


def _upper(variable: Var) -> int:
    dim = SymbolDim(variable)
    return max(dim.low, _UNBOUNDED) if dim.high is None else dim.high


_UNBOUNDED = 64  # what choices take a dimension for that has no upper end
