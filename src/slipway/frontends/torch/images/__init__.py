"""Converters of what samples images: pools, resizes, windows."""
