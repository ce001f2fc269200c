"""Converters of functions: special ones, those of complex numbers, ranks and counts."""
