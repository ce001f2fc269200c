"""``tvmc.fmtopt``: times of a run as a table."""

from slipway.driver.tvmc.result_utils import format_times

__all__ = ["format_times"]
