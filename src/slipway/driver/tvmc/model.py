"""What the functions of tvmc hand to each other: a model, a compiled package, results."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from slipway.errors import SlipwayError
from slipway.ir.function import IRModule
from slipway.ir.text.serialize import load_json, save_json
from slipway.runtime.load import load_module
from slipway.runtime.params import load_param_dict, save_param_dict
from slipway.runtime.timing import BenchmarkResult
from slipway.toolchain.tempdir import lasting


class TVMCException(SlipwayError, ValueError):
    """What a function of tvmc was asked for cannot be done."""


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
        """Write module and parameters to one file, which ``TVMCModel(model_path=...)`` reads."""
        with zipfile.ZipFile(model_path, "w") as archive:
            archive.writestr("model.json", save_json(self.mod))
            archive.writestr("params.bin", bytes(save_param_dict(self.params)))

    def load(self, model_path: str) -> tuple[IRModule, dict[str, Any]]:
        """Return (module, parameters) of a file that `save` wrote."""
        try:
            with zipfile.ZipFile(model_path) as archive:
                module = load_json(archive.read("model.json").decode())
                return module, load_param_dict(archive.read("params.bin"))
        except (KeyError, zipfile.BadZipFile) as error:
            raise TVMCException(
                f"{model_path} is not what TVMCModel.save writes ({error}); a model file is read "
                "with tvmc.load"
            ) from None

    def summary(self, file: TextIO | None = None) -> None:
        """Print the module."""
        print(self.mod, file=file or sys.stdout)

    def default_package_path(self) -> str:
        """Return where `compile` puts a package, until this process ends, when no path is given."""
        return str(lasting("slipway-tvmc-") / "model_package.tar")


class TVMCPackage:
    """A compiled model: the artifact at `package_path`."""

    def __init__(self, package_path: str, project_dir: str | Path | None = None) -> None:
        if project_dir is not None:
            raise TVMCException(
                "a package of a microTVM project is run with slipway.micro: "
                "micro.generate_project(...).transport()"
            )
        self.package_path = str(package_path)
        self.import_package(self.package_path)

    def import_package(self, package_path: str) -> None:
        """Read the artifact."""
        path = Path(package_path)
        if not path.is_file():
            raise TVMCException(
                f"there is no package {package_path}: compile one with tvmc.compile"
            )
        self.package_path = str(path)
        self.lib_path = str(path)

    def module(self) -> Any:
        """Return the artifact's factory, loaded into this process."""
        return load_module(self.lib_path)


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
