"""``topi.sparse``: products with sparse matrices (a facade: the code lies beside it)."""

from slipway.topi.sparse import utils
from slipway.topi.sparse.matrices import csrmm, csrmv, dense

__all__ = ["csrmm", "csrmv", "dense", "utils"]
