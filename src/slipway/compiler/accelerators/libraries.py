"""``partition_for_<library>``: nothing is handed to a library of a processor.

The kernels that are generated compute the same operators, so that a script which would have
parts of its model run by a library runs unchanged, whole.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from slipway.ir.function import IRModule
from slipway.relay.construct import bind
from slipway.runtime.ndarray import NDArray
from slipway.transform.graph.pipeline import main_function


def enabled() -> bool:
    """Return whether a library of this name can be called: it cannot."""
    return False


def partition_for_cmsisnn(
    mod: IRModule,
    params: Mapping[str, NDArray] | None = None,
    mod_name: str = "default",
    **opts: object,
) -> IRModule:
    """Return the module whole, with its parameters bound, and warn of that."""
    return _whole(mod, params, "cmsisnn", "CMSIS-NN")


def partition_for_dnnl(
    mod: IRModule,
    params: Mapping[str, NDArray] | None = None,
    alter_layout: bool = True,
    prune_subgraphs: bool = True,
) -> IRModule:
    """Return the module whole, with its parameters bound, and warn of that."""
    return _whole(mod, params, "dnnl", "oneDNN")


def partition_for_arm_compute_lib(
    mod: IRModule,
    params: Mapping[str, NDArray] | None = None,
    disabled_ops: Sequence[str] = ("concatenate",),
    **opts: object,
) -> IRModule:
    """Return the module whole, with its parameters bound, and warn of that."""
    return _whole(mod, params, "arm_compute_lib", "Arm Compute Library")


def partition_for_bnns(mod: IRModule, params: Mapping[str, NDArray] | None = None) -> IRModule:
    """Return the module whole, with its parameters bound, and warn of that."""
    return _whole(mod, params, "bnns", "BNNS")


def _whole(
    mod: IRModule, params: Mapping[str, NDArray] | None, name: str, library: str
) -> IRModule:
    warnings.warn(
        f"partition_for_{name}: no operator is handed to {library}; the model stays whole, and "
        "kernels generated for its target compute it",
        stacklevel=3,
    )
    return mod.update("main", bind(main_function(mod), params)) if params else mod
