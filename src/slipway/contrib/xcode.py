"""Apple's tools; see `slipway.toolchain.xcode`."""

from slipway.toolchain.xcode import codesign, compile_metal, create_dylib, xcrun

__all__ = ["codesign", "compile_metal", "create_dylib", "xcrun"]
