"""Classic name of the archive's writer: `export_model_library_format`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from slipway.errors import ArtifactError
from slipway.micro.model_library import VERSION, ModelLibrary, write_model_library

_GENERATED_VERSION = VERSION  # the name that scripts which read the archives compare with


class UnsupportedInModelLibraryFormatError(ArtifactError):
    """The module cannot be written as a Model Library Format archive."""


def export_model_library_format(mod: Any, file_name: str | Path) -> Path:
    """Write a built module as a Model Library Format archive and return the path.

    A list of modules, built with different `mod_name`, becomes one archive.  The same module always
    gives the same bytes.  Raises UnsupportedInModelLibraryFormatError for what has no sources or
    objects to ship.
    """
    modules = mod if isinstance(mod, list | tuple) else [mod]
    libraries = [m if isinstance(m, ModelLibrary) else _library_of(m) for m in modules]
    return write_model_library(libraries, file_name)


def _library_of(mod: Any) -> ModelLibrary:
    from slipway.compiler.aot.factory import AotExecutorFactoryModule
    from slipway.compiler.model_factory import ModelFactory
    from slipway.compiler.operator_module import OperatorModule
    from slipway.micro import model_contents

    if isinstance(mod, AotExecutorFactoryModule):
        return model_contents.library_of_aot(mod)
    if isinstance(mod, ModelFactory):
        return model_contents.library_of_graph(mod)
    if isinstance(mod, OperatorModule):
        return model_contents.library_of_operators(mod)
    raise UnsupportedInModelLibraryFormatError(
        f"a {type(mod).__name__} cannot be exported; give what relay.build returned for the "
        "target 'c', with executor=Executor('aot') or Executor('graph') and runtime=Runtime('crt')"
    )
