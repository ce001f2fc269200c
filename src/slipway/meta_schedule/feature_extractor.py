"""Feature extractors (classic): what cost models see of loops; here that is the engine's."""

from __future__ import annotations


class FeatureExtractor:
    """Sees what a schedule's loops are like."""


class PerStoreFeature(FeatureExtractor):
    """Classic TVM's; its numbers are kept for scripts that give them."""

    def __init__(
        self,
        buffers_per_store: int = 5,
        arith_intensity_curve_num_samples: int = 10,
        cache_line_bytes: int = 64,
        extract_workload: bool = False,
    ) -> None:
        self.buffers_per_store, self.extract_workload = buffers_per_store, extract_workload
        self.arith_intensity_curve_num_samples = arith_intensity_curve_num_samples
        self.cache_line_bytes = cache_line_bytes
