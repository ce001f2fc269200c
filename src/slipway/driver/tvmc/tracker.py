"""``tvmc.tracker``: a tracker's address as the command line writes it."""

from slipway.driver.tvmc.arguments import tracker_of as tracker_host_port_from_cli

__all__ = ["tracker_host_port_from_cli"]
