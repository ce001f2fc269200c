"""Kernels as text, in languages that are C with another library: one walk, tables of spellings."""
