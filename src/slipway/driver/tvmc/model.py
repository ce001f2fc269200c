"""What the functions of tvmc hand to each other: a model, a compiled package, results.

A package is an artifact of `export_library` (its `type` is "classic"), which has its graph and its
weights inside, or an archive for microcontrollers ("mlf").
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
import zipfile
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from slipway.errors import SlipwayError, did_you_mean
from slipway.ir.function import IRModule
from slipway.ir.text.serialize import load_json, save_json
from slipway.micro.model_library_format import export_model_library_format
from slipway.runtime.load import load_module
from slipway.runtime.params import load_param_dict, save_param_dict
from slipway.runtime.timing import BenchmarkResult
from slipway.toolchain.tempdir import lasting

OUTPUT_FORMATS = ("so", "tar", "mlf")


class TVMCException(SlipwayError, ValueError):
    """What a function of tvmc was asked for cannot be done."""


def check_output_format(name: str) -> None:
    """Raise TVMCException for a format that packages do not have."""
    if name not in OUTPUT_FORMATS:
        raise TVMCException(
            f"output_format is {name!r}, not one of {', '.join(OUTPUT_FORMATS)}."
            f"{did_you_mean(name, OUTPUT_FORMATS)}"
        )


class TVMCModel:
    """A model: its module and parameters, or the file that `save` wrote."""

    def __init__(
        self,
        mod: IRModule | None = None,
        params: dict[str, Any] | None = None,
        model_path: str | None = None,
    ) -> None:
        if (mod is None or params is None) and model_path is None:
            raise TVMCException("TVMCModel takes mod and params, or model_path of a saved one")
        if model_path is not None:
            mod, params = self.load(model_path)
        assert mod is not None
        self.mod = mod
        self.params: dict[str, Any] = dict(params or {})

    def save(self, model_path: str) -> None:
        """Write module and parameters to one file, which ``TVMCModel(model_path=...)`` reads.

        The records and the package that have no path of their own go with them.
        """
        with zipfile.ZipFile(model_path, "w") as archive:
            archive.writestr("model.json", save_json(self.mod))
            archive.writestr("params.bin", bytes(save_param_dict(self.params)))
            for path in (self.default_package_path(), self.default_tuning_records_path()):
                if Path(path).is_file():
                    archive.write(path, Path(path).name)

    def load(self, model_path: str) -> tuple[IRModule, dict[str, Any]]:
        """Return (module, parameters) of a file that `save` wrote."""
        try:
            with zipfile.ZipFile(model_path) as archive:
                module = load_json(archive.read("model.json").decode())
                for path in (self.default_package_path(), self.default_tuning_records_path()):
                    if Path(path).name in archive.namelist():
                        Path(path).write_bytes(archive.read(Path(path).name))
                return module, load_param_dict(archive.read("params.bin"))
        except (KeyError, zipfile.BadZipFile) as error:
            raise TVMCException(
                f"{model_path} is not what TVMCModel.save writes ({error}); a model file is read "
                "with tvmc.load"
            ) from None

    def summary(self, file: TextIO | None = None) -> None:
        """Print the module."""
        print(self.mod, file=file or sys.stdout)

    @cached_property
    def _folder(self) -> Path:
        return lasting("slipway-tvmc-")

    def default_package_path(self) -> str:
        """Return where `compile` puts a package, until this process ends, when no path is given."""
        return str(self._folder / "model_package.tar")

    def default_tuning_records_path(self) -> str:
        """Return where `tune` puts records, until this process ends, when no path is given."""
        return str(self._folder / "tuning_records.json")

    def export_package(
        self,
        executor_factory: Any,
        package_path: str | None = None,
        cross: Any = None,
        cross_options: str | None = None,
        output_format: str = "so",
    ) -> str:
        """Write what `relay.build` made as a package, "so", "tar" or "mlf"; return its path."""
        check_output_format(output_format)
        path = Path(package_path or self.default_package_path())
        if output_format == "mlf":
            if cross:
                raise TVMCException(
                    "Specifying the MLF output and a cross compiler is not supported."
                )
            export_model_library_format(executor_factory, path)
        else:
            options = cross_options.split() if cross_options else None
            executor_factory.export_library(path, cc=cross, options=options)
        return str(path)


class TVMCPackage:
    """A compiled model: the artifact or the archive at `package_path`.

    `project_dir` is the project of an archive for microcontrollers.  `lib_path` and `lib_name` are
    None for an archive, and `graph` where the executor is AOT.
    """

    def __init__(self, package_path: str, project_dir: str | Path | None = None) -> None:
        self.package_path = str(package_path)
        self.project_dir = None if project_dir is None else Path(project_dir)
        self.import_package(self.package_path)
        if self.project_dir is not None and self.type != "mlf":
            raise TVMCException("Setting 'project_dir' is only allowed when importing a MLF.!")

    def import_package(self, package_path: str) -> None:
        """Read the artifact."""
        path = Path(package_path)
        if not path.is_file():
            raise TVMCException(
                f"there is no package {package_path}: compile one with tvmc.compile"
            )
        self.package_path = str(path)
        self._archive = _archive_of(path)
        self.type = "classic" if self._archive is None else "mlf"
        self.lib_path = str(path) if self._archive is None else None
        self.lib_name = path.name if self._archive is None else None

    @cached_property
    def graph(self) -> str | None:
        """The graph as JSON; None for the AOT executor."""
        if self._archive is not None:
            return next(
                (content.decode() for name, content in self._archive.items()
                 if name.startswith("executor-config/graph/")), None,
            )  # fmt: skip
        factory = self.module()
        return str(factory["get_graph_json"]()) if _has(factory, "get_graph_json") else None

    @cached_property
    def params(self) -> bytearray | None:
        """The weights that an executor is given, as `save_param_dict` writes them."""
        if self._archive is not None:
            return next(
                (bytearray(content) for name, content in self._archive.items()
                 if name.startswith("parameters/")), None,
            )  # fmt: skip
        return bytearray(save_param_dict(self.module().get_params()))

    def module(self) -> Any:
        """Return the artifact's factory, loaded into this process."""
        if self.lib_path is None:
            raise TVMCException(
                f"{self.package_path} is a model for microcontrollers, in Model Library Format: "
                "tvmc micro create makes a project of it, and tvmc run --device micro runs that"
            )
        return load_module(self.lib_path)


