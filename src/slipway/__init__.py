"""Slipway."""
