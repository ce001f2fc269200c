"""Compilers, linkers and emulators: everything Slipway runs as another program."""
