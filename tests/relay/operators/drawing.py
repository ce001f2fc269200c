"""How random cases of operators are drawn, and how their results are compared."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from slipway.relay import op_registry
from slipway.relay.types import TensorType, TupleType

OPS = op_registry.load_ops()
FLOATS = ("float32", "float64", "float16")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *INTS)
ALL = (*NUMBERS, "bool")
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 16, 17)
MAX_SIZE = 2000
EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e-30, -1e30, 1e30, np.inf, -np.inf, np.nan)
WITHOUT_NAN = ("nn.relu", "nn.leaky_relu", "clip")  # a bound or NaN: either may come out


@dataclass(repr=False)
class Case:
    """Arguments of an operator, and how exact its results are.

    `ulps` bounds the error of real results in units in the last place of the reference, which is
    computed in float64.  `terms` says that a result is a sum of so many products: then its error is
    at most terms + 4 roundings of the sum of their magnitudes.  `scale` bounds it relative to
    the largest result, in units in the last place of that.
    """

    arrays: tuple[Any, ...]
    attrs: Any = None
    ulps: float = 0.5
    terms: int = 0
    scale: float = 0.0

    def __repr__(self):
        kinds = [
            [f"{f.dtype}{f.shape}" for f in (a if isinstance(a, tuple) else (a,))]
            for a in self.arrays
        ]
        return f"Case({kinds}, {self.attrs})"


class Draw:
    """A thin hand on hypothesis' draw."""

    def __init__(self, draw, name):
        self.draw = draw
        self.name = name
        self.rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def int(self, low, high):
        return self.draw(st.integers(low, high))

    def ints(self, count, low, high):
        return tuple(self.int(low, high) for _ in range(count))

    def pick(self, options):
        return self.draw(st.sampled_from(list(options)))

    def bool(self):
        return self.draw(st.booleans())

    def axis(self, rank):
        return self.int(-rank, rank - 1)

    def axes(self, rank, minimum=0):
        """Different axes, some counted from the end."""
        found = self.draw(st.lists(st.integers(0, rank - 1), unique=True, min_size=minimum))
        return tuple(a - rank if self.bool() else a for a in found)

    def draw_order(self, items):
        """The items in any order."""
        return self.draw(st.permutations(list(items)))

    def shape(self, minimum=0, most=4, extents=EXTENTS, size=MAX_SIZE):
        shape = []
        for _ in range(self.int(minimum, most)):
            room = [e for e in extents if e * int(np.prod(shape, dtype=int)) <= size]
            shape.append(self.pick(room or (1,)))
        return tuple(shape)

    def broadcast_pair(self):
        """Two shapes that broadcast."""
        out = self.shape()

        def part():
            kept = out[self.int(0, len(out)) :]
            return tuple(1 if self.int(0, 3) == 0 else e for e in kept)

        return (out, part()) if self.bool() else (part(), out)

    def array(self, shape, dtype, low=None, high=None, edges=False):
        """Random elements; integers over their whole range unless bounded."""
        if dtype == "bool":
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype.startswith(("int", "uint")):
            info = np.iinfo(dtype)
            low = info.min if low is None else max(int(low), info.min)
            high = info.max if high is None else min(int(high), info.max)
            made = self.rng.integers(low, high, shape, dtype, endpoint=True)
            return np.asarray(made)
        made = self.rng.uniform(-4 if low is None else low, 4 if high is None else high, shape)
        made = np.asarray(made)
        if edges and made.size and self.bool():
            count = int(self.rng.integers(1, made.size + 1))
            flat = made.reshape(-1)
            among = EDGES[:-1] if self.name in WITHOUT_NAN else EDGES
            flat[self.rng.integers(0, made.size, count)] = self.rng.choice(among, count)
        with np.errstate(over="ignore"):
            return made.astype(dtype)

    def dtype(self, among, *shapes, attrs=None):
        """One of the dtypes that the operator takes for tensors of these shapes."""
        served = [d for d in among if accepts(self.name, attrs, [(s, d) for s in shapes])]
        assert served, f"{self.name} takes none of {among}"
        return self.pick(served)


