"""Apple's tools; see `slipway.toolchain.xcode`."""

from slipway.toolchain.xcode import compile_metal, create_dylib, xcrun

__all__ = ["compile_metal", "create_dylib", "xcrun"]
