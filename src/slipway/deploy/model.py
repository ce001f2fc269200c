"""A compiled model that is called like a function, here or on a device."""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.arguments import file_to_write, number_of, table_of
from slipway.deploy.direct import DirectCalls, direct_calls, plain_calls
from slipway.deploy.meant import MeantNames, inputs_alone
from slipway.deploy.reference import random_inputs, reference_of
from slipway.deploy.tensors import (
    Array,
    TensorSpec,
    batches_in,
    check_sizes,
    named_inputs,
    specs_of,
)
from slipway.errors import ArgumentTypeError, ArgumentValueError, ExecutionError
from slipway.runtime.arrays.array_file import contents_of
from slipway.runtime.artifact import Artifact, check_artifact_runs_here, read_artifact
from slipway.runtime.model_devices import ModelDevices

if TYPE_CHECKING:
    from slipway.deploy.agreement import Agreement
    from slipway.inspect.profile import ModelProfile
    from slipway.rpc.client import RPCSession
    from slipway.runtime.graph.graph_executor import GraphModule
    from slipway.runtime.timing import BenchmarkResult
    from slipway.toolchain.tempdir import TempDirectory

Outputs = dict[str, Array]
MAX_RUNS = 100_000


class Model(MeantNames):
    """What `slipway.compile` and `slipway.load` return.

    Attributes: `name`; `target`, what it was compiled for; `inputs` and `outputs`, each a
    `TensorSpec`; `where`, what it runs on; `library`, what `relay.build` returned (None for a
    model that was loaded).
    """

    def __init__(
        self,
        artifact: Path,
        *,
        name: str,
        library: Any = None,
        source: Any = None,
        constants: Mapping[str, Any] | None = None,
        signature: str | None = None,
        folder: TempDirectory | None = None,
        quiet: bool = False,
    ) -> None:
        self.name = name
        self.library = library
        self.where = "this machine"
        self.artifact = artifact
        self._stamp = _stamp(artifact)
        contents = self._read()
        if contents.graph is None:
            raise ExecutionError(
                f"{artifact} holds operators and no model; slipway.runtime.load_module opens it"
            )
        # Until it is loaded; a model that was compiled here is in its library already.
        self._contents: Artifact | None = None if library is not None else contents
        self._metadata = metadata = contents.metadata
        self.target: str = metadata["target"]
        self.inputs: tuple[TensorSpec, ...] = specs_of(metadata["inputs"])
        self.outputs: tuple[TensorSpec, ...] = specs_of(metadata["outputs"])
        self._source = source
        self._constants = dict(constants or {})
        self._signature = signature
        self._quiet = quiet
        self._folder = folder  # holds `artifact` as long as this model lives
        self._session: RPCSession | None = None
        self._owns_session = False
        self._executor: GraphModule | None = None
        self._direct: DirectCalls | None = None  # once there is an executor in this process
        self._is_tried = False  # whether one without tvm-ffi can be made

    # Running.

    @property
    def _devices(self) -> ModelDevices:
        return ModelDevices(self._metadata, self._session)

    @property
    def executor(self) -> GraphModule:
        """The graph executor that runs, made at the first use; it holds what the last call gave.

        Raises ArtifactError for a model of another processor than this machine's.
        """
        if self._executor is None:
            if self._session is not None:
                from slipway.deploy.device import executor_there

                self._executor = executor_there(
                    self._session, self.artifact, self.name, self._devices
                )
            else:
                from slipway.deploy.local import executor_of

                given = {} if self._direct is None else self._direct.last_inputs()
                self._direct = None  # the parameters of an executor without tvm-ffi
                self._executor = executor_of(self._loaded(), self._devices.each)
                if given:
                    self._executor.run(**given)
                self._direct = direct_calls(self._executor, self.inputs, self.outputs)
        return self._executor

    def _read(self) -> Artifact:
        return read_artifact(contents_of(self.artifact), self.artifact.name, here=False)

    def _is_overwritten(self) -> bool:
        """Return whether other bytes were written into the file that is seen where it lies.

        A file that has taken its name, as `save` writes one, changes nothing.
        """
        found = _stamp(self.artifact)
        return found is not None and found != self._stamp and found[:2] == (self._stamp or ())[:2]

    def _loaded(self) -> Any:
        """Return what this was compiled to, or what is in its file, checked for this machine.

        Raises ExecutionError for a microcontroller's, ArtifactError for another processor's.
        """
        if "-none-" in f"{self._metadata.get('triple', '')}-":
            found = re.search(r"-mcpu=(\S+)", self.target)
            cpu = found[1] if found else self.target
            raise ExecutionError(
                f"{self.name} is compiled for a microcontroller, {cpu}, which this machine "
                f"is not: m.on({cpu!r}, tracker='HOST:PORT') runs it on a board of a farm "
                f"(`slipway farm up --kinds {cpu}` makes emulated ones), and "
                "`slipway micro create` makes firmware of the model"
            )
        if self.library is not None:
            return self.library
        contents = self._contents
        if contents is None or self._is_overwritten():
            contents = self._read()
        check_artifact_runs_here(contents)  # only now does it matter
        self._contents = None  # its parameters are copied into memory of the library's own
        return contents

    def _short_way(
        self, inputs: Sequence[object], named: Mapping[str, object]
    ) -> list[Array] | None:
        """Return the outputs for arrays that fit as they are; None where more is to be asked.

        Until somebody asks for the executor, a model of a file has one without tvm-ffi.
        """
        if self._direct is None and not (self._executor or self._session or self._is_tried):
            self._is_tried = True
            if self.library is None:
                contents = self._loaded()
                self._direct = plain_calls(contents, self.inputs, self.outputs)
                self._contents = None if self._direct is not None else contents
        return None if self._direct is None else self._direct.run(inputs, named)

    def __call__(self, *inputs: Any, **named: Any) -> Array | Outputs:
        """Run the model: ``m(x)``, ``m(x, y)``, ``m(image=x)`` or ``m({"image": x})``.

        Inputs are arrays, tensors of PyTorch or DLPack, lists, numbers.  Inputs with several times
        the rows they have in the model are run one batch after the other.  Returns an array, or
        for several outputs a dictionary by name.  Raises ExecutionError for inputs that do not fit.
        """
        direct = self._direct
        made = self._short_way(inputs, named) if direct is None else direct.run(inputs, named)
        if made is not None:
            if len(made) == 1:
                return made[0]
            return dict(zip((spec.name for spec in self.outputs), made, strict=True))
        results = self.run(named_inputs(self.inputs, inputs, named))
        return next(iter(results.values())) if len(results) == 1 else results

    @inputs_alone
    def run(self, inputs: Mapping[str, Any]) -> Outputs:
        """Return all outputs by name for inputs by name."""
        arrays = named_inputs(self.inputs, (), table_of(inputs, "inputs", "{'x': array}"))
        count = batches_in(self.inputs, self.outputs, arrays)
        check_sizes(self.inputs, arrays)
        if count == 1:
            return self._run_once(arrays)
        rows = self.inputs[0].largest[0]  # and of all others: `batches_in` has seen to it
        runs = [
            self._run_once({n: a[i * rows : (i + 1) * rows] for n, a in arrays.items()})
            for i in range(count)
        ]
        if not runs:
            return {s.name: np.zeros((0, *s.largest[1:]), s.dtype) for s in self.outputs}
        return {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}

    def _run_once(self, arrays: Mapping[str, Array]) -> Outputs:
        made = None if self._executor else self._short_way((), arrays)
        if made is not None:
            return {spec.name: made[i] for i, spec in enumerate(self.outputs)}
        executor = self.executor
        for name, value in arrays.items():
            executor.set_input(name, np.asarray(value, order="C"))
        executor.run()
        return {spec.name: executor.get_output(i).numpy() for i, spec in enumerate(self.outputs)}

    def on(
        self,
        where: str | RPCSession,
        *,
        key: str = "",
        tracker: str | None = None,
        token: str | None = None,
    ) -> Model:
        """Return this model on a device: "host:port", an open session, or a tracker's key.

            m.on("raspberrypi.local:9090")
            m.on("pi4", tracker="farm.local:9190")

        Raises RPCError when nothing answers.  The session ends with the returned model.
        """
        from slipway.deploy.device import open_session

        session, name = open_session(where, key=key, tracker=tracker, token=token)
        there = Model(
            self.artifact,
            name=self.name,
            library=self.library,
            source=self._source,
            constants=self._constants,
            signature=self._signature,
            folder=self._folder,
            quiet=self._quiet,
        )
        there._session, there.where = session, name
        there._owns_session = session is not where
        return there

    def close(self) -> None:
        """End the session that `on` opened, so that others can have the device.

        Also at the end of ``with m.on("pi4", tracker=...) as there:``.
        """
        self._executor = self._direct = None
        self._is_tried = False
        if self._session is not None and self._owns_session:
            self._session.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Questions.

    def profile(
        self, *inputs: Any, number: int = 10, repeat: int = 3, **named: Any
    ) -> ModelProfile:
        """Measure each operator where the model runs; inputs that are not given are random."""
        from slipway.inspect.profile import profile_model

        number, repeat = _counts(number, repeat)
        self._fill(inputs, named, ("number", "repeat"))
        return profile_model(self.executor, self._metadata, number=number, repeat=repeat)

    def benchmark(
        self, *inputs: Any, number: int = 10, repeat: int = 5, **named: Any
    ) -> BenchmarkResult:
        """Time whole runs on the device itself; inputs that are not given are random."""
        number, repeat = _counts(number, repeat)
        self._fill(inputs, named, ("number", "repeat"))
        return self.executor.benchmark(self._devices.main, number=number, repeat=repeat)

    def _fill(
        self, inputs: Sequence[Any], named: Mapping[str, Any], options: Sequence[str]
    ) -> None:
        others = random_inputs(self.inputs, seed=0)
        self._run_once(named_inputs(self.inputs, inputs, named, others, options))

    def check(
        self, reference: Any = None, *, tolerance: float | None = None, seed: int = 0, **inputs: Any
    ) -> Agreement:
        """Compare the outputs with a reference's; inputs that are not given are random.

        `reference` is a model file (ONNX Runtime or LiteRT runs it), a PyTorch module, a function
        of the inputs, or a dictionary of outputs; without one, what the model was compiled from.
        Floats agree within 1e-4 of the largest value, or within `tolerance`.
        """
        from slipway.deploy.agreement import TOLERANCE, agreement_of

        limit = TOLERANCE if tolerance is None else number_of(tolerance, "tolerance")
        seed = number_of(seed, "seed", whole=True)
        given = self._source if reference is None else reference
        if given is None:
            raise ExecutionError(
                "nothing is known to check against: a loaded model does not know what it was "
                "compiled from. Pass the model file: m.check('model.onnx')"
            )
        others = random_inputs(self.inputs, seed)
        options = ("reference", "tolerance", "seed")
        arrays = named_inputs(self.inputs, (), inputs, others, options)
        signature = self._signature if reference is None else None
        name, run = reference_of(given, self._constants, signature)
        wanted = [np.asarray(value) for value in run(arrays)]
        if len(wanted) != len(self.outputs):
            raise ExecutionError(
                f"{name} gives {len(wanted)} outputs, and the model has {len(self.outputs)}: "
                f"{'; '.join(map(str, self.outputs))}"
            )
        names = [spec.name for spec in self.outputs]
        return agreement_of(
            self._run_once(arrays),
            dict(zip(names, wanted, strict=True)),
            name,
            limit,
        )

    def report(self, path: str | os.PathLike[str], *, numbers: bool = True, **inputs: Any) -> Path:
        """Write a page about this model, measured where it runs, to `path` (a ``.html``).

        Graph before and after fusion, time of each layer beside its limit, numbers beside NumPy's
        (`numbers`), memory, sizes, versions.  Raises ExecutionError for a model that was loaded:
        a file does not hold its graph.
        """
        from slipway.compiler.model_factory import ModelFactory
        from slipway.report.make import make_report
        from slipway.report.page import write_page

        if not isinstance(self.library, ModelFactory):
            raise ExecutionError(
                f"{self.name}: a report tells how a model was compiled, which a file that was "
                "loaded does not hold; call slipway.compile(...).report(...), or `slipway report` "
                "with the model file"
            )
        page = file_to_write(path, "the report", "report.html")  # before all the work
        others = random_inputs(self.inputs, seed=0)
        arrays = named_inputs(self.inputs, (), inputs, others, ("path", "numbers"))
        found = make_report(
            self.library, self.name, self.artifact, session=self._session, where=self.where,
            source=self._source, constants=self._constants,
            signature=self._signature, inputs=arrays, numbers=numbers,
            quiet=self._quiet,
        )  # fmt: skip
        return write_page(found, page)

    # Files.

    @property
    def size(self) -> int:
        """Bytes of the artifact."""
        return self.artifact.stat().st_size

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model as a ``.tar``, or after a compilation a ``.so``, ``.o`` or ``.a`` too."""
        from slipway.toolchain import native

        target = file_to_write(path, "the file to save", "model.tar")
        if target.suffix == self.artifact.suffix:
            native.atomically(target, lambda made: made.write_bytes(self.artifact.read_bytes()))
        elif self.library is not None:
            self.library.export_library(str(target))
        else:
            raise ExecutionError(
                f"{target}: a loaded model is saved as {self.artifact.suffix}, as it was loaded; "
                "compile it again for another kind of file"
            )
        return target

    # Showing.

    def _loads_here(self) -> bool:
        from slipway.report.loaded import why_not_here

        return not why_not_here(self.artifact)

    def _rows(self) -> list[tuple[str, str]]:
        memory = self._metadata.get("memory", {})
        is_here = self._session is not None or self._loads_here()
        runs_on = self.where if is_here else 'a device: m.on("host:port")'
        rows = [("target", self.target), ("runs on", runs_on)]
        rows += [("input", str(spec)) for spec in self.inputs]
        rows += [("output", str(spec)) for spec in self.outputs]
        if memory:
            rows.append(("weights", f"{memory['params_bytes']:,} bytes"))
            rows.append(("activations", f"{memory['workspace_bytes']:,} bytes"))
        return [*rows, ("artifact", f"{self.size:,} bytes")]

    def __repr__(self) -> str:
        lines = [f"  {label:<12}{text}" for label, text in self._rows()]
        return "\n".join([f"<slipway model {self.name}>", *lines])

    def _repr_html_(self) -> str:
        from html import escape

        cells = "".join(
            f"<tr><th style='text-align:left'>{escape(label)}</th>"
            f"<td style='text-align:left'>{escape(text)}</td></tr>"
            for label, text in self._rows()
        )
        return f"<table><caption>{escape(self.name)}</caption>{cells}</table>"


def _stamp(file: Path) -> tuple[int, ...] | None:
    """Return what a file is known by, and what writing into it changes; None where it is gone."""
    with suppress(OSError):
        found = file.stat()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
    return None


def _counts(number: int, repeat: int) -> tuple[int, int]:
    """Return how many runs are timed together, and how often."""
    for name, value in (("number", number), ("repeat", repeat)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise ArgumentTypeError(f"{name}={reprlib.repr(value)} is no whole number.")
        if not 1 <= value <= MAX_RUNS:
            raise ArgumentValueError(f"{name}={value} is not from 1 to {MAX_RUNS}.")
    return int(number), int(repeat)
