"""The weights of a transformers folder: ``*.safetensors``, through the library of that name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from slipway.errors import MissingPackageError, ModelError
from slipway.llm.weights import Array, Weights
from slipway.version import install_line


def weights_of_folder(folder: Path) -> Weights:
    """Return the weights of all safetensors files of a folder."""
    try:
        import ml_dtypes  # noqa: F401  (NumPy knows bfloat16 by it)
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise MissingPackageError(
            f"reading a transformers folder needs safetensors: {install_line('llm')}"
        ) from None
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ModelError(f"{folder} has no *.safetensors files with weights")
    file_of: dict[str, Any] = {}
    for file in files:
        try:
            opened: Any = safe_open(str(file), framework="np")
            file_of.update(dict.fromkeys(opened.keys(), opened))
        except (SafetensorError, OSError, ValueError) as error:
            raise ModelError(f"{file} is no safetensors file, or is damaged: {error}") from None

    def read(name: str) -> Array:
        part = file_of[name].get_slice(name)
        kind = part.get_dtype()
        if kind not in ("F32", "F16", "BF16", "F64"):
            raise ModelError(f"the weight {name!r} of {folder} is of the type {kind}, not floats")
        return np.asarray(file_of[name].get_tensor(name)).astype(np.float32)

    return Weights(list(file_of), read)
