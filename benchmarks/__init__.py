"""Scripts that measure Slipway beside its peers; see docs/performance.md."""
