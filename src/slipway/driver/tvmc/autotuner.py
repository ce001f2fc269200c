"""``tvmc.autotuner``: the search of schedules."""

from slipway.driver.tvmc.tuner import tune_model

__all__ = ["tune_model"]
