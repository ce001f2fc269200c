"""Models one after the other; see `slipway.runtime.pipeline`."""

from slipway.runtime.pipeline import PipelineExecutorFactoryModule, PipelineModule

__all__ = ["PipelineExecutorFactoryModule", "PipelineModule"]
