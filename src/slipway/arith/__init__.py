"""Proofs and simplification of integer expressions: what scheduling and lowering need, no more."""

from slipway.lazy import by_module, offer

_HOMES = {
    **by_module({"slipway.arith.queries": "ConstIntBound ModularSet"}),
    "Analyzer": "slipway.arith.queries:QueryAnalyzer",
}
__getattr__, __dir__ = offer(__name__, _HOMES, submodules=True)
