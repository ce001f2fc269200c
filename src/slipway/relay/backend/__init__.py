"""``relay.backend``: `Executor` and `Runtime`, the values that ``relay.build`` takes."""

from slipway.relay.backend.choice import Executor, Runtime

__all__ = ["Executor", "Runtime"]
