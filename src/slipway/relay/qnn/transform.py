"""``relay.qnn.transform``: CanonicalizeOps and Legalize under their classic names."""

from slipway.lazy import offer

_HOMES = {
    "CanonicalizeOps": "slipway.transform.graph.classic:QnnCanonicalizeOps",
    "Legalize": "slipway.transform.graph.classic:QnnLegalize",
}
__getattr__, __dir__ = offer(__name__, _HOMES)
