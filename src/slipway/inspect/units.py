"""Quantities as people read them."""


def time_text(seconds: float) -> str:
    """Return a duration: 730 ns, 12.3 µs, 4.56 ms, 1.23 s."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"
