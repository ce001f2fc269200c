"""Temporary directories; see `slipway.toolchain.tempdir`."""

from slipway.toolchain.tempdir import TempDirectory, tempdir

__all__ = ["TempDirectory", "tempdir"]
