"""Proofs and simplification of integer expressions: what scheduling and lowering need, no more."""

from slipway.lazy import by_module, offer

_HOMES = {
    **by_module({"slipway.arith.asked": "ConstIntBound ModularSet"}),
    "Analyzer": "slipway.arith.asked:AskedAnalyzer",
}
__getattr__, __dir__ = offer(__name__, _HOMES, submodules=True)
