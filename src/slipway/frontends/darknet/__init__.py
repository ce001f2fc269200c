"""Darknet: networks of ``.cfg`` and ``.weights`` files, and `from_darknet`."""
