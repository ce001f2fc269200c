"""What type checkers see of slipway.relay.qnn.transform; written by tools/stubs.py."""

from slipway.transform.graph.classic import QnnCanonicalizeOps as CanonicalizeOps
from slipway.transform.graph.classic import QnnLegalize as Legalize

__all__ = [
    "CanonicalizeOps",
    "Legalize",
]
