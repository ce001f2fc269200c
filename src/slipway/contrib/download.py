"""Fetching files; see `slipway.toolchain.download`."""

from slipway.toolchain.download import download, download_testdata

__all__ = ["download", "download_testdata"]