def accepts(name, attrs, arguments):
    """Return whether the type relation takes tensors of these (shape, dtype)."""
    types = [
        TupleType(tuple(TensorType(*a) for a in given))
        if isinstance(given, list)
        else TensorType(tuple(given[0]), given[1])
        for given in arguments
    ]
    try:
        OPS[name].infer(attrs, types)
    except op_registry.TypeInferenceError:
        return False
    return True


def wide(value):
    """The same in float64 where it is floating point."""
    if isinstance(value, tuple):
        return tuple(wide(v) for v in value)
    return value.astype(np.float64) if value.dtype.kind == "f" else value


def compare(name, case, got):
    """Assert that compiled results are the reference's, as exact as the case says."""
    definition = OPS[name]
    found = definition.evaluate(case.attrs, *case.arrays)
    plain = found if isinstance(found, tuple) else (np.asarray(found),)
    exact = plain
    if name != "reinterpret" and any(p.dtype.kind == "f" for p in plain):
        exact = definition.evaluate(_wide_attrs(case.attrs), *(wide(a) for a in case.arrays))
        exact = exact if isinstance(exact, tuple) else (np.asarray(exact),)
    assert len(got) == len(plain)
    for number, (value, want, better) in enumerate(zip(got, plain, exact, strict=True)):
        assert value.dtype == want.dtype, (name, value.dtype, want.dtype)
        assert value.shape == want.shape, (name, value.shape, want.shape)
        where = f"result {number} of {name}, {case.attrs}"
        if want.dtype.kind != "f":
            np.testing.assert_array_equal(value, want, err_msg=where)
        else:
            _close(value, want, better.astype(np.float64), case, name, where)


def _wide_attrs(attrs):
    """Results in float64: attributes that name a narrower floating point dtype are widened."""
    for field in ("out_dtype", "dtype"):
        if getattr(attrs, field, "") in FLOATS:
            attrs = attrs.replace(**{field: "float64"})
    return attrs


def _close(value, want, better, case, name, where):
    dtype = want.dtype
    limit = float(np.finfo(dtype).max)
    tiny = float(np.finfo(dtype).tiny)
    unit = float(np.finfo(dtype).eps)
    given = value.astype(np.float64)
    with np.errstate(all="ignore"):
        size = np.clip(np.abs(better), tiny, limit)
        bound = case.ulps * np.exp2(np.floor(np.log2(size))) * unit
        if case.terms:
            magnitudes = tuple(_absolute(a) for a in case.arrays)
            total = OPS[name].evaluate(_wide_attrs(case.attrs), *(wide(a) for a in magnitudes))
            total = np.asarray(total[0] if isinstance(total, tuple) else total, np.float64)
            bound = np.maximum(bound, (case.terms + 4) * unit * np.abs(total))
        if case.scale:
            top = np.max(np.abs(better[np.isfinite(better)]), initial=tiny)
            bound = np.maximum(bound, case.scale * unit * top)
        # Where one rounding decides between the largest number and infinity, both are right.
        overflow = np.isinf(given) & (np.abs(better) + bound >= limit * (1 - unit))
        overflow |= np.isinf(want) & (np.abs(given) >= limit * (1 - 8 * unit))
        same = (given == better) | (np.isnan(given) & np.isnan(better))
        same |= np.isnan(given) & np.isnan(want) | (given == want.astype(np.float64))
        close = np.abs(given - better) <= bound
    wrong = ~(same | close | (overflow & ~np.isnan(better)))
    if wrong.any():
        at = tuple(int(i[0]) for i in np.nonzero(wrong))
        raise AssertionError(
            f"{where}: {int(wrong.sum())} of {wrong.size} differ; at {at} got {value[at]!r}, "
            f"want {want[at]!r} ({better[at]!r}), allowed {np.broadcast_to(bound, wrong.shape)[at]}"
        )


def _absolute(value):
    if isinstance(value, tuple):
        return tuple(_absolute(v) for v in value)
    return np.abs(value) if value.dtype.kind == "f" else value
