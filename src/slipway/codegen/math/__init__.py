"""Elementary functions as arithmetic on expressions (see `slipway.codegen.math.table`)."""

from slipway.codegen.math.table import exact_fma, expand, expand_sum, ulp_bound

__all__ = ["exact_fma", "expand", "expand_sum", "ulp_bound"]
