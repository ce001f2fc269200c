"""Linking for Android; see `slipway.toolchain.ndk`."""

from slipway.toolchain.ndk import create_shared, get_target_triple

__all__ = ["create_shared", "get_target_triple"]
