"""Kernels as typed values and structured control: one walk over loops, a sink for each language."""