def _archive_of(path: Path) -> dict[str, bytes] | None:
    """Return graph and weights of an archive in Model Library Format; None for another file."""
    try:
        with tarfile.open(path) as archive:
            members = {m.name.removeprefix("./"): m for m in archive if m.isfile()}
            if "metadata.json" not in members or not any(n.startswith("codegen/") for n in members):
                return None
            return {
                name: stream.read()
                for name, member in members.items()
                if name.startswith(("executor-config/", "parameters/"))
                and (stream := archive.extractfile(member)) is not None
            }
    except (tarfile.TarError, OSError):
        return None  # a shared library, or a file that loading it will say more about


def _has(factory: Any, name: str) -> bool:
    try:
        return factory[name] is not None
    except (SlipwayError, AttributeError, KeyError):
        return False


class TVMCResult:
    """What a run gave: `outputs` by name, and the `times` of a benchmark."""

    def __init__(
        self, outputs: dict[str, np.ndarray[Any, Any]], times: BenchmarkResult | list[Any]
    ) -> None:
        self.outputs = outputs
        self.times = times

    def format_times(self) -> str:
        """Return the times as a table; "[]" where none were taken."""
        return str(self.times)

    def get_output(self, name: str) -> np.ndarray[Any, Any]:
        """Return one output."""
        if name not in self.outputs:
            raise TVMCException(f"there is no output {name!r}; there are {', '.join(self.outputs)}")
        return self.outputs[name]

    def save(self, output_path: str) -> None:
        """Write the outputs to an .npz file."""
        content = io.BytesIO()
        np.savez(content, **self.outputs)  # type: ignore[arg-type]
        Path(output_path).write_bytes(content.getvalue())

    def __str__(self) -> str:
        return f"{self.format_times()}\nOutput Names:\n {json.dumps(list(self.outputs))}"
