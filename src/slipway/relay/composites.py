"""Operators that are compositions of others, by name: ``relay.scatter``, ``relay.op.scatter``."""

from slipway.lazy import by_module, offer

_FAMILIES = {
    "tensor.arithmetic": "fixed_point_multiply mean_std mean_variance trunc_divide trunc_mod",
    "tensor.create": "full_like ones ones_like zeros zeros_like",
    "tensor.like": (
        "broadcast_to_like cast_like collapse_sum_like collapse_sum_to ndarray_size reshape_like "
        "reverse_reshape shape_of slice_like"
    ),
    "tensor.indexing": (
        "adv_index invert_permutation matrix_set_diag meshgrid reverse_sequence scatter "
        "scatter_add searchsorted segment_sum sequence_mask sliding_window sparse_to_dense "
        "strided_set trilu unravel_index"
    ),
    "tensor.einsum": "einsum",
    "tensor.sets": "argwhere unique",
    "tensor.sparse_tensors": "sparse_fill_empty_rows sparse_reshape",
    "tensor.spectral": "dft stft",
    "tensor.reduce": "logsumexp std variance",
    "tensor.shape": "swapaxes",
    "tensor.sort": "argsort sort",
}
_HOMES = by_module({f"slipway.relay.ops.{family}": names for family, names in _FAMILIES.items()})
__getattr__, __dir__ = offer(__name__, _HOMES)
