"""Matrix products of a BLAS, under another library's name; see `slipway.te.library`."""

from slipway.te.library import batch_matmul, matmul

__all__ = ["batch_matmul", "matmul"]
