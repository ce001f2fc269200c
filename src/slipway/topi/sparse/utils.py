"""Matrices and models with many zeros (a facade: the code is looked up on first use)."""

from slipway.lazy import by_module, offer

_HOMES = by_module(
    {
        "slipway.topi.sparse.random_matrix": "BlockMatrix random_bsr_matrix",
        "slipway.relay.data_dep_optimization.random_weights": (
            "convert_model_dense_to_sparse sparse_sketch_rules"
        ),
    }
)
__getattr__, __dir__ = offer(__name__, _HOMES)
