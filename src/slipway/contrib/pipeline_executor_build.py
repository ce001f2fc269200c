"""How models are put one after the other; see `slipway.compiler.pipeline`."""

from slipway.compiler.pipeline import PipelineConfig, build

__all__ = ["PipelineConfig", "build"]
