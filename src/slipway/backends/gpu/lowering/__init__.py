"""Loops bound to threads become kernels: who computes what, and who waits for whom."""
