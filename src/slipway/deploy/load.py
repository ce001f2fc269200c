"""`slipway.load`: an exported model, to call here or to carry to a device."""

from __future__ import annotations

import os
from pathlib import Path

from slipway.arguments import path_of
from slipway.deploy.model import Model
from slipway.errors import ArtifactError

SUFFIXES = (".tar", ".so")


def load(path: str | os.PathLike[str]) -> Model:
    """Return the model that `Model.save`, ``slipway compile`` or `export_library` wrote.

    One for another processor can be read and carried with `Model.on`; calling it here is an
    ArtifactError.  Raises FileNotFoundError, or ArtifactError for a damaged file.
    """
    file = path_of(path, "the model to load", "model.tar")
    if not file.is_file():
        raise FileNotFoundError(
            f"there is no file {file} (the current folder is {Path.cwd()}). Write it with "
            "slipway.compile(...).save(...) or `slipway compile`"
        )
    if file.suffix not in SUFFIXES:
        raise ArtifactError(
            f"{file}: a model is loaded from a .tar or .so; slipway.compile reads model files"
        )
    return Model(file, name=file.stem)
