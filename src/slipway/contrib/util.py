"""The older name of `slipway.contrib.utils`."""

from slipway.toolchain.tempdir import TempDirectory, tempdir

__all__ = ["TempDirectory", "tempdir"]
