"""Matrix products of a BLAS; see `slipway.te.library`."""

from slipway.te.library import batch_matmul, matmul

__all__ = ["batch_matmul", "matmul"]
