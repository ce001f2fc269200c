"""How models are put one behind the other; see `slipway.compiler.pipeline`."""

from slipway.compiler.pipeline import PipelineConfig, build

__all__ = ["PipelineConfig", "build"]
